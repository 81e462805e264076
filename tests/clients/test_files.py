"""Files from and to a page: handed in with a message, read by the agent, fetched with the token."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.domain.reply import FileOut, Reply
from bot.domain.turn import Turn
from bot.operations.actions import Operator, Result
from bot.operations.chats import forget
from tests.kit.web import WEB, Visitor
from tests.world import World

CONTENT = b"\x89PNG\r\n\x1a\n\0\xff not really"


def file(name: str = "cat.png", mime: str = "image/png", content: bytes = CONTENT) -> Any:
    return {"name": name, "type": mime, "data": base64.b64encode(content).decode()}


async def sizes(turn: Turn) -> Reply:
    """Tells what it was given, in a document."""
    given = [
        f"{a.info.kind} {a.info.name} {a.info.mime} {len(await a.read())}"
        for message in turn.messages
        for a in message.attachments
    ]
    return Reply("\n".join([turn.text, *given]), files=(FileOut("document", content="a <b>"),))


@pytest.fixture(params=["database", "folder"])
async def visitor(
    request: pytest.FixtureRequest, world: World, http: httpx.AsyncClient, tmp_path: Path
) -> Visitor:
    folder = tmp_path / "files" if request.param == "folder" else None
    running = await world.start(agent=sizes, web_file_max=100_000, web_files=folder, **WEB)
    return await Visitor(running.url, http).begin()


async def test_a_picture_without_words_reaches_the_agent_and_comes_back_to_the_page(
    world: World, visitor: Visitor
) -> None:
    sent = {"request_id": "m1", "files": [file()]}
    assert (await visitor.post("/messages", sent)).status_code == 202
    told = await visitor.answered("m1")
    assert told["answer"] == "[photo: cat.png]\nphoto cat.png image/png 21"
    assert (await visitor.post("/messages", sent)).status_code == 200
    other = {**sent, "files": [file(content=b"other")]}
    assert (await visitor.post("/messages", other)).status_code == 409
    message, answer = await visitor.history()
    [mine] = message["files"]
    assert (mine["name"], mine["mime"], mine["size"]) == ("cat.png", "image/png", len(CONTENT))
    fetched = await visitor.get(f"/files/{mine['ref']}")
    assert fetched.content == CONTENT
    assert fetched.headers["content-type"] == "image/png"
    [document] = answer["files"]
    fetched = await visitor.get(f"/files/{document['ref']}")
    assert fetched.text == "a <b>"
    assert fetched.headers["content-type"] == "text/plain; charset=utf-8"
    stranger = await Visitor(visitor.url, visitor.http).begin()
    for ref in (mine["ref"], document["ref"]):
        assert (await stranger.get(f"/files/{ref}")).status_code == 404
    [(body,)] = await world.rows("SELECT payload FROM inbound")
    assert mine["ref"] in body
    assert base64.b64encode(CONTENT).decode() not in body


TYPES = {
    "text/html": "application/octet-stream",
    "image/svg+xml": "application/octet-stream",
    "application/xhtml+xml": "application/octet-stream",
    "text/javascript": "application/octet-stream",
    "x/y\r\nSet-Cookie: a": "application/octet-stream",
    "IMAGE/JPEG; q=1": "image/jpeg",
    "": "application/octet-stream",
}


@pytest.mark.alternating(0)
async def test_nothing_that_was_handed_in_runs_in_a_page(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(agent=sizes, **WEB)
    visitor = await Visitor(running.url, http).begin()
    for number, (mime, served) in enumerate(TYPES.items()):
        name = f'{number}"\r\nX: y; filename=<script>.html'
        sent = [file(name, mime, f"<script>{number}".encode())]
        answer = await visitor.say(f"m{number}", "look", files=sent)
        assert answer.status_code == 202
        said = [m for m in await visitor.history() if m["request_id"] == f"m{number}"]
        [handed_in] = said[0]["files"]
        fetched = await visitor.get(f"/files/{handed_in['ref']}")
        assert fetched.headers["content-type"] == served
        disposition = fetched.headers["content-disposition"]
        assert disposition.startswith(f"attachment; filename*=UTF-8''{number}")
        assert fetched.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in fetched.headers["content-security-policy"]
        assert "x" not in fetched.headers


WRONG: list[tuple[Any, int, str]] = [
    ("cat.png", 422, "list"),
    ([{"name": "a"}], 422, "name, type and data"),
    ([{**file(), "data": "!"}], 422, "base64"),
    ([{**file(), "data": 7}], 422, "text"),
    ([file(content=b"")], 422, "empty"),
    ([file()] * 11, 422, "at most 10"),
    ([file(content=b"x" * 60_000)] * 2, 413, "100000 bytes"),
    ([file(content=b"x" * 600_000)], 413, "bytes"),
]


@pytest.mark.alternating(1)
async def test_files_that_are_not_taken_are_refused_with_the_reason_and_leave_nothing(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(agent=sizes, web_file_max=100_000, **WEB)
    visitor = await Visitor(running.url, http).begin()
    for files, status, says in WRONG:
        answer = await visitor.say("m1", "x", files=files)
        assert answer.status_code == status, answer.text
        assert says in answer.json()["error"]
    assert [tuple(row) for row in await world.rows("SELECT count(*) FROM files")] == [(0,)]


async def test_forgetting_a_chat_forgets_its_files(world: World, visitor: Visitor) -> None:
    await visitor.post("/messages", {"request_id": "m1", "files": [file()]})
    await visitor.answered("m1")
    await world.settled()
    files = [file["ref"] for message in await visitor.history() for file in message["files"]]
    assert len(files) == 2
    [(chat,)] = await world.rows("SELECT id FROM chats")
    acted = await forget(world.running[0].process.rt, Operator("op", ""), chat)
    assert acted.result is Result.DONE, acted
    for ref in files:
        assert (await visitor.get(f"/files/{ref}")).status_code == 404
