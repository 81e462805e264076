"""Cost of moves with a long past and a long backlog: they read what they move, by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bot.domain.decisions.terms import IntakeTerms
from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Address, ChatKind
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Run
from storage import accounts, chats, holders, inbox, outbox, runs
from storage.chats import NewChat
from storage.inbox import NewMessage, NewPayload
from storage.outbox import Attempt, NewParts, Notice, PartOwner, Receipt
from storage.runs import NewRun
from storage.statements.chat_rows import START
from storage.views.arrivals import standing
from storage.views.evidence import gather
from storage.views.history import ChatBefore, history
from tests.storage.cost.plans import BIG, Reading, fill, reading, write
from tests.storage.kit import LEASE, Hand, message

Ask = Callable[[Hand], Reading]
NAMES = ("past-7", "past-8", "nobody")
PAGES = 120
"""The limit of what a move may read: a few dozen index pages, however long the past."""

CASES: dict[str, tuple[Ask, set[str]]] = {
    "claim": (
        lambda hand: reading(hand, runs.claim, hand.claimant(), {hand.account: 5}, 5),
        {"ix_runs_ready"},
    ),
    "claim what was kept": (
        lambda hand: reading(hand, runs.claim, hand.claimant(), {_other(hand): 5}, 5),
        {"ix_runs_ready"},
    ),
    "oldest_due": (lambda hand: reading(hand, runs.oldest_due), {"ix_runs_ready"}),
    "locate": (
        lambda hand: reading(hand, chats.locate, hand.account, [Address("past-7")]),
        {"pk_chat_addresses"},
    ),
    "create": (
        lambda hand: reading(
            hand,
            chats.create,
            [NewChat(hand.account, Address(name), ChatKind.PRIVATE, "", "") for name in NAMES],
        ),
        {"pk_chat_addresses"},
    ),
    "lock_at": (
        lambda hand: reading(
            hand, chats.lock_at, [(hand.account, Address(name)) for name in NAMES]
        ),
        {"pk_chat_addresses"},
    ),
    "live_in_chat": (
        lambda hand: reading(hand, runs.live_in_chat, _chat(hand)),
        {"ix_runs_waiting", "uq_runs_head"},
    ),
    "insert_run": (
        lambda hand: reading(
            hand,
            runs.create,
            [
                NewRun(hand.account, hand.new_chat(), f"x{n}", 1.0, True, hand.claimant())
                for n in range(3)
            ],
        ),
        set(),
    ),
    "join": (
        lambda hand: reading(hand, runs.join, [(1, 0.0, 0.0), (2, 1.0, 5.0)], at_once=True),
        set(),
    ),
    "store_messages": (
        lambda hand: reading(
            hand,
            inbox.store_messages,
            [NewMessage(hand.account, _chat(hand), message(n), "{}") for n in range(3)],
        ),
        set(),
    ),
    "store_payloads": (
        lambda hand: reading(
            hand, inbox.store_payloads, [NewPayload(hand.account, "{}", "x", 1)] * 3
        ),
        set(),
    ),
    "count_deliveries": (
        lambda hand: reading(hand, inbox.count_deliveries, [1, 2, 3]),
        set(),
    ),
    "heard": (
        lambda hand: reading(hand, chats.heard, [hand.do(chats.get, _chat(hand))]),
        set(),
    ),
    "standing": (
        lambda hand: reading(
            hand,
            standing,
            [(_chat(hand), hand.account, message(1))],
            IntakeTerms(turns_per_day=50),
        ),
        {"ix_inbound_chat", "ix_runs_waiting", "uq_runs_head"},
    ),
    "waiting_messages": (
        lambda hand: reading(hand, runs.waiting_messages, _chat(hand)),
        {"ix_runs_waiting"},
    ),
    "promote": (
        lambda hand: reading(hand, runs.promote, _chat(hand)),
        {"ix_runs_waiting", "uq_runs_head"},
    ),
    "count_unfinished": (
        lambda hand: reading(hand, outbox.count_unfinished, _chat(hand)),
        {"ix_outbox_line"},
    ),
    "release_dead": (lambda hand: reading(hand, runs.release_dead), {"ix_runs_running"}),
    "release_dead of a chat": (
        lambda hand: reading(hand, runs.release_dead, _chat(hand)),
        set(),
    ),
    "mark_overdue_dead": (lambda hand: reading(hand, holders.mark_overdue_dead, LEASE), set()),
    "doubt_orphans": (lambda hand: reading(hand, outbox.doubt_orphans), {"ix_outbox_watched"}),
    "forget_gone": (lambda hand: reading(hand, holders.forget_gone, 86_400.0), set()),
    "due": (
        lambda hand: reading(hand, outbox.due, [hand.account], 20),
        {"ix_outbox_due", "ix_outbox_line"},
    ),
    "doubtful": (
        lambda hand: reading(hand, outbox.doubtful, hand.account, 5, 20),
        {"ix_outbox_unsure"},
    ),
    "gather": (
        lambda hand: reading(hand, gather, [hand.running() for _ in range(3)]),
        {"ix_outbox_operator", "ix_inbound_run"},
    ),
    "history": (
        lambda hand: reading(hand, history, [ChatBefore(_chat(hand), 0)], 12),
        {"ix_runs_chat", "ix_inbound_run"},
    ),
    "last_ended": (
        lambda hand: reading(hand, runs.last_ended, _chat(hand), [Ending.ANSWERED]),
        {"ix_runs_chat"},
    ),
    "merge": (
        lambda hand: reading(hand, runs.merge, hand.new_chat(), hand.new_chat()),
        {"ix_runs_chat"},
    ),
    "held_by": (lambda hand: reading(hand, runs.held_by, -1), {"ix_runs_running"}),
    "sending_by": (
        lambda hand: reading(hand, outbox.sending_by, hand.holder),
        {"ix_outbox_watched"},
    ),
}


ENDED = Close(Ending.ANSWERED, Cause.DELIVERED)
LISTS: dict[str, tuple[Callable[[Hand, Sequence[Run]], Reading], set[str]]] = {
    "lock_each": (
        lambda hand, held: reading(hand, chats.lock_each, [run.chat for run in held]),
        set(),
    ),
    "mark_replied_each": (
        lambda hand, held: reading(hand, runs.mark_replied_each, [run.claim for run in held]),
        set(),
    ),
    "settle_each": (
        lambda hand, held: reading(hand, runs.settle_each, [(run.claim, ENDED) for run in held]),
        set(),
    ),
    "promote_each": (
        lambda hand, held: reading(hand, runs.promote_each, [run.chat + 150 for run in held]),
        {"ix_runs_waiting"},
    ),
    "store_parts_each": (
        lambda hand, held: reading(hand, outbox.store_parts_each, [_answer(run) for run in held]),
        set(),
    ),
    "drop_notice_each": (
        lambda hand, held: reading(
            hand, outbox.drop_notice_each, [run.id for run in held], Notice.STILL_WORKING
        ),
        {"uq_outbox_run_kind_part"},
    ),
    "of_held": (
        lambda hand, held: reading(hand, outbox.of_held, [run.claim for run in held]),
        {"ix_runs_waiting", "uq_outbox_run_kind_part"},
    ),
    "receive_first": (
        lambda hand, held: reading(
            hand,
            outbox.receive_first,
            [Receipt(Attempt(run.id, 1), f"m{run.id}", True) for run in held],
        ),
        set(),
    ),
    "mark_sending_each": (
        lambda hand, held: reading(
            hand, outbox.mark_sending_each, [(run.claim, run.id) for run in held]
        ),
        set(),
    ),
}
"""Moves for lists, which are given the running runs of 20 chats."""
AT_ONCE = 20


def _answer(run: Run) -> NewParts:
    return NewParts(
        PartOwner(run.account, run.chat, run.id), PartKind.REPLY, [PartBody("hi", "{}")]
    )


def _other(hand: Hand) -> int:
    return hand.new_account("other")


def _chat(hand: Hand) -> int:
    found: int = hand.value("SELECT id FROM chats WHERE address = 'past-7'")
    return found


@pytest.fixture
def full(hand: Hand) -> Hand:
    """20 000 ended runs, 5 000 that wait behind 300 running ones, a few that are ready, a few
    notices, one dead holder with one run."""
    fill(hand, ended=20_000, waiting=5_000)
    for _ in range(5):
        hand.ready(hand.new_chat())
        hand.post(hand.new_chat(), PartKind.NOTICE)
    dead = hand.new_holder("host/9")
    hand.running(holder=dead)
    hand.mark_dead(dead)
    return hand


def test_moves_find_what_they_move_by_index_however_long_past_and_backlog(full: Hand) -> None:
    wrong = {}
    for name, (ask, wanted) in CASES.items():
        found = ask(full)
        if found.whole_tables & BIG or found.pages > PAGES or not wanted <= _known(full, found):
            wrong[name] = found
    assert wrong == {}


_KEPT = """
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at, attempts, replied,
    not_before) SELECT account, id, 'ready', 1, 1, 1, 1, true, 1e12 FROM chats
    WHERE address LIKE 'past-%' AND id >= (SELECT min(id) + 300 FROM chats)
