"""Followers are told every event of a chat once, in order, wherever it came from."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from bot import main
from bot.domain.clients.journal import EventKind, NewEvent
from bot.domain.message import Address
from bot.domain.turn import Turn
from bot.operations import chats as operator
from bot.wiring import Role
from storage import chats, journal
from storage.engine import postgres
from storage.notify import chat_topic
from storage.statements.tx import Tx
from tests.clocks import ShiftedClock
from tests.kit.agents import Echo, Gated
from tests.kit.frozen import drop_packets, standing_still
from tests.kit.line import Line, line_to
from tests.kit.operating import ANN, act
from tests.kit.web import Told, Visitor
from tests.limits import PATIENCE, until
from tests.servers import Valkey
from tests.world import Running, World

_CHAT = "SELECT max(id) FROM chats"


async def greeted(running: Running, http: httpx.AsyncClient) -> Visitor:
    """A visitor whose chat has begun."""
    visitor = await Visitor(running.url, http).begin()
    assert (await visitor.say("m0", "hello")).status_code == 202
    assert (await visitor.answered("m0"))["status"] == "completed"
    return visitor


class _RolledBack(Exception):
    pass


def note(tx: Tx, chat: int, number: int) -> None:
    """An event, or one that is not there after all."""
    chats.lock(tx, chat)
    journal.append(tx, chat, [NewEvent(EventKind.NOTICE)])
    if number % 8 == 7:
        raise _RolledBack


HINDER = """
CREATE SEQUENCE events_tried;
CREATE FUNCTION hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_sleep(0.1);
  IF nextval('events_tried') % 4 = 0 THEN
    RAISE EXCEPTION 'this transaction is rolled back' USING ERRCODE = 'deadlock_detected';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hinder AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.n % 3 = 0) EXECUTE FUNCTION hinder();
"""
"""Every third event is 100 ms in committing, and each fourth of those is rolled back by it."""


def hinder_commits(url: str) -> None:
    """Let commits of events come late; SQLite, where one writes at a time, has none that can."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url) as connection:
            connection.execute(HINDER)


async def make_events(running: Running, visitor: Visitor, count: int) -> None:
    """Events of all kinds in one chat, eight at a time, until nothing is left to tell."""
    places = asyncio.Semaphore(8)
    [[chat]] = await running.process.rt.db.read(lambda tx: tx.execute(sa.text(_CHAT)).all())

    async def one(number: int) -> None:
        async with places:
            if number % 4 == 0:
                assert (await visitor.say(f"e{number}", f"{number}")).status_code == 202
            elif number % 4 == 1:
                await say_by_hand(running, f"by hand {number}")
            elif number % 16 == 2:
                assert (await visitor.post("/stop", {})).status_code == 200
            else:
                with contextlib.suppress(_RolledBack):
                    await running.process.rt.db.write(note, chat, number)
                running.process.rt.wakeups.tell(chat_topic(chat))

    await asyncio.gather(*(one(number) for number in range(count)))


