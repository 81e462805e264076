"""The operator's list of what stands still: since when, why, and the next command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.domain.ending import Ending
from bot.domain.errors import Retry
from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from bot.operations.reports.explain import explain_run
from bot.operations.reports.stuck import Stuck, Trouble, find_stuck
from bot.wiring import Role
from storage.engine.database import Database, DatabaseSettings
from storage.views.runs import RunFilter, runs_listed
from tests.fakes import faults
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.world import Running, World, dies_at

ADA = 700100222


async def stuck(process: Running, older: float = 30.0) -> Sequence[Stuck]:
    return await process.process.rt.db.read(find_stuck, older, 15.0)


async def test_nothing_is_stuck_when_everything_is_answered(world: World) -> None:
    process = await world.start(agent=repeats)
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    assert await stuck(process, older=0) == []


async def test_b71_the_age_of_the_oldest_waiting_run_is_shown(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, burst="each")
    ada = Person(ADA)
    await process.post_update(ada.text("one"))
    await agent.begun.wait()
    await process.post_update(ada.text("two"))
    await process.post_update(ada.text("three"))
    assert await stuck(process) == []
    (blocked,) = await stuck(process, older=0.0)
    assert (blocked.kind, blocked.id) == (Trouble.BLOCKED, 1)
    assert "2 runs wait" in blocked.why
    assert "behind run 1, which is running" in blocked.why
    agent.go.set()
    await world.settled()


async def test_a_ready_run_that_nobody_claims_says_why(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    (late,) = await stuck(web, older=0)
    assert (late.kind, late.id) == (Trouble.WORKER_GONE, 1)
    assert "no worker is alive" in late.why
    assert late.act.startswith("answerback serve")


async def test_b15_a_send_without_an_answer_is_listed_as_sent_unknown(world: World) -> None:
    world.telegram.fail("sendMessage", faults.hang_after_storing(), nth=1)
    process = await world.start(agent=repeats)
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    (doubtful,) = [s for s in await stuck(process) if s.kind is Trouble.UNCERTAIN]
    assert doubtful.kind.value == "sent? unknown"
    assert doubtful.act.startswith(f"answerback outbox resolve {doubtful.id} --delivered")


async def test_b19_a_death_after_the_send_is_listed_as_sent_unknown(world: World) -> None:
    dying: list[Running] = []
    reached = dies_at(Checkpoint.AFTER_SEND, lambda: dying[0])
    dying.append(await world.start(agent=repeats, reached=reached))
    ada = Person(ADA)
    await dying[0].post_update(ada.text("hello"))
    await world.telegram.wait_for(lambda: world.telegram.texts(ADA))
    await dying[0].die()
    process = await world.start(agent=repeats)
    await world.settled()
    assert world.telegram.texts(ADA).count("hello") == 1
    assert Trouble.UNCERTAIN in [s.kind for s in await stuck(process)]
    await process.post_update(ada.text("and now?"))
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == "and now?"


async def test_a_run_of_a_dead_process_names_its_process(world: World) -> None:
    dying: list[Running] = []
    reached = dies_at(Checkpoint.AGENT_RETURNED, lambda: dying[0])
    first = await world.start(
        agent=repeats, reached=reached, holder_name="first", lease_seconds=45.0
    )
    dying.append(first)
    await dying[0].post_update(Person(ADA).text("hello"))
    await world.until("SELECT attempts FROM runs", lambda rows: rows == [(1,)])
    await dying[0].die()
    world.advance(60)
    beside = Database(DatabaseSettings(world.database_url, pool=1), world.clock)
    try:
        (dead,) = await beside.read(find_stuck, 30.0, 15.0)
    finally:
        await asyncio.to_thread(beside.close)
    assert (dead.kind, dead.id) == (Trouble.DEAD_LEASE, 1)
    assert "first/1 died or hangs" in dead.why
    assert dead.since >= 45
    assert dead.act.startswith("answerback recover")


async def test_a_refused_answer_and_a_blocked_chat_are_shown(world: World) -> None:
    process = await world.start(agent=repeats)
    world.telegram.fail("sendMessage", telegram_faults.blocked())
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    (refused,) = await stuck(process)
    assert refused.kind is Trouble.REFUSED
    assert "runs requeue 1" in refused.act


async def test_a_run_that_is_put_off_says_when_it_is_due(world: World) -> None:
    async def later(turn: Turn) -> str:
        raise Retry(after=600, reason="the shop is closed")

    process = await world.start(agent=later)
    await process.post_update(Person(ADA).text("hello"))
    put_off = "SELECT state FROM runs WHERE not_before > 0"
    await world.until(put_off, lambda rows: rows == [("ready",)])
    (late,) = await stuck(process, older=0)
    assert late.kind is Trouble.DELAYED
    assert "it is due at " in late.why
    assert "the shop is closed" in late.why
    assert late.act.startswith("answerback runs requeue 1")


async def test_a_dead_letter_and_a_channel_that_is_down_are_shown(world: World) -> None:
    process = await world.start(agent=repeats)
    await process.post_update({"update_id": 1, "message": {"chat": "nonsense"}})
    world.telegram.fail("sendMessage", telegram_faults.unauthorized())
    await process.post_update(Person(ADA).text("hello"))
    await world.until(
        "SELECT 1 FROM accounts WHERE down_since IS NOT NULL", lambda rows: rows != []
    )
    kinds = [s.kind for s in await stuck(process)]
    assert kinds == [Trouble.CHANNEL_DOWN, Trouble.DEAD_LETTER]


async def test_why_names_the_verdict_and_what_shows_it(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(ADA).text("hello"))
    await agent.begun.wait()
    rt = process.process.rt
    found = await rt.db.read(explain_run, rt, 1, 15.0)
    assert found.verdict == "think"
    assert "works on it" in found.says
    assert ("reply stored", "no") in found.evidence
    agent.go.set()
    await world.settled()
    ended = await rt.db.read(explain_run, rt, 1, 15.0)
    assert ended.verdict == "answered"
    assert ended.says.startswith("it ended as answered. Every part has a receipt")


async def test_b12_what_got_too_old_is_closed_with_a_reason_that_can_be_listed(
    world: World,
) -> None:
    web = await world.start(agent=repeats, role=Role.WEB, burst="each")
    ada = Person(ADA)
    for text in ("one", "two", "three", "four"):
        await web.post_update(ada.text(text))
    await web.stop()
    world.advance(3 * 86_400)
    process = await world.start(agent=repeats)
    await world.settled()
    expired = RunFilter(endings=(Ending.EXPIRED,))
    listed = await process.process.rt.db.read(runs_listed, expired, 15.0)
    assert [line.id for line in listed] == [4, 3, 2, 1]
    assert {line.detail for line in listed} == {"older than ANSWER_MAX_AGE when its turn came"}


async def test_readiness_names_claims_that_do_not_work(world: World) -> None:
    process = await world.start(agent=repeats)
    well = await process.process.readiness()
    assert {check.name for check in well} >= {"lease", "database", "sweep", "claims"}
    assert all(check.well for check in well)
    process.process.tasks.tasks["claim"].cancel()
    world.clock.advance(14)
    process.process.last_sweep = world.clock.monotonic()
    await process.process.lease.renew()
    world.clock.advance(6)
    broken = [check.name for check in await process.process.readiness() if not check.well]
    assert {"claims", "tasks"} <= set(broken)
