"""Serving as one process: it never goes on deaf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvicorn

from bot.main import serve
from bot.version import our_version
from bot.wiring import Role
from tests.limits import PATIENCE
from tests.world import World, open_world


@pytest.fixture
async def sqlite_world(sqlite_url: str) -> AsyncIterator[World]:
    async with open_world(sqlite_url) as world:
        yield world


async def test_an_http_server_that_ends_by_itself_stops_the_process(
    sqlite_world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_server: uvicorn.Server, _counter: int) -> bool:
        raise OSError("too many open files")

    monkeypatch.setattr(uvicorn.Server, "on_tick", broken)
    caplog.set_level("INFO", "answerback")
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(RuntimeError, match="ended by itself"):
            await serve(sqlite_world.settings(port=0), Role.ALL)
    assert f"Answerback {our_version()}: " in caplog.text
    assert "the HTTP server ended by itself" in caplog.text
    rows = await sqlite_world.rows("SELECT count(*) FROM holders WHERE gone_at IS NULL")
    assert rows[0][0] == 0, "it handed over"
