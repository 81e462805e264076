"""Meta's limits hold up whom they are about: a pair, a number, an account."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from bot.domain.turn import Turn
from tests.fakes.meta import faults
from tests.fakes.meta.server import NUMBER, OTHER_NUMBER
from tests.fakes.recording import Call
from tests.kit.conversation import endings
from tests.kit.passing import settle
from tests.kit.whatsapp import CALM
from tests.kit.whatsapp_cloud import ALONE, TWO
from tests.limits import PATIENCE, moment
from tests.world import World

ADA = "15550100193"
ON: dict[str, Any] = {**ALONE, **CALM, "burst": "each"}


async def five_parts(turn: Turn) -> str:
    if turn.text != "long":
        return f"re: {turn.text}"
    return "\n\n".join(f"{n} " + "word " * 780 for n in range(1, 6))


def begins(number: int) -> Any:
    """Tell whether a call sends this part."""

    def holds(call: Call) -> bool:
        return str(call.params.get("text", {}).get("body", "")).startswith(f"{number} ")

    return holds


async def moves_until(world: World, sql: str, holds: Callable[[Sequence[Any]], bool]) -> None:
    """Let the stopped time go on by little until the rows are so."""
    async with asyncio.timeout(PATIENCE):
        while not holds(await world.rows(sql)):
            world.advance(0.1)
            await moment()


def sends(world: World, to: str = ADA) -> list[Call]:
    return world.meta.calls_of("send", f"+{to}")


async def test_b146_a_pair_limit_holds_one_chat_by_growing_waits_that_outlive_the_process(
    world: World,
) -> None:
    world.stop_time()
    for status in (400, 429, 400):
        world.meta.fail("send", faults.refused(131056, status=status), when=begins(3))
    process = await world.start(agent=five_parts, **ON)
    await world.meta.person_writes("long", from_=ADA)
    third = "SELECT attempts, state FROM outbox WHERE kind = 'reply' AND part = 3"
    await moves_until(world, third, lambda rows: bool(rows) and tuple(rows[0]) == (1, "pending"))

    began = world.clock.wall()
    for other in range(20):
        await world.meta.person_writes(f"hi {other}", from_=f"1555010040{other:02d}")
    answered = "SELECT count(*) FROM runs WHERE ending = 'answered'"
    await moves_until(world, answered, lambda rows: rows == [(20,)])
    assert world.clock.wall() - began <= 2, "a neighbour waited"
    assert {m.text[:2] for m in world.meta.messages(f"+{ADA}")} == {"1 ", "2 "}

    await moves_until(world, third, lambda rows: tuple(rows[0]) == (2, "pending"))
    await process.die()
    await world.start(agent=five_parts, **ON)
    await settle(world)

    assert [text[0] for text in world.meta.texts(f"+{ADA}")] == ["1", "2", "3", "4", "5"]
    assert len(sends(world)) == 8
    asked = [call.at for call in sends(world) if begins(3)(call)]
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert [wait >= least for wait, least in zip(waits, (1, 4, 16), strict=True)] == [True] * 3
    assert waits[2] < 60
    assert dict(await endings(world))["long"] == "answered"
    assert await world.rows("SELECT failures FROM runs WHERE failures > 0") == []
    assert await world.rows("SELECT count(*) FROM outbox WHERE kind <> 'reply'") == [(0,)]


@pytest.mark.parametrize("code", [130429, 80007, 4])
async def test_b146_a_limit_of_the_number_holds_all_its_chats_and_no_others(
    world: World, code: int
) -> None:
    world.stop_time()
    world.meta.fail("send", faults.refused(code), when=lambda call: call.account == NUMBER)
    await world.start(agent=five_parts, **{**TWO, **CALM})
    await world.meta.person_writes("first", from_=ADA)
    waiting = "SELECT count(*) FROM outbox WHERE attempts = 1 AND state = 'pending'"
    await world.until(waiting, lambda rows: rows == [(1,)])
    await world.meta.person_writes("beside", from_="15550100402")
    await world.meta.person_writes("elsewhere", from_="15550100403", number=OTHER_NUMBER)
    await world.meta.wait_for(lambda: world.meta.texts("+15550100403"))
    assert world.meta.texts("+15550100402") == [], "the number is held, and not only the chat"
    await settle(world)
    assert sorted(world.meta.texts()) == ["re: beside", "re: elsewhere", "re: first"]
    assert {ending for _, ending in await endings(world)} == {"answered"}


async def test_b146_every_part_is_refused_once_by_the_number_and_all_arrive_in_order(
    world: World,
) -> None:
    world.stop_time()
    for number in range(1, 6):
        world.meta.fail("send", faults.refused(130429), when=begins(number))
    await world.start(agent=five_parts, **ON)
    await world.meta.person_writes("long", from_=ADA)
    await settle(world)
    assert [text[0] for text in world.meta.texts(f"+{ADA}")] == ["1", "2", "3", "4", "5"]
    assert len(sends(world)) == 10
    assert await endings(world) == [("long", "answered")]


async def test_a_fake_that_keeps_metas_own_pace_is_never_asked_too_often_for_long(
    world: World,
) -> None:
    world.meta.rates.enforce, world.meta.rates.burst = True, 3
    world.stop_time()
    await world.start(agent=five_parts, **ON)
    await world.meta.person_writes("long", from_=ADA)
    await settle(world)
    assert [text[0] for text in world.meta.texts(f"+{ADA}")] == ["1", "2", "3", "4", "5"]
    assert len(sends(world)) <= 5 + 4
    assert await endings(world) == [("long", "answered")]