"""


@pytest.mark.parametrize(("down", "taken"), [(True, 2), (False, 5)])
def test_a_claim_reads_what_it_takes_however_many_were_kept(
    hand: Hand, down: bool, taken: int
) -> None:
    fill(hand, ended=100, waiting=100)
    hand.do(lambda tx: tx.run(_KEPT.replace("%", "%%") if not hand.db.is_sqlite else _KEPT))
    fresh = [hand.ready(hand.new_chat()).id for _ in range(2)]
    if down:
        hand.do(accounts.mark_down, hand.account, "the token was revoked")
    found = reading(hand, runs.claim, hand.claimant(), {hand.account: 5}, 5)
    assert (found.whole_tables & BIG, found.pages <= PAGES) == (set(), True), found
    claimed = hand.claim(room=5)
    assert len(claimed) == taken
    assert not down or [run.id for run in claimed] == fresh


def test_a_history_is_read_by_index_when_the_tables_are_young(postgres_hand: Hand) -> None:
    fill(postgres_hand, ended=300, waiting=100)
    found = reading(postgres_hand, history, [ChatBefore(_chat(postgres_hand), 0)] * 8, 12)
    assert not found.whole_tables & BIG


def test_moves_for_lists_find_each_member_by_index(full: Hand) -> None:
    held = full.do(runs.held_by, full.holder)[:AT_ONCE]
    wrong = {}
    for name, (ask, wanted) in LISTS.items():
        found = ask(full, held)
        many = found.pages > PAGES * AT_ONCE
        if found.whole_tables & BIG or many or not wanted <= _known(full, found):
            wrong[name] = found
    assert wrong == {}


def _known(hand: Hand, found: Reading) -> set[str]:
    """SQLite gives keys no names of ours."""
    keys = {"pk_chat_addresses", "uq_outbox_run_kind_part"}
    return found.indexes | (keys if hand.db.is_sqlite else set())


def test_stranded_chats_are_found_through_the_live_runs_alone(full: Hand) -> None:
    found = reading(full, runs.stranded_chats, 200)
    assert not found.whole_tables & (BIG - {"chats"})


def test_a_page_of_waiting_chats_costs_as_much_however_many_wait(postgres_hand: Hand) -> None:
    hand = postgres_hand
    fill(hand, ended=1_000, waiting=1_000)
    few = reading(hand, runs.stranded_chats, 50).pages
    more = "SELECT account, id, 'waiting', 1, 1, 1 FROM chats WHERE address LIKE 'past-%'"
    columns = "account, chat, state, order_at, idle_since, created_at"
    write(hand, f"INSERT INTO runs ({columns}) {more}")
    found = reading(hand, runs.stranded_chats, 50)
    assert not found.whole_tables & BIG
    assert found.pages <= few + 100


def test_a_page_of_waiting_chats_costs_as_much_however_many_wait_in_each(
    postgres_hand: Hand,
) -> None:
    hand = postgres_hand
    fill(hand, ended=1_000, waiting=1_000)
    few = reading(hand, runs.waiting_until, 50, 0).pages
    columns = "account, chat, state, order_at, idle_since, created_at"
    again = f"SELECT {columns} FROM runs, generate_series(1, 20) WHERE state = 'waiting'"
    write(hand, f"INSERT INTO runs ({columns}) {again}")
    for question in (runs.waiting_until, runs.stranded_chats):
        assert reading(hand, question, 50, 0).pages <= few + 300


def test_pages_of_waiting_chats_come_to_an_end_and_leave_none_out(hand: Hand) -> None:
    waiting = [hand.new_chat() for _ in range(5)]
    for chat in waiting:
        hand.waiting(chat)
    found, after = list[int](), 0
    while (until := hand.do(runs.waiting_until, 2, after)) is not None:
        found += hand.do(runs.stranded_chats, 2, after)
        after = until
    assert found == waiting


def test_a_page_of_a_chats_rows_is_read_in_the_order_of_an_index(full: Hand) -> None:
    indexes = {inbox: "ix_inbound_chat", outbox: "ix_outbox_chat", runs: "ix_runs_chat"}
    for rows, index in indexes.items():
        found = reading(full, rows.page, _chat(full), START, 10**9)
        assert (found.indexes, found.sorts) == ({index}, 0)


def test_a_run_is_found_by_itself_and_not_among_all_that_its_holder_has(hand: Hand) -> None:
    # Nobody has told the planner how many they are.
    *_, last = [hand.running() for _ in range(300)]
    hand.parts(last, begun=True)
    end = Close(Ending.ANSWERED, Cause.DELIVERED)
    for found in (
        reading(hand, runs.hold, last.claim),
        reading(hand, runs.mark_replied_each, [last.claim]),
        reading(hand, outbox.of_held, [last.claim]),
        reading(hand, runs.settle_each, [(last.claim, end)]),
    ):
        assert "ix_runs_running" not in found.indexes
        assert "runs" not in found.whole_tables


def test_a_claim_reads_no_more_when_thousands_are_ready(postgres_hand: Hand) -> None:
    hand = postgres_hand
    fill(hand, ended=2_000, waiting=100)
    hand.ready(hand.new_chat())
    few = _claim(hand)
    for _ in range(400):
        hand.ready(hand.new_chat())
    many = _claim(hand)
    assert many.statements == few.statements
    assert many.pages <= few.pages + 20


def test_heartbeats_and_failure_counts_stay_within_their_page(postgres_hand: Hand) -> None:
    hand = postgres_hand
    run = hand.running()
    for _ in range(30):
        hand.do(runs.progress, run.claim)
        hand.do(holders.renew, hand.holder)
    assert _changes(hand, "runs") == _changes(hand, "holders") == (30, 30)


def test_what_becomes_of_a_part_stays_within_its_page(postgres_hand: Hand) -> None:
    hand = postgres_hand
    for number in range(30):
        run = hand.running()
        first, second = hand.parts(run, "one", "two", begun=True)
        hand.do(outbox.receive, Attempt(first.id, 1), f"a{number}")
        hand.do(outbox.mark_sending, run.claim, second.id)
        hand.do(outbox.receive, Attempt(second.id, 1), f"b{number}")
        for state in (PartState.DELIVERED, PartState.READ):
            hand.do(outbox.confirm, second.id, f"b{number}", state, state.value)
    assert _changes(hand, "outbox") == (150, 150)


def _changes(hand: Hand, table: str) -> tuple[int, int]:
    """(updates of the table's rows, those that touched no index)."""
    counted = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = :name"
    hand.do(lambda tx: tx.run("SELECT pg_stat_force_next_flush()"))
    [(updates, within)] = hand.rows(counted, name=table)
    return updates, within


def _claim(hand: Hand) -> Reading:
    found: Any = reading(hand, runs.claim, hand.claimant(), {hand.account: 1}, 1)
    assert isinstance(found, Reading)
    return found