@pytest.mark.alternating(1)
@pytest.mark.timeout(900)
@pytest.mark.long
async def test_b163_followers_that_come_and_go_are_told_every_number_once(
    world: World,
    http: httpx.AsyncClient,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All wait for the one chat here, and who waits last waits for long.
    monkeypatch.setattr(postgres, "_SESSION", f"SET lock_timeout = '{PATIENCE:.0f}s'")

    async def agent(turn: Turn) -> str:
        if turn.text == "to be stopped":
            await asyncio.Event().wait()
        return f"re: {turn.text}"

    running = await world.start(web=True, agent=agent, chat_messages_per_minute=10_000)
    visitor = await greeted(running, http)
    hinder_commits(world.database_url)

    async def make() -> None:
        await visitor.say("stopped", "to be stopped")
        assert (await visitor.post("/stop", {})).json() == {"stopped": 1}
        await make_events(running, visitor, 300 if pytestconfig.getoption("--deep") else 72)
        await world.settled()
        await visitor.history()  # Whoever looks brings the journal up to date.

    made = asyncio.create_task(make())

    async def follow(each: int) -> list[Told]:
        heard: list[Told] = []
        while not (made.done() and heard and heard[-1].id == await last()):
            after = heard[-1].id if heard else 0
            async with visitor.following(after=after) as following:
                await following.until(lambda f: len(f.told) >= each or made.done())
                heard += following.told
        return heard

    async def last() -> int:
        return int((await world.rows("SELECT n FROM followed"))[0][0])

    told = await asyncio.gather(*(follow(each) for each in range(2, 7)))
    await made
    stored = [
        (row[0], row[1]) for row in await world.rows("SELECT n, kind FROM journal ORDER BY n")
    ]
    assert [n for n, _ in stored] == list(range(1, len(stored) + 1))
    assert {"accepted", "working", "message", "ended", "withdrawn", "notice"} <= {
        kind for _, kind in stored
    }
    assert all([(one.id, one.kind) for one in each] == stored for each in told)


@pytest.mark.alternating(0)
async def test_a_number_from_which_nothing_goes_on_begins_with_a_snapshot(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=Echo())
    visitor = await greeted(running, http)
    async with visitor.following(after=1 << 40) as following:
        await following.until(lambda f: len(f.told) == 2)
        assert following.kinds == ["resync", "snapshot"]
    while await running.process.rt.db.write(journal.prune, -60.0):
        pass
    async with visitor.following(after=1) as following:
        await following.until(lambda f: len(f.told) == 2)
        assert following.kinds == ["resync", "snapshot"]
        number = following.told[1].data["n"]
    async with visitor.following(after=number) as following:
        await visitor.say("m1", "again")
        await following.until(lambda f: "ended" in f.kinds)
        assert [told.id for told in following.told] == [number + k for k in (1, 2, 3, 4)]


async def test_another_process_without_redis_tells_what_this_one_did(
    world: World, http: httpx.AsyncClient
) -> None:
    web = await world.start(web=True, role=Role.WEB)
    await world.start(web=True, role=Role.WORKER, agent=Echo())
    visitor = await Visitor(web.url, http).begin()
    async with visitor.following() as following:
        await visitor.say("m1", "hello")
        await following.until(lambda f: "ended" in f.kinds)
    assert following.of("message")[0].data["text"] == "re: hello"


@pytest.fixture
async def line(valkey: Valkey) -> AsyncIterator[Line]:
    """A line to Redis that a test may hold."""
    async with line_to(str(valkey.socket)) as line:
        yield line


class Standing(ShiftedClock):
    """The machine's clock; while it stands nothing that comes by the clock comes."""

    stands: float | None = None

    def monotonic(self) -> float:
        return super().monotonic() if self.stands is None else self.stands


@pytest.mark.alternating(0)
@pytest.mark.long
async def test_b164_a_hint_that_is_lost_costs_a_moment_and_nothing_else(
    world: World, http: httpx.AsyncClient, valkey: Valkey, valkey_url: str, line: Line
) -> None:
    agent, clock = Gated(), Standing()
    web = await world.start(
        web=True, role=Role.WEB, redis_url=f"redis://127.0.0.1:{line.port}/0", clock=clock
    )
    worker = await world.start(web=True, role=Role.WORKER, agent=agent, redis_url=valkey_url)
    here, there = web.process.rt.wakeups, worker.process.rt.wakeups
    visitor = await Visitor(web.url, http).begin()

    async def linked() -> None:
        await until(lambda: here.connected and there.connected)

    async with visitor.following() as following:

        async def turn(name: str, lose: Callable[[], object]) -> None:
            """The follower sees the end of a turn although its hints were lost by this."""
            agent.begun.clear()
            agent.go.clear()
            await visitor.say(name, name)
            await asyncio.wait_for(agent.begun.wait(), PATIENCE)
            lose()
            agent.go.set()
            await following.until(lambda f: ("ended", name) in [told.about for told in f.told])
            for process in (web, worker):
                assert (await http.get(f"{process.url}/readyz")).status_code == 200

        def stand() -> None:
            clock.stands = clock.monotonic()

        async def by_hint_alone(name: str) -> None:
            """With no look that is due by the clock, hints bring it."""
            await linked()
            await turn(name, stand)
            clock.stands = None

        await linked()
        await turn("m1", valkey.drop_subscribers)
        await by_hint_alone("m2")
        await turn("m3", valkey.stop)
        valkey.start()
        await by_hint_alone("m4")
        await turn("m5", line.hold)
        clock.advance(11.0)  # It feels every 10 s whether Redis still speaks.
        await until(lambda: not here.connected)
        line.release()
        await by_hint_alone("m6")
        told = [one.id for one in following.events]
        assert told == list(range(1, len(told) + 1))


async def say_by_hand(running: Running, text: str) -> None:
    """An operator writes to the only chat."""
    await act(running, lambda tx: operator.reply(tx, running.process.rt, ANN, 1, text))


@pytest.mark.alternating(0)
async def test_b165_who_is_gone_without_a_word_is_not_followed_by_for_long(
    world: World, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "_UNTAKEN", 1)
    running = await world.start(web=True, agent=Echo())
    visitor = await greeted(running, http)
    followers = running.process.rt.observer.followers
    async with standing_still(visitor, 50) as clients:
        for client in clients:
            drop_packets(client)
        world.advance(11.0)  # Every 10 s each is shown that the line is alive.
        await until(lambda: followers._value.get() == 0)


@pytest.mark.alternating(1)
async def test_who_leaves_the_process_sends_its_followers_away_at_different_moments(
    world: World, http: httpx.AsyncClient
) -> None:
    first = await world.start(web=True, agent=Echo())
    second = await world.start(web=True, agent=Echo())
    visitor = await greeted(first, http)
    async with contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(visitor.following()) for _ in range(8)]
        for following in streams:
            await following.until(lambda f: f.told)
        await first.stop()
        for following in streams:
            await following.until(lambda f: f.over)
    waits = {following.retry for following in streams}
    assert None not in waits
    assert len(waits) > 1
    n = streams[0].told[0].data["n"]
    there = Visitor(second.url, http, visitor.token)
    async with there.following(after=n) as following:
        await there.say("m1", "again")
        await following.until(lambda f: "ended" in f.kinds)
        assert [told.id for told in following.events] == [n + k for k in (1, 2, 3, 4)]


