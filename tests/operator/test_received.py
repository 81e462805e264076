"""Files that people sent, as operators have them: from their platform, to be saved, never shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from bot.operations import chats
from tests.fakes.telegram import faults
from tests.fakes.telegram.server import TOKEN
from tests.kit.agents import repeats
from tests.kit.operating import ANN
from tests.kit.web import WEB, Visitor, client
from tests.kit.whatsapp_cloud import ALONE
from tests.operator.conftest import Browsers
from tests.operator.test_chat import SETTINGS, ada, signed_in
from tests.world import Running, World

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
Sends = Callable[[World, Running], Awaitable[object]]


async def by_telegram(world: World, process: Running) -> None:
    file_id = world.telegram.main.add_file(SVG, "doc-1")
    await process.post_update(ada.document(file_id, "../a <b>\u202e.svg"))


async def by_twilio(world: World, _process: Running) -> None:
    await world.twilio.inbound("", media=[("image/svg+xml", SVG)])


async def by_meta(world: World, _process: Running) -> None:
    media = world.meta.put_media(SVG, "image/svg+xml")
    raw = {"id": media.id, "mime_type": media.mime, "sha256": media.sha256_base64}
    await world.meta.person_writes(kind="document", content=raw | {"filename": "a <b>.svg"})


async def by_web(_world: World, process: Running) -> None:
    async with client() as http:
        visitor = await Visitor(process.url, http).begin()
        data = base64.b64encode(SVG).decode()
        file = {"name": "a <b>.svg", "type": "image/svg+xml", "data": data}
        await visitor.post("/messages", {"request_id": "m1", "text": "", "files": [file]})


def links(page: httpx.Response) -> list[str]:
    """The files of a chat's page."""
    return re.findall(r'href="/operator(/chats/\d+/files/[^"]+)"', page.text)


@pytest.mark.parametrize(
    ("sends", "further", "name"),
    [
        (by_telegram, {}, "_a (b).svg"),
        (by_twilio, {}, "photo.svg"),
        (by_meta, ALONE, "a (b).svg"),
        (by_web, WEB, "a (b).svg"),
    ],
)
async def test_who_may_read_a_chat_saves_what_its_person_sent_from_every_platform(
    world: World, browsers: Browsers, sends: Sends, further: dict[str, Any], name: str
) -> None:
    process = await world.start(agent=repeats, **{**SETTINGS, **further})
    await sends(world, process)
    await world.settled()
    rea = await signed_in(browsers, process, "rea")
    page = await rea.get("/chats/1")
    [link] = links(page)
    assert TOKEN not in page.text
    found = await rea.get(link)
    assert (found.status_code, found.content) == (200, SVG)
    headers = found.headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert headers["cache-control"] == "no-store"
    kind, _, told = headers["content-disposition"].partition("; filename*=UTF-8''")
    assert (kind, unquote(told)) == ("attachment", name)
    read = await world.rows("SELECT count(*) FROM events WHERE who = 'rea@page' AND chat = 1")
    assert read[0][0] >= 1
    assert (await browsers(process).get(link)).status_code == 303, "with a session alone"
    for other in (link[:-1] + "1", link.replace("/files/", "/files/9"), "/chats/2/files/1/0"):
        assert (await rea.get(other)).status_code == 404, other
    await chats.forget(process.process.rt, ANN, 1)
    assert (await rea.get(link)).status_code == 404, "gone with the chat"


async def test_a_file_that_its_platform_has_no_more_is_told_in_a_sentence(
    world: World, browsers: Browsers
) -> None:
    process = await world.start(agent=repeats, **SETTINGS)
    await by_telegram(world, process)
    await world.settled()
    ann = await signed_in(browsers, process)
    [link] = links(await ann.get("/chats/1"))
    world.telegram.fail("getFile", faults.refused(400, "Bad Request: wrong file_id"))
    gone = await ann.get(link)
    assert gone.status_code == 404
    assert "It can't be had: Telegram does not have the file (any more)." in gone.text
    assert "content-disposition" not in gone.headers


async def test_more_files_at_once_than_there_are_places_come_again(
    world: World, browsers: Browsers
) -> None:
    process = await world.start(agent=repeats, **SETTINGS)
    await by_telegram(world, process)
    await world.settled()
    ann = await signed_in(browsers, process)
    [link] = links(await ann.get("/chats/1"))
    page = process.process.operator_page
    assert page is not None
    places = page._tools.fetching
    taken = 0
    while not places.locked():
        await places.acquire()
        taken += 1
    full = await ann.get(link)
    assert (full.status_code, full.headers["retry-after"]) == (503, "5")
    for _ in range(taken):
        places.release()
    assert (await ann.get(link)).status_code == 200
