"""Leaving well: nobody waits for a lease to run out, and nothing is counted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from bot.runs import shutdown
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Echo, Gated
from tests.kit.conversation import ADA, BOB, PATIENT, endings, post
from tests.kit.passing import settle
from tests.limits import PATIENCE, until
from tests.world import World

COUNTS = "SELECT deaths, failures FROM runs"


async def test_a_turn_that_ends_within_the_grace_is_answered_by_the_leaver(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    leaving = asyncio.create_task(running.stop(grace=60.0))
    await world.until("SELECT draining FROM holders", lambda rows: bool(rows[0][0]))
    agent.go.set()
    await leaving
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert await endings(world) == [("hello", "answered")]
    assert await world.rows("SELECT count(*) FROM holders WHERE gone_at IS NULL") == [(0,)]


async def test_b69_who_leaves_claims_nothing_new_and_still_records_what_comes(
    world: World,
) -> None:
    agent = Gated()
    leaver = await world.start(agent=agent, **PATIENT)
    ada, bob = Person(ADA), Person(BOB)
    assert await post(leaver, ada.text("one")) == [200]
    await agent.begun.wait()
    leaving = asyncio.create_task(leaver.stop(grace=60.0))
    await world.until("SELECT draining FROM holders", lambda rows: bool(rows[0][0]))
    assert await post(leaver, bob.text("two"), bob.text("three"), ada.text("four")) == [200] * 3
    agent.go.set()
    await leaving
    assert agent.calls == {"one": 1}
    assert world.telegram.texts(ADA) == ["re: one"]
    await world.start(agent=Echo(), **PATIENT)
    await settle(world)
    assert world.telegram.texts(BOB) == ["re: two", "re: three"]
    assert world.telegram.texts(ADA) == ["re: one", "re: four"]
    assert set(await world.rows(COUNTS)) == {(0, 0)}


async def test_what_is_not_done_by_the_end_of_the_grace_is_given_back_uncounted(
    world: World,
) -> None:
    agent = Gated()
    leaver = await world.start(agent=agent, **PATIENT)
    assert await post(leaver, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    await leaver.stop(grace=2.2)
    assert agent.cut == ["hello"]
    assert await world.rows("SELECT state, holder FROM runs") == [("ready", None)]
    agent.go.set()
    heir = await world.start(agent=agent, **PATIENT)
    await world.settled()
    assert heir.process.lease.holds()
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert await world.rows(COUNTS) == [(0, 0)]


async def test_a_call_that_had_not_begun_by_the_end_of_the_grace_is_proven_not_sent(
    world: World,
) -> None:
    about_to_call = asyncio.Event()

    async def reached(checkpoint: Checkpoint) -> None:
        if checkpoint is Checkpoint.BEFORE_SEND:
            about_to_call.set()
            await asyncio.Event().wait()

    leaver = await world.start(agent=Echo(), reached=reached, **PATIENT)
    assert await post(leaver, Person(ADA).text("hello")) == [200]
    await about_to_call.wait()
    await leaver.stop(grace=1.0)
    assert await world.rows("SELECT state FROM outbox") == [("pending",)]
    await world.start(agent=Echo(), **PATIENT)
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_a_second_process_takes_over_before_the_lease_is_over(world: World) -> None:
    agent, heir = Gated(), Echo()
    leaver = await world.start(agent=agent, **PATIENT)
    assert await post(leaver, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    await world.start(agent=heir, **PATIENT)
    await leaver.stop(grace=0.0)
    await world.settled()
    assert heir.calls["hello"] == 1
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_a_heartbeat_while_it_leaves_takes_nothing_for_lost(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def reached(checkpoint: Checkpoint) -> None:
        if checkpoint is Checkpoint.GIVEN_BACK:
            await leaver.process.lease.renew()

    agent = Gated()
    leaver = await world.start(agent=agent, reached=reached, **PATIENT)
    assert await post(leaver, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    await leaver.stop(grace=0.0)
    assert await world.rows("SELECT count(*) FROM holders WHERE gone_at IS NULL") == [(0,)]
    assert leaver.process.lease.lapses == 0
    assert "lease lost" not in caplog.text


@dataclass
class Long:
    """A reply of three parts, made once."""

    calls: list[str] = field(default_factory=list)

    async def __call__(self, turn: Turn) -> str:
        self.calls.append(turn.text)
        return "\n\n".join(f"part {n} ".ljust(3900, ".") for n in (1, 2, 3))


async def test_a_send_under_way_keeps_its_receipt_within_the_grace(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutdown, "_FOR_SENDS", PATIENCE)
    agent = Long()
    held = world.telegram.fail("sendMessage", faults.held_after_storing())
    leaver = await world.start(agent=agent, telegram_read_timeout=600.0, **PATIENT)
    assert await post(leaver, Person(ADA).text("tell me all")) == [200]
    await world.telegram.wait_for(lambda: held.hits)
    leaving = asyncio.create_task(leaver.stop(grace=PATIENCE + 1.0))
    await world.until("SELECT count(*) FROM outbox WHERE state = 'sending'", lambda r: r[0][0] == 1)
    await until(lambda: not any(t.get_name().startswith("run-") for t in asyncio.all_tasks()))
    assert await world.rows("SELECT state FROM runs") == [("running",)]
    held.release()
    await leaving
    assert await world.rows("SELECT state FROM outbox WHERE part = 1") == [("sent",)]
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert [t[:6] for t in world.telegram.texts(ADA)] == ["part 1", "part 2", "part 3"]
    assert await endings(world) == [("tell me all", "answered")]
    assert len(agent.calls) == 1


@pytest.mark.parametrize("twice", [False, True], ids=["end of the grace", "told twice"])
async def test_a_send_that_does_not_end_is_uncertain_and_the_rest_goes_on(
    world: World, twice: bool
) -> None:
    agent = Long()
    hung = world.telegram.fail("sendMessage", faults.hang_after_storing())
    leaver = await world.start(agent=agent, telegram_read_timeout=600.0, **PATIENT)
    assert await post(leaver, Person(ADA).text("tell me all")) == [200]
    await world.telegram.wait_for(lambda: hung.hits)
    leaving = asyncio.create_task(leaver.stop(grace=600.0 if twice else 1.0))
    if twice:
        await world.until("SELECT draining FROM holders", lambda rows: bool(rows[0][0]))
        assert leaver.process.worker is not None
        leaver.process.worker.abandon()
        leaver.process.ctx.sends.hurry()
    async with asyncio.timeout(PATIENCE):
        await leaving
    assert await world.rows("SELECT state FROM outbox WHERE part = 1") == [("uncertain",)]
    assert await world.rows("SELECT state, ending FROM runs") == [("ready", None)]
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    shown = [t[:6] for t in world.telegram.texts(ADA)]
    assert shown[:3] == ["part 1", "part 2", "part 3"]
    assert len(shown) == 4, "and the note about part 1"
    assert await endings(world) == [("tell me all", "uncertain")]
    assert await world.rows(COUNTS) == [(0, 0)]
    assert len(agent.calls) == 1


async def test_leaving_without_a_database_ends_all_the_same(world: World) -> None:
    agent = Gated()
    leaver = await world.start(agent=agent, **PATIENT)
    assert await post(leaver, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    leaver.away(True)
    async with asyncio.timeout(PATIENCE):
        await leaver.stop(grace=0.5)
    agent.go.set()
    await world.start(agent=agent, **PATIENT)
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: hello"]
