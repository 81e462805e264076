"""The lease: the time for which a process may believe in itself, and the right to call it dead."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from bot.domain.delivery import NotSent, Outcome
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import PartBody
from bot.runs.turn import STORE
from channels.telegram.channel import TelegramChannel
from storage.engine.database import Database, DatabaseSettings
from storage.engine.name_lock import is_held
from storage.statements.tx import Tx
from tests.clocks import ShiftedClock
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Echo, Gated
from tests.kit.conversation import ADA, MORTAL, endings, post, until_running
from tests.kit.passing import outlive, settle
from tests.limits import PATIENCE, moment, until
from tests.world import Running, World, open_world

CALM: dict[str, Any] = {"lease_seconds": 15.0, "heartbeat_seconds": 5.0}
_AGE = "SELECT answerback_lease_now() - renewed_at FROM holders ORDER BY id LIMIT 1"
_LEFT_BEHIND = "SELECT deaths, failures, attempts FROM runs"


class Stopping(ShiftedClock):
    """The world's clock, but its monotonic hand can be stopped: what a process sees that was
    stopped between its last look at its lease and what it did next."""

    def __init__(self, world: ShiftedClock) -> None:
        super().__init__()
        self._world = world
        self.stands: float | None = None

    def wall(self) -> float:
        return self._world.wall()

    def boot(self) -> tuple[str, float]:
        return self._world.boot()

    def monotonic(self) -> float:
        return self._world.monotonic() if self.stands is None else self.stands

    def stop(self) -> None:
        self.stands = self._world.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._world.sleep(seconds)


class Proof:
    """A call that has begun, and tells later that it reached nobody."""

    def __init__(self) -> None:
        self.begun, self.told = asyncio.Event(), asyncio.Event()


class Wrong(ShiftedClock):
    """The world's clock with a wall clock that is `wrong_by` seconds off."""

    def __init__(self, world: ShiftedClock, wrong_by: float) -> None:
        super().__init__()
        self._world = world
        self._wrong_by = wrong_by

    def wall(self) -> float:
        return self._world.wall() + self._wrong_by

    def boot(self) -> tuple[str, float]:
        return self._world.boot()

    def monotonic(self) -> float:
        return self._world.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._world.sleep(seconds)


async def test_the_window_closes_before_the_database_would_call_the_holder_dead(
    world: World,
) -> None:
    running = await world.start(agent=Echo(), **CALM)
    running.stand_still()
    lease = running.process.lease
    world.stop_time()
    await lease.renew()
    world.advance(13.0)
    assert lease.holds()
    world.advance(1.01)
    assert not lease.holds()
    [[age]] = await world.rows(_AGE)
    assert age == pytest.approx(14.01, abs=1e-3), "its row is still alive"


