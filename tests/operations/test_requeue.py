"""Requeueing a run: one answer in all, whatever was sent before and whoever asks twice."""

from __future__ import annotations

import asyncio
import os

from bot.domain.errors import GiveUp, Retry
from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from bot.operations import runs
from bot.operations.actions import Result, apply
from bot.wiring import Role, operator_session
from tests.fakes import faults
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.updates import Person
from tests.kit.conversation import MORTAL, PATIENT
from tests.kit.operating import ANN, noted, requeue, runs_of
from tests.world import Running, World, dies_at

ADA = 700100201
BOB = 700100202
CY = 700100203


class Fickle:
    """An agent that gives up on what contains `no`, until it is told to work."""

    def __init__(self) -> None:
        self.works = False
        self.calls = 0

    async def __call__(self, turn: Turn) -> str:
        self.calls += 1
        if "no" in turn.text and not self.works:
            raise GiveUp("I can't do that.")
        return f"you said: {turn.text}"


async def test_b97_a_run_that_failed_is_answered_once_though_two_shells_requeue_it(
    world: World,
) -> None:
    agent = Fickle()
    process = await world.start(agent=agent)
    world.telegram.fail(
        "sendMessage", telegram_faults.refused(400, "Bad Request: message is too long"), times=2
    )
    await process.post_update(Person(ADA).text("no hope"))
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "failed")]
    agent.works = True
    acts = await asyncio.gather(requeue(process, 1), requeue(process, 1))
    assert sorted(a.result for a in acts) == [Result.DONE, Result.TOO_LATE]
    await world.settled()
    assert world.telegram.texts(ADA) == ["you said: no hope"]
    assert [who for who, _, _ in await noted(world, 1)] == ["ann@session", "ann@session"]


async def test_b97_an_answered_run_is_not_requeued(world: World) -> None:
    process = await world.start(agent=Fickle())
    await process.post_update(Person(BOB).text("hello"))
    await world.settled()
    acted = await requeue(process, 1)
    assert acted.result is Result.REFUSED
    assert "answer twice" in acted.said
    await world.settled()
    assert world.telegram.texts(BOB) == ["you said: hello"]


async def test_b97_an_uncertain_run_is_sent_once_more_only_when_that_may_double_it(
    world: World,
) -> None:
    agent = Fickle()
    process = await world.start(agent=agent, uncertain_delivery="hold")
    world.telegram.fail("sendMessage", faults.drop_after_storing())
    await process.post_update(Person(CY).text("hello"))
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "uncertain")]
    refused = await requeue(process, 1)
    assert refused.result is Result.REFUSED
    assert "may have arrived" in refused.said
    await world.settled()
    assert len(world.telegram.calls_of("sendMessage", CY)) == 1
    acts = await asyncio.gather(
        requeue(process, 1, may_duplicate=True), requeue(process, 1, may_duplicate=True)
    )
    assert sorted(a.result for a in acts) == [Result.DONE, Result.TOO_LATE]
    await world.settled()
    assert len(world.telegram.calls_of("sendMessage", CY)) == 2
    assert agent.calls == 1
    assert await world.rows("SELECT attempts, state FROM outbox") == [(2, "sent")]
    assert await runs_of(world) == [(1, "ended", "answered")]
    assert await noted(world, 1) == [("ann@session", "requeued", "a test")]


async def test_a_rehearsal_says_what_would_happen_and_changes_nothing(world: World) -> None:
    process = await world.start(agent=Fickle())
    await process.post_update(Person(ADA).text("no"))
    await world.settled()
    planned = await requeue(process, 1, dry_run=True)
    assert planned.result is Result.DONE
    assert await runs_of(world) == [(1, "ended", "apologised")]
    assert await noted(world, 1) == []


async def test_a_run_of_a_live_process_is_left_alone(world: World) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        entered.set()
        await leave.wait()
        return "done"

    process = await world.start(agent=slow)
    await process.post_update(Person(ADA).text("hello"))
    await entered.wait()
    acted = await requeue(process, 1)
    assert acted.result is Result.REFUSED
    assert "live process" in acted.said
    leave.set()
    await world.settled()
    assert world.telegram.texts(ADA) == ["done"]


async def test_a_run_of_a_dead_process_is_taken_from_it_while_no_service_runs(
    world: World,
) -> None:
    dying: list[Running] = []
    reached = dies_at(Checkpoint.CLAIMED, lambda: dying[0])
    dying.append(await world.start(agent=Fickle(), reached=reached, **MORTAL))
    await dying[0].post_update(Person(ADA).text("hello"))
    await asyncio.gather(dying[0].end, return_exceptions=True)
    await world.lease_runs_out(os.getpid())
    async with operator_session(world.settings(**MORTAL)) as session:
        acted = await apply(session.rt, lambda tx: runs.requeue(tx, session.rt, ANN, 1))
    assert acted.result is Result.DONE
    assert "dead holder" in acted.said
    assert await runs_of(world) == [(1, "ready", None)]
    await world.start(agent=Fickle())
    await world.settled()
    assert world.telegram.texts(ADA) == ["you said: hello"]


async def test_an_expired_run_that_is_asked_for_again_is_answered(world: World) -> None:
    web = await world.start(agent=Fickle(), role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    world.advance(3 * 86_400)
    process = await world.start(agent=Fickle())
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "expired")]
    assert (await requeue(process, 1)).result is Result.DONE
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == "you said: hello"


async def test_a_run_that_was_put_off_becomes_due(world: World) -> None:
    asked = 0

    async def later(turn: Turn) -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise Retry(after=600)
        return "now"

    process = await world.start(agent=later, **PATIENT)
    await process.post_update(Person(ADA).text("hello"))
    put_off = "SELECT state FROM runs WHERE not_before > created_at + 60"
    await world.until(put_off, lambda r: r == [("ready",)])
    assert (await requeue(process, 1)).result is Result.DONE
    await world.settled()
    assert world.telegram.texts(ADA) == ["now"]
