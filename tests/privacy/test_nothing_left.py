"""Nothing that a person wrote is left: in no table, no file, no log line, not in Redis."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest
from redis import asyncio as redis

from bot.domain.turn import Turn
from bot.operations import chats as chat_acts
from bot.privacy import requests
from bot.privacy.forget import settle_compaction
from bot.texts import Text
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.operating import ANN, act, runs_of
from tests.kit.web import WEB, Visitor, client, identity
from tests.privacy.test_requests import ADA, asked, by_hand, holding, say
from tests.storage.test_retention import SECRET
from tests.world import World


async def tells_all(turn: Turn) -> str:
    """Leaves the secret, if it was told, wherever an agent can."""
    if SECRET not in turn.text:
        return "yours"
    await turn.reminders.add("in 3 hours", f"say {SECRET}", key="one")
    await turn.step("look", lambda: f"{SECRET} looked up")
    return f"I know {SECRET}"


def files_holding(*folders: Path) -> list[str]:
    """Every file below these folders in whose bytes the secret stands."""
    every = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in every if SECRET.encode() in file.read_bytes()]


async def dumped(url: str) -> bytes:
    """All that Redis holds."""
    async with redis.from_url(url) as server:
        return b"".join([key + (await server.dump(key) or b"") async for key in server.scan_iter()])


async def test_a_person_asks_twice_and_nothing_of_theirs_is_left_anywhere(
    world: World, tmp_path: Path, valkey_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    process = by_hand(await world.start(agent=tells_all, redis_url=valkey_url))
    ada, ben = Person(ADA), Person(ADA + 1)
    said = ada.text(SECRET)
    edited = ada.edit(said, f"{SECRET}!")
    for update in (said, edited, ben.text("mine")):
        await process.post_update(update)
    await world.settled()
    rt = process.process.rt
    await act(process, lambda tx: chat_acts.reply(tx, rt, ANN, 1, f"Ann on {SECRET}"))
    broken = {**ada.text(SECRET), "message": {"chat": {"id": ADA}, "text": SECRET}}
    for update in (ada.edit(ada.text("never delivered"), f"{SECRET}, edited"), broken):
        await process.post_update(update)
    await world.settled()
    assert await holding(world) >= {"inbound", "payloads", "outbox", "steps", "reminders", "edits"}
    on_sqlite = world.database_url.startswith("sqlite")
    assert bool(files_holding(tmp_path)) is on_sqlite
    first, second = ada.command("/forget"), ada.command("/forget")
    for update in (first, second):
        await process.post_update(update)
        await world.settled()
    assert world.telegram.texts(ADA)[-1] == asked(Text.FORGET_ASKED)
    assert await requests.fulfil(rt) == 1
    for again in (second, first, said, edited):
        await process.post_update(again)
    assert await requests.fulfil(rt) == 0
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == say(Text.FORGOTTEN)
    assert world.telegram.texts(ADA).count(say(Text.FORGOTTEN)) == 1
    assert await holding(world) == set()
    assert await settle_compaction(rt.db)
    assert files_holding(tmp_path) == []
    assert "mine" in str(await world.rows("SELECT text FROM inbound WHERE chat = 2"))
    assert [ending for _, _, ending in await runs_of(world)] == ["answered", "answered"]
    assert SECRET not in caplog.text
    assert SECRET.encode() not in await dumped(valkey_url)


async def test_a_page_forgets_its_guest_and_user_and_their_files(
    world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    process = by_hand(await world.start(agent=repeats, web_files=folder, **WEB))
    async with client() as http:
        visitor = await Visitor(process.url, http).begin()
        content = base64.b64encode(SECRET.encode()).decode()
        file = {"name": f"{SECRET}.txt", "type": "text/plain", "data": content}
        await visitor.post("/messages", {"request_id": "m1", "text": SECRET, "files": [file]})
        await visitor.answered("m1")
        await visitor.sign_in(identity(world.clock, "ada", "Ada"))
        await visitor.post("/messages", {"request_id": "m2", "text": f"more {SECRET}"})
        await visitor.answered("m2")
        assert any(name for name in files_holding(folder))
        for number in (3, 4):
            await visitor.post("/messages", {"request_id": f"m{number}", "text": "/forget"})
        await world.settled()  # An answer is shown before its run has ended.
        assert await requests.fulfil(process.process.rt) == 1
        await world.settled()
        [desk] = process.process.desks.values()
        await desk.files.sweep(0)
        history = await visitor.history()
    assert [message["text"] for message in history if message.get("text")][-1] == say(
        Text.FORGOTTEN
    )
    assert SECRET not in str(history)
    assert await holding(world) == set()
    assert [file for file in folder.rglob("*") if file.is_file()] == []
    if world.database_url.startswith("sqlite"):
        assert await settle_compaction(process.process.rt.db)
        assert files_holding(tmp_path) == []
