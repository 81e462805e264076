"""Within a process a follower is told by hints: no event waits for the look of each second."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from bot.api import GiveUp
from bot.clients import followers
from bot.domain.ending import Ending
from bot.domain.reply import Reply
from bot.domain.turn import Turn
from tests.kit.agents import Gated
from tests.kit.operating import close
from tests.kit.web import Following, Visitor
from tests.limits import until
from tests.world import World


@pytest.fixture(autouse=True)
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers, "_LOOK_EVERY", 1e9)


async def answers(turn: Turn) -> Reply | str | None:
    """Does what the text says."""
    match turn.text:
        case "give up":
            raise GiveUp("I can't")
        case "nothing":
            return None
        case "long":
            return "x" * 120_000
        case text:
            return f"re: {text}"


def ended(*names: str) -> Callable[[Following], bool]:
    def holds(following: Following) -> bool:
        over = [t.data["request_id"] for t in following.told if t.kind in ("ended", "withdrawn")]
        return over == list(names)

    return holds


async def test_every_end_of_a_turn_is_told_without_a_look(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=answers)
    visitor = await Visitor(running.url, http).begin()
    said = ("hello", "nothing", "give up", "long", "/status", "again")
    async with visitor.following() as following:
        for number, text in enumerate(said):
            await visitor.say(f"m{number}", text)
            await following.until(ended(*(f"m{n}" for n in range(number + 1))))


async def test_what_is_stopped_or_closed_is_told_without_a_look(
    world: World, http: httpx.AsyncClient
) -> None:
    agent = Gated()
    running = await world.start(web=True, agent=agent)
    visitor = await Visitor(running.url, http).begin()
    async with visitor.following() as following:
        await visitor.say("m0", "one")
        await until(lambda: "one" in agent.texts)
        await following.until(lambda f: "working" in f.kinds)
        await visitor.say("m1", "two")
        await following.until(lambda f: len(f.of("accepted")) == 2)
        await visitor.post("/stop", {})
        await following.until(ended("m0", "m1"))
        await visitor.say("m2", "three")
        await until(lambda: "three" in agent.texts)
        await visitor.say("m3", "/stop")
        await following.until(ended("m0", "m1", "m2", "m3"))
        await visitor.say("m4", "four")
        await until(lambda: "four" in agent.texts)
        [[run]] = await world.rows("SELECT max(id) FROM runs")
        await close(running, run, Ending.CANCELLED)
        await following.until(ended("m0", "m1", "m2", "m3", "m4"))
