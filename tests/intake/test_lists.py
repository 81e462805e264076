"""Lists of messages: the ordinary ones share statements, and nobody is hurt by a neighbour."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from bot.domain.decisions.terms import Burst, IntakeTerms, Terms
from bot.domain.message import (
    Address,
    Addressing,
    ChatKind,
    Edited,
    Ignored,
    Inbound,
    Membership,
    Sender,
)
from bot.domain.run import RunState
from bot.intake.accept import Intake
from bot.intake.arrival import Arrival, Became, Entry, Recorded
from bot.intake.record import record_event
from bot.intake.together import record_together
from bot.leases.runtime import Runtime
from bot.schedule import CronCalendar
from bot.supervisor import Supervisor
from bot.texts import Words
from channels.console.channel import ConsoleChannel
from storage import accounts, chats, runs
from storage.engine import postgres
from storage.engine.database import Database, DatabaseSettings
from storage.engine.lane import LeftOut
from storage.notify import Wakeups
from storage.statements.tx import Tx
from tests.limits import PATIENCE
from tests.storage.kit import Hand, connected, lives_through, message, opened
from tests.storage.rivals import first

WORDS = Words.load()
ROWS = "SELECT chat, run, ignored, deliveries, text FROM inbound ORDER BY id"


@pytest.fixture
def hand(database_url: str) -> Iterator[Hand]:
    with opened(database_url) as hand:
        yield hand


def runtime(hand: Hand, db: Database | None = None, **terms: Any) -> Runtime:
    """A process that has one account, of a channel that marks no commands."""
    return Runtime(
        db=db or hand.db,
        clock=hand.clock,
        channels={hand.account: ConsoleChannel(None)},
        terms=Terms(intake=IntakeTerms(**terms)),
        words=WORDS,
        wakeups=Wakeups(hand.clock),
        calendar=CronCalendar("UTC"),
    )


def door(hand: Hand, db: Database, monkeypatch: pytest.MonkeyPatch) -> Intake:
    """The intake of a process that only listens; no machine is too slow for it."""
    monkeypatch.setattr("bot.intake.accept.COMMIT_WITHIN", PATIENCE)
    return Intake(runtime(hand, db, burst=Burst.EACH), None, Supervisor(hand.clock))


def entry(hand: Hand, event: Any, *, claims: bool = True) -> Entry:
    by = hand.claimant() if claims else None
    return Entry(Arrival(hand.account, '{"body": true}'), event, by)


def said(number: int, who: str, text: str = "hello", **more: Any) -> Inbound:
    return replace(message(number, who, text), **more)


def record(
    hand: Hand, events: Sequence[Any], rt: Runtime | None = None
) -> Sequence[Recorded | LeftOut]:
    entries = [entry(hand, event) for event in events]
    return hand.do(record_together, rt or runtime(hand), entries)


def became(outcomes: Sequence[Recorded | LeftOut]) -> list[Became | LeftOut]:
    return [one if isinstance(one, LeftOut) else one.became for one in outcomes]


def test_first_messages_of_many_people_are_recorded_at_once_and_born_running(hand: Hand) -> None:
    outcomes = record(hand, [said(1, f"person-{n}", f"{n}") for n in range(5)])
    assert became(outcomes) == [Became.RUN] * 5
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome, Recorded)
        run, case = outcome.run, outcome.case
        assert run is not None
        assert case is not None
        assert (run.state, run.holder, run.attempts) == (RunState.RUNNING, hand.holder, 1)
        assert [m.text for m in case.messages] == [f"{number}"]
        assert case.chat == hand.do(chats.get, run.chat)
        assert case.evidence.now < (run.deadline_at or 0)
    assert hand.value("SELECT count(*) FROM inbound WHERE run IS NOT NULL") == 5
    assert hand.value("SELECT count(*) FROM inbound WHERE payload <> ''") == 5


def test_each_message_of_a_list_becomes_what_it_would_have_become_alone(hand: Hand) -> None:
    record(hand, [said(1, "busy"), said(1, "waits"), said(1, "again")])
    record(hand, [said(2, "waits")])
    hand.do(chats.pause, hand.new_chat("paused"), None)
    outcomes = record(
        hand,
        [
            said(2, "busy"),
            said(3, "waits"),
            said(1, "again"),
            said(1, "new"),
            said(1, "paused"),
            said(1, "robot", sender=Sender("robot", is_bot=True)),
            said(1, "group", chat_kind=ChatKind.GROUP, addressing=Addressing.NOT_US),
            Ignored("nothing for us"),
        ],
    )
    assert became(outcomes) == [
        Became.RUN,
        Became.JOINED,
        Became.DUPLICATE,
        Became.RUN,
        Became.RUN,
        Became.IGNORED,
        Became.IGNORED,
        Became.IGNORED,
    ]
    states = [one.run.state for one in outcomes if isinstance(one, Recorded) and one.run]
    assert states == [RunState.WAITING, RunState.RUNNING, RunState.WAITING]
    assert hand.value("SELECT messages FROM runs WHERE messages > 1") == 2
    assert hand.value("SELECT deliveries FROM inbound WHERE request_id = 'tg-again-1'") == 2
    ignored = "SELECT ignored FROM inbound WHERE ignored IS NOT NULL ORDER BY id"
    assert hand.rows(ignored) == [("bot",), ("not_addressed",)]
    assert hand.value("SELECT count(*) FROM payloads WHERE ignored = 'nothing for us'") == 1


def test_what_is_not_ordinary_is_left_out_and_nothing_of_it_is_written(hand: Hand) -> None:
    dead = hand.new_holder("host/9")
    hand.running(hand.new_chat("deserted"), dead)
    hand.mark_dead(dead)
    rt = runtime(hand, messages_per_minute=1)
    record(hand, [said(1, "fast")], rt)
    special = [
        said(2, "fast"),
        said(1, "deserted"),
        said(1, "commands", "/stop"),
        said(1, "presses", button="yes"),
        said(1, "album", album="a1"),
        said(1, "two", aliases=("two", "second-name")),
        Edited(said(1, "fast"), 5.0),
        Membership(Address("fast"), reachable=False, reason="blocked"),
    ]
    before = hand.value("SELECT count(*) FROM inbound")
    outcomes = record(hand, [*special, said(1, "plain")], rt)
    assert became(outcomes) == [*[LeftOut.ALONE] * len(special), Became.RUN]
    assert hand.value("SELECT count(*) FROM inbound") == before + 1


def test_a_person_with_two_known_addresses_is_ordinary(hand: Hand) -> None:
    both = said(1, "phone", aliases=("phone", "user-id"))
    assert became(record(hand, [both])) == [LeftOut.ALONE]
    hand.do(record_event, runtime(hand), entry(hand, both))
    assert became(record(hand, [said(2, "phone", aliases=("user-id",))])) == [Became.RUN]
    hand.do(chats.create, [_someone(hand, "elsewhere")])
    apart = said(3, "phone", aliases=("elsewhere",))
    assert became(record(hand, [apart])) == [LeftOut.ALONE]


def _someone(hand: Hand, name: str) -> chats.NewChat:
    return chats.NewChat(hand.account, Address(name), ChatKind.PRIVATE, "Ada", "en")


def test_one_request_id_under_two_addresses_is_recorded_once(hand: Hand) -> None:
    twice = [said(1, "a"), replace(said(1, "a"), address=Address("b"))]
    assert became(record(hand, twice)) == [Became.RUN, LeftOut.LOCKED]
    assert became(record(hand, twice[1:])) == [Became.DUPLICATE]


def test_two_addresses_of_one_chat_come_one_after_the_other(hand: Hand) -> None:
    chat = hand.new_chat("a")
    hand.do(chats.know_address, hand.account, Address("b"), chat)
    assert became(record(hand, [said(1, "a"), said(2, "b")])) == [Became.RUN, LeftOut.LOCKED]


def test_a_list_that_is_made_again_after_a_lost_answer_changes_nothing(hand: Hand) -> None:
    several = [said(1, "a"), said(1, "b"), said(1, "c", sender=Sender("c", is_bot=True))]
    record(hand, several)
    rows = hand.rows("SELECT id, chat, run, ignored FROM inbound ORDER BY id")
    assert became(record(hand, several)) == [Became.DUPLICATE] * 3
    assert hand.rows("SELECT id, chat, run, ignored FROM inbound ORDER BY id") == rows
    assert hand.value("SELECT count(*) FROM runs") == 2


def test_who_dies_between_any_two_statements_of_a_list_has_recorded_nothing(hand: Hand) -> None:
    record(hand, [said(1, "joins"), said(1, "again")])
    record(hand, [said(2, "joins")])
    rt = runtime(hand)
    came = [said(3, "joins"), said(1, "again"), said(2, "again"), *(said(1, n) for n in "abc")]
    entries = [entry(hand, event) for event in (*came, Ignored("nothing for us"))]

    def move(tx: Tx, entries: Sequence[Entry]) -> Sequence[Recorded | LeftOut]:
        return record_together(tx, rt, entries)

    tables = ("chats", "chat_addresses", "inbound", "payloads", "runs")
    everything = [f"SELECT * FROM {table}" for table in tables]
    before = [hand.rows(table) for table in everything]
    for statements in count(1):
        if lives_through(hand, move, entries, statements):
            break
        assert [hand.rows(table) for table in everything] == before
    assert statements >= 3
    assert became(hand.do(move, entries)).count(Became.RUN) == 3


def test_a_run_of_a_list_is_ready_where_this_process_may_not_claim(hand: Hand) -> None:
    down = hand.new_account("other")
    hand.do(accounts.mark_down, down, "the token was revoked")
    rt = runtime(hand)
    rt = replace(rt, channels={**rt.channels, down: ConsoleChannel(None)})
    elsewhere = replace(entry(hand, said(1, "b")), arrival=Arrival(down, "{}"))
    entries = [entry(hand, said(1, "a")), elsewhere, entry(hand, said(1, "c"), claims=False)]
    outcomes = hand.do(record_together, rt, entries)
    made = [one for one in outcomes if isinstance(one, Recorded)]
    assert [(one.run and one.run.state, one.wake) for one in made] == [
        (RunState.RUNNING, False),
        (RunState.RUNNING, False),
        (RunState.READY, True),
    ]
    hand.mark_dead(hand.holder)
    [dead] = record(hand, [said(1, "d")])
    assert isinstance(dead, Recorded)
    assert dead.run is not None
    assert (dead.run.state, dead.case) == (RunState.READY, None)


class _Counting(Tx):
    """Counts what goes to the database and comes back."""

    __slots__ = ("trips",)

    def _send(self, sql: str, values: Any) -> None:
        self.trips = getattr(self, "trips", 0) + 1
        super()._send(sql, values)


@pytest.mark.parametrize("many", [1, 40])
def test_a_list_takes_as_many_round_trips_as_one_message(postgres_url: str, many: int) -> None:
    with opened(postgres_url) as hand:
        rt = runtime(hand, burst=Burst.EACH)
        for number, trips in enumerate((6, 5)):  # first messages, then in chats that are known
            with connected(postgres_url, hand.clock, _Counting) as tx:
                assert isinstance(tx, _Counting)
                tx.send_later("BEGIN")
                came = [entry(hand, said(number, f"p{n}")) for n in range(many)]
                assert became(record_together(tx, rt, came)) == [Became.RUN] * many
                tx.commit()
                assert tx.trips == trips


@pytest.fixture
def rival_hand(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    monkeypatch.setattr(postgres, "_SESSION", f"SET lock_timeout = '{PATIENCE:.0f}s'")
    with opened(postgres_url, pool=8) as hand:
        yield hand


def test_who_is_locked_by_another_list_is_left_out_and_nobody_waits(rival_hand: Hand) -> None:
    hand = rival_hand
    record(hand, [said(1, name) for name in "abcd"])
    rt = runtime(hand, burst=Burst.EACH)
    with first(hand) as rival:
        mine = [entry(hand, said(2, name)) for name in "bc"]
        rival.do(record_together, rt, mine)
        theirs = record(hand, [said(3, name) for name in "dcba"], rt)
        assert became(theirs) == [Became.RUN, LeftOut.LOCKED, LeftOut.LOCKED, Became.RUN]
        rival.commit()
    again = record(hand, [said(3, name) for name in "cb"], rt)
    assert became(again) == [Became.RUN] * 2


async def test_a_chat_that_somebody_is_making_holds_up_its_own_message_alone(
    rival_hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = rival_hand
    intake = door(hand, hand.db, monkeypatch)
    arrival = Arrival(hand.account, "{}")
    with first(hand) as rival:
        rival.do(record_together, runtime(hand), [entry(hand, said(1, "c"))])
        taking = {
            name: asyncio.ensure_future(intake.take(arrival, [said(2, name)])) for name in "abcde"
        }
        others = [taking[name] for name in "abde"]
        taken = await asyncio.wait_for(asyncio.gather(*others), PATIENCE)
        assert [one.became for [one] in taken] == [Became.RUN] * 4
        assert not taking["c"].done()
        rival.commit()
        [held_up] = await taking["c"]
    assert held_up.became is Became.RUN
    assert hand.value("SELECT count(*) FROM chats") == 5


def test_first_messages_whose_chats_another_list_makes_are_left_out_and_nobody_waits(
    rival_hand: Hand,
) -> None:
    hand, rt = rival_hand, runtime(rival_hand)
    with first(hand) as rival:
        rival.do(record_together, rt, [entry(hand, said(1, f"p{n}")) for n in range(40)])
        came = record(hand, [said(1, f"p{n}") for n in range(1, 42)])
        assert became(came) == [*[LeftOut.LOCKED] * 39, Became.RUN, Became.RUN]
        rival.commit()
    again = record(hand, [said(1, f"p{n}") for n in range(42)])
    assert became(again) == [Became.DUPLICATE] * 42


def test_a_run_that_is_being_claimed_is_not_waited_for(rival_hand: Hand) -> None:
    hand = rival_hand
    run = hand.ready(hand.new_chat("a"))
    with first(hand) as rival:
        rival.do(runs.claim, hand.claimant(), {hand.account: 5}, 5)
        assert became(record(hand, [said(1, "a"), said(1, "b")])) == [LeftOut.LOCKED, Became.RUN]
        rival.commit()
    [outcome] = record(hand, [said(1, "a")])
    assert isinstance(outcome, Recorded)
    assert outcome.run is not None
    assert (outcome.run.state, outcome.run.id > run.id) == (RunState.WAITING, True)


class _CountedDatabase(Database):
    """Counts transactions that write."""

    writes = 0

    async def write(self, move: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.writes += 1
        return await super().write(move, *args, **kwargs)


@pytest.fixture
def counted(hand: Hand) -> Iterator[_CountedDatabase]:
    db = _CountedDatabase(DatabaseSettings(hand.url), hand.clock)
    try:
        yield db
    finally:
        db.close()


async def test_two_hundred_first_messages_at_once_share_transactions(
    hand: Hand, counted: _CountedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = door(hand, counted, monkeypatch)
    arrival = Arrival(hand.account, "{}")
    people = [said(1, f"p{n}") for n in range(200)]
    taken = await asyncio.gather(*(intake.take(arrival, [person]) for person in people))
    assert [one.became for [one] in taken] == [Became.RUN] * 200
    assert counted.writes <= 4


async def test_a_message_that_no_database_takes_hurts_none_of_its_list(
    hand: Hand, counted: _CountedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = door(hand, counted, monkeypatch)
    arrival = Arrival(hand.account, "{}")
    texts = ["a", "b", "\ud800", "d", "e", "f"]
    events = [said(1, f"p{n}", text) for n, text in enumerate(texts)]
    taken = await asyncio.gather(*(intake.take(arrival, [event]) for event in events))
    outcomes = [one.became for [one] in taken]
    assert outcomes.pop(2) is Became.DEAD_LETTER
    assert outcomes == [Became.RUN] * 5
    assert [text for *_, text in hand.rows(ROWS)] == ["a", "b", "d", "e", "f"]
    assert hand.value("SELECT count(*) FROM payloads WHERE error IS NOT NULL") == 1


async def test_a_name_too_long_for_an_index_hurts_none_of_its_list(
    rival_hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.intake.accept.COMMIT_WITHIN", PATIENCE)
    hand = rival_hand
    intake = Intake(runtime(hand), None, Supervisor(hand.clock))
    arrival = Arrival(hand.account, "{}")
    long = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(200))
    events = [said(1, name) for name in ("a", long, "c")]
    taken = await asyncio.gather(*(intake.take(arrival, [event]) for event in events))
    outcomes = [one.became for [one] in taken]
    assert outcomes == [Became.RUN, Became.DEAD_LETTER, Became.RUN]


async def test_two_processes_whose_lists_overlap_record_everything_once(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    dbs = [_CountedDatabase(DatabaseSettings(hand.url), hand.clock) for _ in range(2)]
    try:
        doors = [door(hand, db, monkeypatch) for db in dbs]
        arrival = Arrival(hand.account, "{}")
        events = [said(number, f"p{n}") for number in range(1, 4) for n in range(20)]
        taking = [door.take(arrival, [event]) for event in events for door in doors]
        taken = await asyncio.gather(*taking)
    finally:
        for db in dbs:
            db.close()
    outcomes = [one.became for [one] in taken]
    assert outcomes.count(Became.DUPLICATE) == len(events)
    assert hand.value("SELECT count(*) FROM inbound") == len(events)
    assert hand.value("SELECT count(*) FROM inbound WHERE run IS NULL") == 0
    assert hand.value("SELECT sum(deliveries) FROM inbound") == 2 * len(events)
    assert hand.value("SELECT sum(messages) FROM runs") == len(events)
