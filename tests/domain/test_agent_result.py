"""Consequences of an agent's result, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.decisions.retry import RETRY
from bot.domain.decisions.verdict import (
    Answer,
    Apologise,
    Failed,
    GaveUp,
    Later,
    OutOfTime,
    PutBack,
    Thought,
    follows,
)
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import Reply
from bot.domain.run import Run, RunState

RUN = Run(
    id=1,
    chat=1,
    account=1,
    state=RunState.RUNNING,
    fence=1,
    holder=1,
    attempts=1,
    failures=0,
    deaths=0,
    replied=False,
    not_before=0.0,
    deadline_at=900.0,
    created_at=0.0,
    ending=None,
    cause=None,
    detail="",
)

ASKED = replace(RUN, handoff="wants a person")


@pytest.mark.parametrize(
    ("thought", "after"),
    [
        (Answer(Reply("hello")), Reply("hello")),
        (Answer(None), Close(Ending.SILENT, Cause.CHOSE_SILENCE, "left to a person")),
        (GaveUp(" Ask Ann. ", "no data"), Reply("Ask Ann.")),
        (GaveUp(" ", "no data"), Close(Ending.SILENT, Cause.GAVE_UP, "left to a person: no data")),
        (
            OutOfTime(),
            Close(Ending.SILENT, Cause.DEADLINE, "left to a person: the deadline passed"),
        ),
        (Later(30.0, "busy"), PutBack(30.0, "busy", failed=False)),
        (Failed("ValueError"), PutBack(RETRY.agent.after(1, 0.0), "ValueError", failed=True)),
    ],
)
def test_who_asked_for_a_person_never_apologises(
    thought: Thought, after: Reply | Close | PutBack
) -> None:
    assert follows(thought, ASKED, RETRY, 0.0, 1.0) == after


@pytest.mark.parametrize(
    ("thought", "after"),
    [
        (Answer(Reply("hello")), Reply("hello")),
        (Answer(None), Close(Ending.SILENT, Cause.CHOSE_SILENCE)),
        (GaveUp(" Ask Ann. ", "no data"), Apologise(Cause.GAVE_UP, "no data", "Ask Ann.")),
        (GaveUp(" ", ""), Apologise(Cause.GAVE_UP)),
        (OutOfTime(), Apologise(Cause.DEADLINE)),
        (Later(30.0, "busy"), PutBack(30.0, "busy", failed=False)),
        (Later(0.0, "at once"), PutBack(RETRY.soonest, "at once", failed=False)),
        (
            Later(800.0, "busy"),
            Apologise(Cause.GAVE_UP, "it was asked to wait 800 s, past its deadline: busy"),
        ),
        (Later(None, "busy"), PutBack(RETRY.agent.after(1, 0.0), "busy", failed=False)),
        (Failed("ValueError"), PutBack(RETRY.agent.after(1, 0.0), "ValueError", failed=True)),
    ],
)
def test_what_follows(thought: Thought, after: object) -> None:
    assert follows(thought, RUN, RETRY, 0.0, 100.0) == after


def test_the_last_failure_is_judged_at_once() -> None:
    run: Run = replace(RUN, failures=RETRY.max_failures - 1)
    assert follows(Failed("again"), run, RETRY, 0.9, 100.0) == PutBack(0.0, "again", failed=True)


@pytest.mark.parametrize("after", [None, 0.0, 30.0])
def test_a_wait_that_is_asked_for_when_the_time_is_up_ends_at_the_deadline(
    after: float | None,
) -> None:
    told = follows(Later(after, "busy"), RUN, RETRY, 0.0, 900.0)
    assert told == Apologise(Cause.DEADLINE)
