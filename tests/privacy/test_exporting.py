"""The record of several chats in a file, with the files that people sent, read by nobody else."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from bot.cli.commands import exporting
from bot.cli.session import CommandFailed
from bot.wiring import operator_session
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.operating import ANN
from tests.kit.web import WEB, Visitor, client
from tests.world import World

ADA = 700100201
CONTENT = b"what is in the file"


@pytest.mark.parametrize("in_folder", [False, True])
async def test_a_person_of_two_platforms_comes_with_their_files(
    world: World, tmp_path: Path, *, in_folder: bool
) -> None:
    more = {**WEB, "web_files": tmp_path / "kept" if in_folder else None}
    process = await world.start(agent=repeats, **more)
    await process.post_update(Person(ADA).text("by Telegram"))
    async with client() as http:
        visitor = await Visitor(process.url, http).begin()
        file = {"name": "a.txt", "type": "text/plain", "data": base64.b64encode(CONTENT).decode()}
        sent = {"request_id": "m1", "text": "on a page", "files": [file]}
        await visitor.post("/messages", sent)
        await visitor.answered("m1")
    await world.settled()
    record, folder, words = (tmp_path / name for name in ("record.json", "files", "words.txt"))
    async with operator_session(world.settings(**more)) as session:
        await exporting.export(session, ANN, [1, 2], record, folder, text=False)
        await exporting.export(session, ANN, [1, 2], words, None, text=True)
        with pytest.raises(CommandFailed, match="can't be made: File exists"):
            await exporting.export(session, ANN, [1], record, None, text=False)
        with pytest.raises(CommandFailed, match=r"words\.txt can't be made: File exists"):
            await exporting.export(session, ANN, [1], None, words, text=False)
        with pytest.raises(CommandFailed, match="leave out --text"):
            await exporting.export(session, ANN, [1], None, folder, text=True)
        other, blocked = tmp_path / "other.json", tmp_path / "blocked"
        (blocked / next(folder.iterdir()).name).mkdir(parents=True)
        with pytest.raises(CommandFailed, match="the record was not written: Is a directory"):
            await exporting.export(session, ANN, [2], other, blocked, text=False)
        assert not other.exists()
    one, two = json.loads(record.read_text())["chats"]
    assert [one["channel"], two["channel"]] == ["telegram", "web"]
    [kept] = two["files"]
    saved = folder / kept["saved_as"]
    assert saved.read_bytes() == CONTENT
    assert {oct(file.stat().st_mode)[-3:] for file in (record, words, saved)} == {"600"}
    assert "by Telegram" in words.read_text()
    assert "on a page" in words.read_text()
    assert await world.rows("SELECT who FROM events WHERE what = 'exported'") == [(ANN.name,)] * 4
