"""Many chats at once: nobody waits for another's turn, nothing stays behind in memory."""

from __future__ import annotations

import asyncio

import pytest

from bot.clock import SystemClock
from tests.e2e.containers import lengths
from tests.e2e.processes import Ground
from tests.fakes.telegram.faults import held_before_storing
from tests.fakes.updates import Person
from tests.limits import until
from tests.world import World

SLOW = Person(700_100_214)
HOURS = 3 * 3600


async def test_b26_twenty_chats_are_answered_while_one_waits_for_its_model(
    ground: Ground,
) -> None:
    program = await ground.serve(CONCURRENCY="4")
    texts = ground.world.telegram.texts
    held = ground.agent.fail("turn", held_before_storing())
    assert (await program.post_update(SLOW.text("long one"))).status_code == 200
    await until(lambda: bool(held.hits))
    assert (await program.post_update(SLOW.text("and this"))).status_code == 200
    others = [Person(700_500_000 + n) for n in range(20)]
    await asyncio.gather(*(program.post_update(person.text("hi")) for person in others))
    await until(lambda: all(texts(person.number) == ["re: hi"] for person in others))
    assert texts(SLOW.number) == []
    assert not ground.agent.turns("and this")
    held.release()
    await ground.world.settled()
    assert texts(SLOW.number) == ["re: long one", "re: and this"]


@pytest.mark.parametrize(("burst", "each"), [("merge", 25), ("each", 5)])
async def test_b103_a_backlog_is_answered_in_order_and_within_the_platform_s_limits(
    sqlite_ground: Ground, burst: str, each: int
) -> None:
    ground, world = sqlite_ground, sqlite_ground.world
    now = int(SystemClock().wall())
    world.telegram.main.rates.enforce = True
    program = await ground.serve(BURST=burst, CHAT_WAITING_MAX="1000")
    people = [Person(700_600_000 + n, at=now - HOURS) for n in range(12)]

    async def catch_up(person: Person) -> None:
        for number in range(each):
            person.at = now - HOURS + number * HOURS // each
            assert (await program.post_update(person.text(f"{number}"))).status_code == 200

    await asyncio.gather(*(catch_up(person) for person in people))
    await world.settled()
    assert world.telegram.main.rates.excess == []
    assert {c.status for c in world.telegram.calls_of("sendMessage")} == {200}
    for person in people:
        said = "\n".join(world.telegram.texts(person.number)).replace("re: ", "").split("\n")
        assert said == [str(number) for number in range(each)]
    if burst == "each":
        assert len(world.telegram.all_messages()) == 12 * each


@pytest.mark.alternating(0)
async def test_b99_no_container_grows_with_the_chats_that_were_answered(world: World) -> None:
    running = await world.start()
    before = await _after(world, 20, 0)
    after = await _after(world, 60, 20)
    process = running.process
    grown = {
        path: (before.get(path, 0), n) for path, n in after.items() if n > 5 + before.get(path, 0)
    }
    assert grown == {}
    assert any("_local" in path for path in after), "the walk does not reach what it must"
    assert process.worker is not None
    assert process.worker.in_flight == 0
    assert len(process.ctx.sends) == 0


async def _after(world: World, chats: int, first: int) -> dict[str, int]:
    """The length of every container once so many more chats have their answer."""
    running = world.running[0]
    people = [Person(700_700_000 + first + n) for n in range(chats)]
    await asyncio.gather(*(running.post_update(person.text("hello")) for person in people))
    await world.settled()
    assert running.process.worker is not None
    await running.process.worker._reconcile()  # It forgets what it saw a second ago.
    world.advance(120.0)
    await running.process.repair()
    return lengths(running.process)
