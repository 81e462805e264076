"""Clocks on walls are set by an hour, forward and back, while the program works."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from datetime import datetime, tzinfo
from typing import Any

import pytest

from bot.domain.turn import Turn
from bot.privacy.readable import OPERATORS, copied
from storage import retention
from storage.engine.database import Database, DatabaseSettings
from storage.statements.tx import Tx
from storage.views import record
from storage.views.conversation import conversation
from storage.views.history import ChatBefore, history
from storage.views.progress import run_progress
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Echo, Gated, Held
from tests.kit.conversation import ADA, BOB, MORTAL, PATIENT, post
from tests.kit.passing import outlive
from tests.world import Running, World, open_world

HOUR = 3600.0
BEATING: dict[str, Any] = {"lease_seconds": 30.0, "heartbeat_seconds": 0.3}
"""Many beats in a lease that no slow machine loses."""
STEPS = pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forward"])
_OURS = ("bot", "channels", "storage", "apscheduler")


def set_wall(world: World, patch: pytest.MonkeyPatch, by: float) -> None:
    """Set the wall clock of every process: for our clock, and for whoever asks Python's."""
    asked = time.time

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Wrong:
            return cls.fromtimestamp(asked() + by, tz)

    patch.setattr(time, "time", lambda: asked() + by)
    for name, module in tuple(sys.modules.items()):
        if name.startswith(_OURS) and getattr(module, "datetime", None) is datetime:
            patch.setattr(module, "datetime", Wrong)
    world.clock.wall_is_wrong_by = by


def set_database(world: World, by: float) -> None:
    """Set the clock of the database alone."""
    world.clock.database_is_wrong_by = by
    world.advance(0.0)


def set_due_times_clock(world: World, patch: pytest.MonkeyPatch, by: float) -> None:
    """Set the clock of due times: SQLite's is the machine's."""
    if world.database_url.startswith("sqlite"):
        set_wall(world, patch, by)
    else:
        set_database(world, by)


async def beats(world: World, running: Running) -> None:
    """Wait until the process has renewed, looked for dead ones and measured once more."""
    question = "SELECT renewed_at FROM holders WHERE gone_at IS NULL"
    [[renewed]], swept = await world.rows(question), running.process.last_sweep
    await world.until(question, lambda rows: rows[0][0] > renewed + 0.5)
    await world.until(question, lambda _: running.process.last_sweep > swept)
    assert running.process.lease.holds()