async def test_a_process_that_lost_its_lease_stops_its_turns_and_begins_anew_uncounted(
    world: World,
) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **CALM)
    running.stand_still()
    assert await post(running, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    world.advance(15.0)
    running.process.lease.watch()
    await world.until("SELECT count(*) FROM runs WHERE state = 'running'", lambda r: r[0][0] == 1)
    assert running.process.worker is not None
    assert not running.process.lease.holds()
    agent.go.set()
    await running.process.lease.renew()
    await world.settled()
    assert agent.cut == ["hello"]
    assert await world.rows(_LEFT_BEHIND) == [(0, 0, 2)]
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_b65_a_zombie_that_goes_on_sends_nothing_and_moves_nothing(world: World) -> None:
    """Its clock did not tell it that time passed: only the rows stop it."""
    clock = Stopping(world.clock)
    slow, quick = Gated("A: "), Gated("B: ")
    terms: dict[str, Any] = {
        "lease_seconds": 30.0,
        "heartbeat_seconds": 10.0,
        "still_working_after": 1e6,
    }
    zombie = await world.start(agent=slow, clock=clock, **terms)
    assert await post(zombie, Person(ADA).text("hello")) == [200]
    await slow.begun.wait()
    zombie.stand_still()
    clock.stop()
    world.advance(45.0)
    quick.go.set()
    await world.start(agent=quick, **terms)
    await world.settled()
    rows = "SELECT * FROM runs, outbox WHERE outbox.run = runs.id"
    before = await world.rows(rows)
    assert zombie.process.lease.holds()
    slow.go.set()
    await asyncio.wait([t for t in asyncio.all_tasks() if t.get_name().startswith("run-")])
    assert await world.rows(rows) == before
    assert world.telegram.texts(ADA) == ["B: hello"]
    assert await world.rows("SELECT attempts, fence, ending FROM runs") == [(2, 4, "answered")]
    lost = await world.rows("SELECT why FROM events WHERE what = 'released'")
    assert lost == [("its holder died",)]


async def test_a_zombie_keeps_the_receipt_of_a_send_that_it_had_begun(world: World) -> None:
    clock = Stopping(world.clock)
    held = world.telegram.fail("sendMessage", faults.held_after_storing())
    terms: dict[str, Any] = {
        "lease_seconds": 30.0,
        "heartbeat_seconds": 10.0,
        "telegram_read_timeout": 30.0,
    }
    zombie = await world.start(agent=Echo(), clock=clock, **terms)
    assert await post(zombie, Person(ADA).text("hello")) == [200]
    await world.telegram.wait_for(lambda: held.hits)
    zombie.stand_still()
    clock.stop()
    world.advance(45.0)
    await world.start(agent=Echo(), **terms)
    await world.settled()
    assert await endings(world) == [("hello", "uncertain")]
    held.release()
    await world.until("SELECT ending FROM runs", lambda rows: rows[0][0] == "answered")
    assert world.telegram.texts(ADA)[0] == "re: hello"
    assert world.telegram.texts(ADA).count("re: hello") == 1
    [row] = await world.rows("SELECT state, receipt FROM outbox WHERE kind = 'reply'")
    assert (row[0], bool(row[1])) == ("sent", True)


@pytest.fixture
def proof(monkeypatch: pytest.MonkeyPatch) -> Proof:
    """The first call finds no connection, in its own time."""
    held = Proof()
    send = TelegramChannel.send

    async def first_held(
        channel: TelegramChannel, to: Recipient, body: PartBody, ref: SendRef
    ) -> Outcome:
        if held.begun.is_set():
            return await send(channel, to, body, ref)
        held.begun.set()
        await held.told.wait()
        return NotSent("no connection")

    monkeypatch.setattr(TelegramChannel, "send", first_held)
    return held


async def doubted_by_another(world: World, proof: Proof, ada: Person) -> Running:
    """A process stands still in a call, and another ended its run in doubt. Returns that one."""
    clock = Stopping(world.clock)
    terms: dict[str, Any] = {
        "lease_seconds": 30.0,
        "heartbeat_seconds": 10.0,
        "still_working_after": 1e6,
    }
    zombie = await world.start(agent=Echo(), clock=clock, **terms)
    assert await post(zombie, ada.text("hello")) == [200]
    await proof.begun.wait()
    zombie.stand_still()
    clock.stop()
    world.advance(45.0)
    survivor = await world.start(agent=Echo(), **terms)
    await world.settled()
    assert await endings(world) == [("hello", "uncertain")]
    return survivor


async def test_a_part_that_a_zombie_proves_unsent_is_sent_and_not_uncertain(
    world: World, proof: Proof
) -> None:
    """The proof comes after the survivor had to doubt the part and ended the run in that doubt."""
    await doubted_by_another(world, proof, Person(ADA))
    proof.told.set()
    await world.until("SELECT ending FROM runs", lambda rows: rows[0][0] == "answered")
    assert world.telegram.texts(ADA).count("re: hello") == 1
    assert await world.rows("SELECT state, attempts FROM outbox WHERE kind = 'reply'") == [
        ("sent", 2)
    ]


async def test_a_part_that_is_proven_unsent_does_not_leave_behind_a_later_answer_unasked(
    world: World, proof: Proof
) -> None:
    ada = Person(ADA)
    survivor = await doubted_by_another(world, proof, ada)
    assert await post(survivor, ada.text("and now?")) == [200]
    await world.settled()
    proof.told.set()
    kept = "SELECT state, error FROM outbox WHERE kind = 'reply' ORDER BY id LIMIT 1"
    never_left = "it never left (no connection), but what belongs behind it did"
    await world.until(kept, lambda rows: rows == [("uncertain", never_left)])
    await world.settled()
    assert await endings(world) == [("hello", "uncertain"), ("and now?", "answered")]
    note, answer = world.telegram.messages(ADA)
    assert answer.text == "re: and now?"
    [[button]] = note.buttons
    shown = {"message_id": note.message_id, "chat": ada.chat, "date": ada.at, "text": note.text}
    assert await post(survivor, ada.press(button["callback_data"], shown, "cq1")) == [200]
    await world.settled()
    assert [ending for _, ending in await endings(world)] == ["answered", "answered"]
    assert world.telegram.texts(ADA) == [note.text, "re: and now?", "re: hello"]


async def test_what_must_not_be_lost_is_written_when_the_database_is_back(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **CALM)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    database = running.away(True)
    agent.go.set()
    await until(lambda: STORE.together in database.refused)
    running.away(False)
    await world.settled()
    assert agent.calls["hello"] == 1
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert await world.rows(_LEFT_BEHIND) == [(0, 0, 1)]


async def test_an_outage_longer_than_the_lease_counts_against_nobody(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **CALM)
    running.stand_still()
    assert await post(running, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    running.away(True)
    world.advance(60.0)
    running.process.lease.watch()
    agent.go.set()
    await running.process.lease.renew()
    assert not running.process.lease.holds()
    running.away(False)
    await running.process.lease.renew()
    await world.settled()
    assert await world.rows(_LEFT_BEHIND) == [(0, 0, 2)]
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_after_an_outage_nobody_judges_others_for_two_heartbeats(world: World) -> None:
    agent = Gated()
    first = await world.start(agent=agent, **CALM)
    second = await world.start(agent=agent, **CALM)
    for running in (first, second):
        running.stand_still()
    update = Person(ADA).text("hello")
    assert await post(second, update) == [200]
    await agent.begun.wait()
    for running in (first, second):
        running.away(True)
    world.advance(60.0)
    for running in (first, second):
        running.process.lease.watch()
        running.away(False)
    await first.process.lease.renew()
    assert not first.process.lease.may_judge()
    await first.process.sweep()
    assert await post(first, update) == [200]
    assert await world.rows("SELECT state, deaths FROM runs") == [("running", 0)]
    agent.go.set()
    await second.process.lease.renew()
    await world.settled()
    assert await world.rows(_LEFT_BEHIND) == [(0, 0, 2)]
    assert world.telegram.texts(ADA) == ["re: hello"]
    world.advance(10.0)
    assert first.process.lease.may_judge()


async def test_b67_a_wall_clock_ten_minutes_ahead_takes_nothing_from_the_living(
    world: World,
) -> None:
    agent, thief = Gated(), Echo()
    owner = await world.start(agent=agent, **CALM)
    assert await post(owner, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    ahead = await world.start(agent=thief, clock=Wrong(world.clock, 600.0), **CALM)
    for _ in range(3):
        await ahead.process.sweep()
        await owner.process.lease.renew()
    agent.go.set()
    await world.settled()
    assert thief.calls.total() == 0
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert await world.rows(_LEFT_BEHIND) == [(0, 0, 1)]


async def test_b67_a_wall_clock_ten_minutes_behind_takes_over_from_the_dead_in_time(
    world: World,
) -> None:
    agent, heir = Gated(), Echo()
    owner = await world.start(agent=agent, **MORTAL)
    survivor = await world.start(agent=heir, clock=Wrong(world.clock, -600.0), **MORTAL)
    assert await post(owner, Person(ADA).text("hello")) == [200]
    await until_running(world)
    await owner.die()
    await outlive(world, survivor)
    await world.settled()
    assert heir.calls["hello"] == 1
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_two_processes_on_one_host_never_judge_each_other_by_name(world: World) -> None:
    agent = Gated()
    one = await world.start(agent=agent, **CALM)
    assert await post(one, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    two = await world.start(agent=Echo(), **CALM)
    assert one.process.lease.name != two.process.lease.name
    assert await world.rows("SELECT count(*) FROM holders WHERE gone_at IS NULL") == [(2,)]
    agent.go.set()
    await world.settled()
    assert agent.calls["hello"] == 1
    assert await world.rows(_LEFT_BEHIND) == [(0, 0, 1)]


async def test_a_restart_under_the_same_name_and_pid_takes_over_at_once(world: World) -> None:
    agent = Gated()
    dead = await world.start(agent=agent, lease_seconds=3600.0, heartbeat_seconds=60.0)
    assert await post(dead, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    await dead.die()
    agent.go.set()
    heir = await world.start(agent=agent, lease_seconds=3600.0, heartbeat_seconds=60.0)
    await settle(world)
    names = await world.rows("SELECT name, pid, gone_at IS NULL FROM holders ORDER BY id")
    assert names[0][:2] == names[1][:2]
    assert [bool(row[2]) for row in names] == [False, True]
    assert heir.process.lease.name == names[1][0]
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_a_process_that_dies_while_it_takes_its_name_keeps_it_no_longer(
    sqlite_url: str,
) -> None:
    """On SQLite its writer may be opening the file whose lock the name is."""
    async with open_world(sqlite_url) as world:
        dying = await world.start(agent=Echo(), **MORTAL)
        reached, go_on = asyncio.Event(), threading.Event()
        loop, db, lease = asyncio.get_running_loop(), dying.process.rt.db, dying.process.lease

        def hold_up(_tx: Tx) -> None:
            loop.call_soon_threadsafe(reached.set)
            go_on.wait(PATIENCE)

        held_up = asyncio.create_task(db.write(hold_up))
        await reached.wait()
        begun = asyncio.create_task(lease.begin())
        await moment()  # until it stands behind that in the writer's line
        dying.kill()
        go_on.set()
        await asyncio.gather(dying.end, held_up, begun, return_exceptions=True)
        read = Database(DatabaseSettings(sqlite_url), world.clock)
        try:
            assert not await read.read(is_held, lease.name)
        finally:
            read.close()


async def test_a_loop_that_is_blocked_past_the_lease_counts_as_a_death(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **CALM)
    running.stand_still()
    assert await post(running, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    running.process.lease._stood = lambda: 9.0  # What the pulse saw.
    world.advance(15.0)
    running.process.lease.watch()
    agent.go.set()
    await running.process.lease.renew()
    await world.settled()
    assert await world.rows(_LEFT_BEHIND) == [(1, 0, 2)]
    assert world.telegram.texts(ADA) == ["re: hello"]
