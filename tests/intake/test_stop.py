"""/stop withdraws what waits and what runs, on whichever process, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.turn import Turn
from bot.texts import Text, Words
from tests.fakes.faults import Fault
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Gated
from tests.kit.conversation import ADA, BOB, endings, post
from tests.kit.passing import settle
from tests.limits import until
from tests.world import World

STOPPED = Words.load().say(Text.STOPPED)
NOTHING = Words.load().say(Text.NOTHING_TO_STOP)
LONG = "\n\n".join(f"part {n} ".ljust(3900, ".") for n in (1, 2, 3))
STATES = "SELECT part, state FROM outbox WHERE kind = 'reply' ORDER BY part"


async def long_reply(turn: Turn) -> str:
    return LONG


async def test_stop_withdraws_what_runs_and_what_waits_and_no_other_chat(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, burst="each")
    ada, bob = Person(ADA), Person(BOB)
    assert await post(running, ada.text("one"), ada.text("two"), bob.text("three")) == [200] * 3
    await agent.begun.wait()
    assert await post(running, ada.command("/stop")) == [200]
    await world.until(
        "SELECT count(*) FROM runs WHERE ending = 'withdrawn'", lambda r: r[0][0] == 2
    )
    agent.go.set()
    await settle(world)
    assert agent.cut == ["one"]
    assert await endings(world) == [
        ("one", "withdrawn"),
        ("two", "withdrawn"),
        ("three", "answered"),
    ]
    assert world.telegram.texts(ADA) == [STOPPED]
    assert world.telegram.texts(BOB) == ["re: three"]


async def test_a_redelivered_stop_has_no_effect(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent)
    ada = Person(ADA)
    stop = ada.command("/stop")
    assert await post(running, ada.text("one"), stop, ada.text("two"), stop, stop) == [200] * 5
    agent.go.set()
    await settle(world)
    assert await endings(world) == [("one", "withdrawn"), ("two", "answered")]
    assert sorted(world.telegram.texts(ADA)) == sorted([STOPPED, "re: two"])


async def test_a_late_stop_leaves_what_was_written_after_it_and_what_that_had_joined(
    world: World,
) -> None:
    agent = Gated()
    running = await world.start(agent=agent)
    ada = Person(ADA)
    assert await post(running, ada.text("one")) == [200]
    await agent.begun.wait()
    two, stop, three = ada.text("two"), ada.command("/stop"), ada.text("three")
    for seconds, update in enumerate((two, stop, three), 10):
        update["message"]["date"] += seconds
    assert await post(running, two, three, stop) == [200] * 3
    agent.go.set()
    await settle(world)
    assert await endings(world) == [
        ("one", "withdrawn"),
        ("two", "answered"),
        ("three", "answered"),
    ]


async def test_a_stop_at_another_process_cuts_the_agent_within_a_second_or_so(
    world: World,
) -> None:
    """No Redis here: the worker finds out by looking at its own runs."""
    agent = Gated()
    worker = await world.start(agent=agent)
    door = await world.start(agent=agent)
    ada = Person(ADA)
    assert await post(worker, ada.text("one")) == [200]
    await agent.begun.wait()
    assert await post(door, ada.command("/stop")) == [200]
    await until(lambda: bool(agent.cut))
    await settle(world)
    assert await endings(world) == [("one", "withdrawn")]
    assert world.telegram.texts(ADA) == [STOPPED]


async def test_a_part_on_its_way_keeps_its_receipt_and_the_confirmation_goes_behind_it(
    world: World,
) -> None:
    held = world.telegram.fail("sendMessage", faults.held_after_storing())
    running = await world.start(agent=long_reply, telegram_read_timeout=30.0)
    ada = Person(ADA)
    assert await post(running, ada.text("tell me all")) == [200]
    await world.telegram.wait_for(lambda: held.hits)
    assert await post(running, ada.command("/stop")) == [200]
    for _ in range(5):
        assert len(await world.rows(STATES)) == 3
        world.advance(1.0)
    assert [text[:6] for text in world.telegram.texts(ADA)] == ["part 1"]
    held.release()
    await settle(world)
    assert [text[:6] for text in world.telegram.texts(ADA)] == ["part 1", STOPPED[:6]]
    assert await world.rows(STATES) == [(1, "sent"), (2, "dropped"), (3, "dropped")]
    assert await endings(world) == [("tell me all", "withdrawn")]


async def test_what_was_proven_not_to_have_left_is_dropped_after_a_stop(world: World) -> None:
    refused = faults.too_many(5)
    assert isinstance(refused, Fault)
    held = world.telegram.fail("sendMessage", replace(refused, held_before=True))
    running = await world.start(agent=long_reply, telegram_read_timeout=30.0)
    ada = Person(ADA)
    assert await post(running, ada.text("tell me all")) == [200]
    await world.telegram.wait_for(lambda: held.hits)
    assert await post(running, ada.command("/stop")) == [200]
    held.release()
    await settle(world)
    assert world.telegram.texts(ADA) == [STOPPED]
    assert await world.rows(STATES) == [(1, "dropped"), (2, "dropped"), (3, "dropped")]


async def test_a_part_that_was_marked_and_never_called_does_not_block_the_confirmation(
    world: World,
) -> None:
    """The turn is cut between the commit that marks a part and the call."""
    marked = "SELECT count(*) FROM outbox WHERE state = 'sending'"
    running = await world.start(agent=long_reply, telegram_read_timeout=30.0)
    ada = Person(ADA)
    held = world.telegram.fail("sendMessage", faults.held_before_storing())
    assert await post(running, ada.text("tell me all")) == [200]
    await world.telegram.wait_for(lambda: held.hits)
    running.process.ctx.sends.abandon()
    running.process.ctx.sends._calls.clear()
    await world.until(marked, lambda rows: rows[0][0] == 1)
    assert await post(running, ada.command("/stop")) == [200]
    held.cancel()
    await settle(world)
    assert await world.rows(STATES) == [(1, "dropped"), (2, "dropped"), (3, "dropped")]
    assert world.telegram.texts(ADA)[-1] == STOPPED


async def test_with_nothing_to_stop_the_person_is_told_so(world: World) -> None:
    running = await world.start(agent=Gated())
    assert await post(running, Person(ADA).command("/stop")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == [NOTHING]