@STEPS
async def test_a_step_of_the_wall_clock_stops_no_heartbeat_and_no_sweep(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    running = await world.start(agent=Echo(), **BEATING)
    assert await post(running, Person(ADA).text("before")) == [200]
    await world.settled()
    set_wall(world, monkeypatch, step)
    await beats(world, running)
    assert await post(running, Person(BOB).text("after")) == [200]
    await world.settled()
    assert (world.telegram.texts(ADA), world.telegram.texts(BOB)) == (["re: before"], ["re: after"])
    assert await world.rows("SELECT count(*) FROM holders") == [(1,)], "it never lost its lease"


@STEPS
async def test_what_waits_for_its_moment_waits_no_longer_when_the_clock_is_set(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """A long text waits for its next piece; its due time stands in the database."""
    running = await world.start(agent=Echo(), **BEATING)
    await beats(world, running)
    assert await post(running, Person(ADA).text("x" * 3000)) == [200]
    await running.process.sweep()
    set_due_times_clock(world, monkeypatch, step)
    world.advance(3.0)
    await running.process.sweep()
    await world.until("SELECT state FROM runs", lambda rows: rows == [("ended",)])
    assert len(world.telegram.texts(ADA)) == 1


async def with_one_at_work_and_one_that_waits(world: World) -> tuple[Running, Held]:
    """A process whose agent holds the message "one", while "two" waits behind it."""
    agent = Held()
    running = await world.start(agent=agent, burst="each", **BEATING)
    await beats(world, running)
    await world.twilio.inbound("one")
    await agent.begun.wait()
    await world.twilio.inbound("two")
    await running.process.sweep()
    return running, agent


async def test_what_waits_is_no_older_because_the_clock_was_set_by_days(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By more than an answer may be late, and than WhatsApp's window is open."""
    running, agent = await with_one_at_work_and_one_that_waits(world)
    set_due_times_clock(world, monkeypatch, 48 * HOUR)
    await running.process.sweep()
    agent.go.set()
    await world.settled()
    assert world.twilio.texts() == ["one", "two"]


@STEPS
async def test_messages_that_tell_no_time_of_their_own_keep_their_order(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """Twilio's webhooks tell none."""
    running, agent = await with_one_at_work_and_one_that_waits(world)
    set_due_times_clock(world, monkeypatch, step)
    await running.process.sweep()
    await world.twilio.inbound("three")
    set_due_times_clock(world, monkeypatch, 0.0)
    await world.twilio.inbound("four")
    await running.process.sweep()
    agent.go.set()
    await world.settled()
    assert world.twilio.texts() == ["one", "two", "three", "four"]


def ways_to_tell(tx: Tx, chat: int) -> dict[str, list[str]]:
    """The texts of a chat as they are told to whom asks for them."""
    asked = history(tx, [ChatBefore(chat, 0)], 50)[0]
    copy = copied(tx, chat, OPERATORS, 1 << 20).replace("\n    ", "\\n")
    second = sorted({row["run"] for row in record.messages(tx, chat)})[1]
    progress = run_progress(tx, second)
    assert progress is not None
    return {
        "history": [line.text for line in asked],
        "conversation": [line.text for line in conversation(tx, chat, 50).lines],
        "copy": [line.split(": ", 1)[1].replace("\\n", "\n") for line in copy.splitlines()],
        "messages": [row["text"] for row in record.messages(tx, chat)],
        "turn": [message.text for message in progress.messages],
    }


@STEPS
async def test_what_was_said_is_told_in_its_order_though_the_clock_was_set(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """To the agent, as one turn and as what was said before, to operators, and in a copy."""
    agent = Gated()
    running = await world.start(agent=agent, **BEATING)
    await beats(world, running)

    async def say(text: str, wrong_by: float) -> None:
        set_due_times_clock(world, monkeypatch, wrong_by)
        await running.process.sweep()
        await world.twilio.inbound(text)

    await say("one", 0.0)
    await agent.begun.wait()
    for text, wrong_by in (("two", 0.0), ("three", step), ("four", 0.0)):
        await say(text, wrong_by)
    agent.go.set()
    await world.settled()
    for text, wrong_by in (("five", step), ("six", 0.0)):
        await say(text, wrong_by)
        await world.settled()
    assert agent.texts == ["one", "two\nthree\nfour", "five", "six"]
    [(chat,)] = await world.rows("SELECT id FROM chats")
    told = await running.process.rt.db.read(ways_to_tell, chat)
    answers = [f"re: {text}" for text in agent.texts]
    first, joined, *later = answers
    end = ["five", later[0], "six", later[1]]
    assert told["history"] == ["one", first, "two", "three", "four", joined, *end]
    for page in (told["conversation"], told["copy"]):
        assert [text for text in page if text in answers] == answers
        assert [text for text in page if text not in answers] == told["messages"]
        assert page[-5:] == [joined, *end]
    assert told["messages"] == ["one", "two", "three", "four", "five", "six"]
    assert told["turn"] == ["two", "three", "four"]


async def test_a_limit_of_a_platform_lasts_no_longer_when_the_clock_is_set_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await world.start(agent=Echo(), **BEATING)
    await beats(world, running)
    world.telegram.fail("sendMessage", faults.too_many(20), times=1)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await world.until("SELECT state FROM outbox", lambda rows: rows == [("pending",)])
    await world.until("SELECT state FROM runs", lambda rows: rows == [("ready",)])
    await running.process.sweep()
    set_due_times_clock(world, monkeypatch, -HOUR)
    await running.process.sweep()
    assert world.telegram.texts(ADA) == []
    world.advance(25.0)
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: hello"]


def take_no_work(running: Running) -> None:
    """Claim nothing from now on, as one that hands over."""
    assert running.process.worker is not None
    running.process.worker.stop_claiming()


LEFT = """
SELECT r.state, r.not_before - answerback_now(), r.deadline_at - answerback_now(),
       r.deadline_at - r.idle_since, c.not_before - answerback_now()
FROM runs r JOIN chats c ON c.id = r.chat ORDER BY r.id
"""


@STEPS
async def test_one_step_of_the_clock_is_followed_once_however_many_processes_see_it(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """One person waits for a retry, and another for an agent, while the clock is set twice."""

    begun = asyncio.Event()

    async def agent(turn: Turn) -> str:
        if turn.text == "slow":
            begun.set()
            await asyncio.Event().wait()
        return turn.text

    pair = [await world.start(agent=agent, holder_name=name, **PATIENT) for name in ("one", "two")]
    world.telegram.fail("sendMessage", faults.too_many(60), times=1)
    assert await post(pair[0], Person(ADA).text("hello")) == [200]
    await world.until("SELECT state, not_before > 0 FROM runs", lambda rows: rows == [("ready", 1)])
    assert await post(pair[1], Person(BOB).text("slow")) == [200]
    await begun.wait()
    world.stop_time()
    for one in pair:
        take_no_work(one)  # The retry must stay until the clock is followed.
        await one.process.sweep()
    before = await world.rows(LEFT)
    assert before[0][1] == pytest.approx(60, abs=50)
    for by in (step, 0.0, 2 * step, step):
        set_due_times_clock(world, monkeypatch, by)
        for one in pair:
            await one.process.lease.renew()
        late = await world.start(agent=agent, holder_name="late", **PATIENT)
        take_no_work(late)
        for one in (late, *pair, *pair, late):
            await one.process.sweep()
        await late.stop()
        left = await world.rows(LEFT)
        assert [state for state, *_ in left] == ["ready", "running"]
        assert left[0][1:] == pytest.approx(before[0][1:], abs=1)
        assert left[1][2:4] == pytest.approx(before[1][2:4], abs=1)


@STEPS
async def test_a_step_is_followed_by_the_next_process_where_nobody_lives_who_saw_it(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """Killed between the step and the next look, again and again."""
    dying = await world.start(agent=Echo(), **MORTAL)
    world.telegram.fail("sendMessage", faults.too_many(900), times=1)
    assert await post(dying, Person(ADA).text("hello")) == [200]
    await world.until("SELECT state, not_before > 0 FROM runs", lambda rows: rows == [("ready", 1)])
    world.stop_time()
    take_no_work(dying)
    await dying.process.sweep()
    await outlive(world, dying)
    await dying.process.sweep()
    [before] = await world.rows(LEFT)
    for by in (step, 0.0, -step):
        await dying.die()
        set_due_times_clock(world, monkeypatch, by)
        dying = await world.start(agent=Echo(), **MORTAL)
        take_no_work(dying)
        await dying.process.sweep()
        [left] = await world.rows(LEFT)
        assert left[:2] == pytest.approx(before[:2], abs=1)


@STEPS
async def test_a_step_that_was_undone_is_undone_by_who_saw_neither(
    world: World, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """One process follows the step and dies; the other one was too busy to look meanwhile."""
    pair = [await world.start(agent=Echo(), holder_name=name, **MORTAL) for name in ("one", "two")]
    world.telegram.fail("sendMessage", faults.too_many(900), times=1)
    assert await post(pair[0], Person(ADA).text("hello")) == [200]
    await world.until("SELECT state, not_before > 0 FROM runs", lambda rows: rows == [("ready", 1)])
    world.stop_time()
    for one in pair:
        take_no_work(one)
        await one.process.sweep()
    await outlive(world, *pair)
    for one in pair:
        await one.process.sweep()
    [before] = await world.rows(LEFT)
    set_due_times_clock(world, monkeypatch, step)
    await pair[0].process.lease.renew()
    await pair[0].process.sweep()
    await pair[0].die()
    set_due_times_clock(world, monkeypatch, 0.0)
    await pair[1].process.lease.renew()
    await pair[1].process.sweep()
    [left] = await world.rows(LEFT)
    assert left[:2] == pytest.approx(before[:2], abs=1)


async def test_of_two_processes_that_see_one_step_at_once_one_follows_it(
    world: World,
) -> None:
    """Both read the same rows before either moves them."""
    ways = [Database(DatabaseSettings(world.database_url, pool=1), world.clock) for _ in range(2)]
    try:
        for followed, step in ((0.0, -HOUR), (-HOUR, HOUR), (0.0, HOUR)):
            moves = [way.write(retention.follow_clock, followed, step) for way in ways]
            assert sorted(await asyncio.gather(*moves)) == [False, True]
            assert (await ways[0].read(retention.due_times, "")).followed == followed + step
    finally:
        for way in ways:
            way.close()


@pytest.fixture
async def on_postgres(postgres_url: str) -> AsyncIterator[World]:
    async with open_world(postgres_url) as world:
        yield world


@STEPS
async def test_a_step_of_the_databases_clock_takes_nothing_from_the_living(
    on_postgres: World, step: float
) -> None:
    world, agent = on_postgres, Gated()
    terms: dict[str, Any] = {**BEATING, "still_working_after": 1e6}
    owner = await world.start(agent=agent, **terms)
    judge = await world.start(agent=agent, holder_name="judge", **terms)
    assert await post(owner, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    set_database(world, step)
    for _ in range(2):
        await judge.process.sweep()
        await beats_of_all(world, 2)
    agent.go.set()
    await world.settled()
    assert agent.calls == {"hello": 1}
    assert await world.rows("SELECT deaths, failures, attempts FROM runs") == [(0, 0, 1)]
    assert await world.rows("SELECT count(*) FROM holders") == [(2,)]
    assert world.telegram.texts(ADA) == ["re: hello"]


async def beats_of_all(world: World, processes: int) -> None:
    """Wait until every process has renewed after this moment."""
    [[moment]] = await world.rows("SELECT answerback_lease_now()")
    question = "SELECT count(*) FROM holders WHERE renewed_at BETWEEN :m AND :m + 60"
    await world.until(
        question.replace(":m", repr(float(moment))), lambda rows: rows[0][0] == processes
    )


async def test_after_a_step_back_of_the_databases_clock_the_dead_are_found_in_time(
    on_postgres: World,
) -> None:
    world, agent, heir = on_postgres, Gated(), Echo()
    owner = await world.start(agent=agent, **MORTAL)
    assert await post(owner, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    survivor = await world.start(agent=heir, holder_name="heir", **MORTAL)
    await owner.die()
    set_database(world, -HOUR)
    await survivor.process.sweep()
    await outlive(world, survivor)
    await survivor.process.sweep()
    sql = "SELECT count(*) FROM holders WHERE gone_at IS NOT NULL"
    await world.until(sql, lambda rows: rows[0][0] == 1)
