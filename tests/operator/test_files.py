"""Files that an operator sends: their addresses, and the limits of a channel."""

from __future__ import annotations

import re

import httpx
import pytest

from bot.domain.clients.hosted import KeptName, file_at, path_of
from bot.operations import chats
from tests.kit.operating import ANN
from tests.kit.operator import form_token
from tests.operator.conftest import Browsers
from tests.operator.test_chat import ADA, field, greeted, signed_in
from tests.world import PUBLIC, Running, World

PDF = b"%PDF-1.7 swordfish"


async def send(
    world: World, browsers: Browsers, process: Running, *files: tuple[str, bytes, str]
) -> httpx.Response:
    """Send a reply with these files from the page."""
    ann = await signed_in(browsers, process)
    page = await ann.get("/chats/1")
    fields = {
        "form_token": form_token(page),
        "key": field(page, "key"),
        "seen": field(page, "seen"),
        "text": "Here it is.",
    }
    return await ann.send("/chats/1/reply", fields, files=[("files", one) for one in files])


async def test_a_file_is_fetched_from_us_by_an_address_that_nobody_guesses(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    answer = await send(world, browsers, process, ("bill <1>.pdf", PDF, "application/pdf"))
    assert answer.status_code == 303, answer.text
    await world.settled()
    [call] = world.telegram.calls_of("sendDocument")
    address = call.params["document"]
    assert address.startswith(f"{PUBLIC}/files/")
    path = address.removeprefix(PUBLIC)
    found = await process.client.get(f"{process.url}{path}")
    assert found.content == PDF
    assert found.headers["content-type"] == "application/pdf"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "attachment" in found.headers["content-disposition"]
    assert "sandbox" in found.headers["content-security-policy"]
    for guess in (path[:-1] + ("0" if path[-1] != "0" else "1"), "/files/x", "/files/"):
        assert (await process.client.get(f"{process.url}{guess}")).status_code == 404
    assert (await chats.forget(process.process.rt, ANN, 1)).said
    assert (await process.client.get(f"{process.url}{path}")).status_code == 404
    assert await world.rows("SELECT 1 FROM files WHERE content IS NOT NULL") == []


async def test_a_file_that_a_channel_does_not_take_is_refused_with_its_reason(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    for name, content, mime, why in (
        ("photo.jpg", b"x" * 5_000_001, "image/jpeg", "5 MB"),
        ("empty.txt", b"", "text/plain", "is empty"),
    ):
        refused = await send(world, browsers, process, (name, content, mime))
        assert refused.status_code == 409
        assert why in refused.text
        assert "Here it is." in refused.text
    await world.settled()
    assert world.telegram.texts(ADA) == ["hello"]


async def test_where_nobody_reaches_us_a_text_goes_as_it_is_and_nothing_else(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world, public_url="", twilio_account_sid="")
    sent = await send(world, browsers, process, ("list.csv", b"a,b\n1,2\n", "text/csv"))
    assert sent.status_code == 303, sent.text
    refused = await send(world, browsers, process, ("bill.pdf", PDF + b"\xff", "application/pdf"))
    assert refused.status_code == 409
    assert re.search(r"PUBLIC_URL", refused.text)
    await world.settled()
    assert len(world.telegram.calls_of("sendDocument")) == 1


@pytest.mark.parametrize(
    "token", ["", "1-2-3", "x" * 200, f"1-{'a' * 64}-{'b' * 32}", f"1-{'a' * 64}"]
)
def test_an_address_that_we_did_not_make_names_no_file(token: str) -> None:
    made = path_of("secret", KeptName(1, "a" * 64)).rpartition("/")[2]
    assert file_at("secret", made) == KeptName(1, "a" * 64)
    assert file_at("another", made) is None
    assert file_at("secret", token) is None