@pytest.mark.alternating(0)
async def test_who_has_not_begun_to_follow_as_the_process_leaves_is_sent_away_too(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=Echo())
    await greeted(running, http)
    [desk] = running.process.desks.values()
    followers = desk.followers
    [(address,)] = await world.rows("SELECT address FROM chats")
    followers._begun = places = asyncio.Semaphore(0)
    follower = followers.follow(Address(address), None, "s1", float("inf"))
    beginning = asyncio.create_task(follower.__aenter__())
    await until(lambda: bool(places._waiters))
    followers.leave()
    places.release()
    async with asyncio.timeout(PATIENCE):
        await beginning
        given = [piece async for piece in follower]
    await follower.__aexit__()
    assert given[-1].startswith(b"retry: ")


@pytest.mark.alternating(0)
async def test_while_the_database_is_away_who_wants_to_follow_is_told_when_to_come_again(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=Echo(), web_secret="s" * 40)
    visitor = await greeted(running, http)
    running.away(True)
    refused = await visitor.get("/events")
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) > 0
    running.away(False)
    async with visitor.following() as following:
        await following.until(lambda f: f.told)


@pytest.mark.alternating(0)
async def test_who_waits_for_long_is_told_that_it_is_still_worked_on(
    world: World, http: httpx.AsyncClient
) -> None:
    agent = Gated()
    running = await world.start(web=True, agent=agent, still_working_after=0.2)
    visitor = await Visitor(running.url, http).begin()
    async with visitor.following() as following:
        await visitor.say("m1", "hello")
        await following.until(lambda f: "still_working" in f.kinds)
        agent.go.set()
        await following.until(lambda f: "ended" in f.kinds)
    assert following.kinds == [
        *("snapshot", "accepted", "working", "still_working", "message", "ended")
    ]
    [told] = following.of("still_working")
    assert told.data["request_id"] == "m1"
    assert told.data["text"]
    assert "still_working" not in [one["kind"] for one in await visitor.history()]


@pytest.mark.alternating(1)
async def test_the_chat_of_a_guest_goes_on_in_the_users_and_whoever_follows_it_begins_anew(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=Echo())
    [desk] = running.process.desks.values()
    guest, user = await greeted(running, http), await greeted(running, http)
    [[_, first], [_, second]] = await world.rows("SELECT id, address FROM chats ORDER BY id")
    async with guest.following() as of_guest, user.following() as of_user:
        await of_guest.until(lambda f: f.told)
        await of_user.until(lambda f: f.told)
        old = of_user.told[0].data["n"]
        assert await desk.claim(Address(first), Address(second))
        await of_user.until(lambda f: f.of("snapshot")[1:])
        await of_guest.until(lambda f: f.over)
    assert of_user.kinds == ["snapshot", "resync", "snapshot"]
    assert of_guest.kinds in (["snapshot"], ["snapshot", "resync"])
    said = [one["text"] for one in of_user.told[-1].data["messages"]]
    assert said == ["hello", "re: hello"] * 2
    async with user.following(after=old) as again:
        await again.until(lambda f: f.told)
        assert again.kinds[0] == "resync"
    assert (await guest.get("/messages")).status_code == 401
