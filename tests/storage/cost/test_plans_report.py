"""Cost of an operator's questions with a long past: they read by index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from bot.domain.concern import Concern
from bot.domain.reply import PartKind
from bot.operations.reports.stuck import find_stuck
from storage.operators import hand_replies
from storage.statements.tx import Tx
from storage.views import chats, concerns, handoffs, lookup, progress, runs
from storage.views.conversation import Before, conversation
from storage.views.health import diagnostics, gauges
from tests.storage.cost.plans import BIG, Reading, fill, reading
from tests.storage.kit import LEASE, Hand


def _with_concern(hand: Hand, concern: Concern) -> Reading:
    return reading(hand, concerns.with_concern, concern, concerns.Mark(1.0, 1), 25)


QUESTIONS: dict[str, Callable[[Hand], Reading]] = {
    "dead_runs": lambda hand: reading(hand, diagnostics.dead_runs, LEASE),
    "orphan_parts": lambda hand: reading(hand, diagnostics.orphan_parts, LEASE),
    "late_runs": lambda hand: reading(hand, diagnostics.late_runs, 60.0),
    "runs_set_aside": lambda hand: reading(hand, diagnostics.runs_set_aside),
    "unclaimed_runs": lambda hand: reading(hand, diagnostics.unclaimed_runs, 60.0),
    "put_off_runs": lambda hand: reading(hand, diagnostics.put_off_runs, 60.0),
    "waiting_chats": lambda hand: reading(hand, diagnostics.waiting_chats, 60.0),
    "wanted": lambda hand: reading(hand, handoffs.wanted),
    "wanted in a chat": lambda hand: reading(hand, handoffs.wanted, 1),
    "forsaken": lambda hand: reading(hand, handoffs.forsaken, [1], 60.0),
    "uncertain_parts": lambda hand: reading(hand, diagnostics.uncertain_parts),
    "refused_parts": lambda hand: reading(hand, diagnostics.refused_parts, 604_800.0),
    "unsent_words": lambda hand: reading(hand, diagnostics.unsent_words, 60.0),
    "delayed_parts": lambda hand: reading(hand, diagnostics.delayed_parts, 60.0),
    "unparsed_payloads": lambda hand: reading(hand, diagnostics.unparsed_payloads),
    "conversation": lambda hand: reading(hand, conversation, 1, 20),
    "earlier conversation": lambda hand: reading(hand, conversation, 1, 20, Before(900.0, 99, 99)),
    "one chat": lambda hand: reading(hand, chats.chats_listed, [1]),
    "heard lately": lambda hand: reading(hand, chats.heard_lately, None, 25),
    "heard before": lambda hand: reading(hand, chats.heard_lately, 9_000, 25),
    "last ended": lambda hand: reading(hand, runs.last_ended, 1, 20),
    "last said": lambda hand: reading(hand, hand_replies.last_said, 1),
    "count concerns": lambda hand: reading(hand, concerns.count_concerns),
    "concerns of chats": lambda hand: reading(hand, concerns.concerns_of, [1, 2, 3]),
    **{f"with concern {concern}": partial(_with_concern, concern=concern) for concern in Concern},
    "of_one_run": lambda hand: reading(hand, _of_one_run, 20_001),
    "gauges": lambda hand: reading(hand, gauges.read_gauges),
    "rates": lambda hand: reading(hand, gauges.read_rates, 60.0),
    "runs_named": lambda hand: reading(hand, lookup.runs_named, "past-run-7"),
    "chats_named": lambda hand: reading(hand, lookup.chats_named, "past-7"),
    "run_at_work": lambda hand: reading(hand, progress.run_at_work, 1),
    "run_asked": lambda hand: reading(hand, progress.run_asked, 1, "past-run-7"),
    "recorded_under": lambda hand: reading(hand, lookup.recorded_under, "past-run-7", None),
}


def _of_one_run(tx: Tx, run: int) -> None:
    """Ask all that is asked when one run is shown."""
    diagnostics.dead_runs(tx, LEASE, run)
    diagnostics.runs_set_aside(tx, run)
    diagnostics.late_runs(tx, 0.0, run)
    diagnostics.put_off_runs(tx, 0.0, run)
    diagnostics.unclaimed_runs(tx, 0.0, run)
    diagnostics.orphan_parts(tx, LEASE, run)
    diagnostics.uncertain_parts(tx, run)
    diagnostics.uncertain_parts(tx, chat=1)
    diagnostics.refused_parts(tx, 604_800.0, run)
    diagnostics.unsent_words(tx, 0.0, run)
    diagnostics.delayed_parts(tx, 0.0, run)
    diagnostics.waiting_chats(tx, 0.0, 1)


@pytest.fixture
def full(hand: Hand) -> Hand:
    """A long past, a backlog, a few that are ready, a few notices."""
    fill(hand, ended=20_000, waiting=5_000)
    for _ in range(5):
        hand.ready(hand.new_chat())
        hand.post(hand.new_chat(), PartKind.NOTICE)
    return hand


def test_operators_questions_never_read_the_whole_past(full: Hand) -> None:
    grows = BIG - {"chats", "payloads"}  # the past of this test has few of them
    whole = {name: ask(full).whole_tables & grows for name, ask in QUESTIONS.items()}
    assert {name: tables for name, tables in whole.items() if tables} == {}


def test_paused_chats_are_found_without_reading_every_chat(full: Hand) -> None:
    for question in ("with concern paused", "count concerns"):
        assert "chats" not in QUESTIONS[question](full).whole_tables, question


def test_chats_that_were_handed_over_cost_what_waits_there_and_not_all_that_was_said(
    full: Hand,
) -> None:
    past = "SELECT id FROM chats ORDER BY id LIMIT 20"
    full.do(
        lambda tx: tx.run(
            f"UPDATE chats SET handoff_at = 1, paused_until = 1e12 WHERE id IN ({past})"
        )
    )
    for question in ("wanted", "wanted in a chat", "gauges", "count concerns"):
        found = QUESTIONS[question](full)
        assert "ix_inbound_chat" not in found.indexes, question
        # Of each chat some 16 wait; 130 have ended.
        assert found.pages <= 20 * 150, question


def test_a_backlog_is_counted_by_its_index(hand: Hand) -> None:
    """Most of what there is waits, so that it could be hoped to be met early in the table."""
    fill(hand, ended=1_000, waiting=25_000)
    for question in ("gauges", "waiting_chats"):
        assert "runs" not in QUESTIONS[question](hand).whole_tables, question


def test_what_is_put_off_costs_no_statement_each(hand: Hand) -> None:
    def asked() -> int:
        return reading(hand, find_stuck, 0.0, LEASE).statements

    hand.ready(hand.new_chat(), wait=900.0)
    hand.advance(1.0)
    for_one = asked()
    for _ in range(3):
        hand.ready(hand.new_chat(), wait=900.0)
    hand.advance(1.0)
    assert asked() == for_one
