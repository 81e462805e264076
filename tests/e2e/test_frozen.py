"""Followers that stand still cost little, and not for long; the others do not notice."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.processes import NO_PLATFORM, Ground, Program
from tests.kit import web
from tests.kit.frozen import drop_packets, standing_still, thawed
from tests.kit.web import Visitor
from tests.limits import until

FROZEN, DROPPED = 300, 50
MOST = 96_000
"""Bytes that each may cost."""
SETTINGS = {
    **NO_PLATFORM,
    "WEB": "true",
    "WEB_ADDRESS_PER_MINUTE": "100000",
    "WEB_VISITOR_PER_MINUTE": "100000",
    "CHAT_MESSAGES_PER_MINUTE": "100000",
}


def resident(program: Program) -> int:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{program.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def metric(program: Program, name: str) -> float:
    lines = (await program.get("/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


async def only_one_follows(program: Program) -> bool:
    return await metric(program, "answerback_followers") == 1


@pytest.mark.timeout(900)
@pytest.mark.long
async def test_b165_readers_that_stand_still_cost_little_are_cut_and_come_back(
    postgres_ground: Ground, pytestconfig: pytest.Config
) -> None:
    deep = pytestconfig.getoption("--deep")
    turns, size = (500, 4_000) if deep else (15, 40_000)  # Of four events each.
    program = await postgres_ground.serve(**SETTINGS)
    async with web.client() as http:
        visitor, other = [await Visitor(program.url, http).begin() for _ in range(2)]
        async with visitor.following() as following, AsyncExitStack() as stack:

            async def turn(name: str) -> None:
                assert (await visitor.say(name, "hello")).status_code == 202
                await following.until(lambda f: ("ended", name) in [t.about for t in f.told[-8:]])

            await turn("before")
            postgres_ground.agent.words = lambda text: text.ljust(size, ".")
            for number in range(turns):  # What the same work costs with nobody who stands still.
                await other.say(f"m{number}", "hello")
                await other.answered(f"m{number}")
            before = resident(program)
            clients = await stack.enter_async_context(standing_still(visitor, FROZEN))
            most = 0
            for number in range(turns):
                await turn(f"m{number}")
                most = max(most, resident(program))
            assert (most - before) / FROZEN < MOST
            await until(lambda: only_one_follows(program))
            assert await metric(program, "answerback_followers_cut_total") == FROZEN
            told = [t.id for t in following.events]
            last = len(told)
            assert told == list(range(1, last + 1))
            for client in clients[:: 10 if deep else 100]:
                begun = await thawed(client)
                numbers = [t.id or 0 for t in begun.events]
                after = numbers[-1] if numbers else begun.told[0].data["n"]
                assert after < last, "it was not cut"
                async with visitor.following(after=after) as again:
                    await again.until(lambda f: last in (f.told and f.told[-1].id, _whole(f)))
                numbers += [t.id or 0 for t in again.events]
                assert _whole(again) or numbers == list(range(last - len(numbers) + 1, last + 1))
            if deep:
                clients = await stack.enter_async_context(standing_still(visitor, DROPPED))
                for client in clients:
                    drop_packets(client)
                await until(lambda: only_one_follows(program))
            assert (await program.get("/readyz")).status_code == 200
    assert "lease lost" not in program.output


def _whole(following: web.Following) -> int | None:
    """The number of the snapshot that follows a resync."""
    return following.told[1].data["n"] if following.kinds[:2] == ["resync", "snapshot"] else None
