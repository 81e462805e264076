"""The work on a run as those see it who wait for it: its messages, its steps, what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.delivery import ARRIVED
from bot.domain.ending import Ending
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.schema.tables import inbound, outbox, runs, steps
from storage.statements import clock
from storage.statements.binds import ACCOUNT_ID, RUN_ID
from storage.statements.entity import Entity
from storage.statements.literals import is_in
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class AskedMessage:
    """A message that the run answers; `deliveries` counts how often its platform brought it."""

    request_id: str
    provider_id: str
    text: str
    received_at: float
    deliveries: int


@dataclass(frozen=True, slots=True)
class TakenStep:
    """A step of the run. `begun` counts how often it was called; `result` is JSON, and with
    `done_at` None while it is under way. Times in epoch seconds of the database's clock."""

    key: str
    begun: int
    result: str | None
    started_at: float
    done_at: float | None


@dataclass(frozen=True, slots=True)
class _Course:
    id: int
    state: RunState
    ending: Ending | None
    attempts: int
    claimed_at: float | None
    replied: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """A run and all that was done for it, at the moment `now` of the database's clock.

    `attempts` counts claims, `claimed_at` is the last one's moment, `replied` says that its reply
    or an apology is stored, and `answers` are the parts of its reply that have a receipt.
    """

    run: int
    state: RunState
    ending: Ending | None
    attempts: int
    claimed_at: float | None
    replied: bool
    messages: Sequence[AskedMessage]
    steps: Sequence[TakenStep]
    answers: int
    now: float


_COURSE = Entity(_Course, runs)
_MESSAGE = Entity(AskedMessage, inbound)
_STEP = Entity(TakenStep, steps)
_BY_ID = sa.select(*_COURSE.columns).where(runs.c.id == RUN_ID)
_AT_WORK = (
    sa.select(*_COURSE.columns)
    .where(runs.c.account == ACCOUNT_ID, is_in(runs.c.state, RunState.RUNNING))
    .order_by(runs.c.claimed_at, runs.c.id)
)
_MESSAGES = sa.select(*_MESSAGE.columns).where(inbound.c.run == RUN_ID).order_by(inbound.c.id)
_STEPS = (
    sa.select(*_STEP.columns).where(steps.c.run == RUN_ID).order_by(steps.c.started_at, steps.c.key)
)
_ANSWERS = sa.select(sa.func.count()).where(
    outbox.c.run == RUN_ID,
    is_in(outbox.c.kind, PartKind.REPLY),
    is_in(outbox.c.state, *ARRIVED),
)
_ASKED = sa.select(inbound.c.run).where(
    inbound.c.account == ACCOUNT_ID, inbound.c.request_id == sa.bindparam("request_id")
)


def run_at_work(tx: Tx, account: int) -> Progress | None:
    """The run of this account that is worked on, of several the one that was claimed first."""
    return _progress(tx, _COURSE.first(tx.execute(_AT_WORK, {"account_id": account})))


def run_asked(tx: Tx, account: int, request_id: str) -> Progress | None:
    """The run that answers this message; None when there is no such message or none answers it."""
    asked = {"account_id": account, "request_id": request_id}
    found = tx.execute(_BY_ID, {"run_id": tx.scalar(_ASKED, asked)})
    return _progress(tx, _COURSE.first(found))


def run_progress(tx: Tx, run: int) -> Progress | None:
    """The run of this number, or None."""
    return _progress(tx, _COURSE.first(tx.execute(_BY_ID, {"run_id": run})))


def _progress(tx: Tx, course: _Course | None) -> Progress | None:
    if course is None:
        return None
    of_run = {"run_id": course.id}
    return Progress(
        run=course.id,
        state=course.state,
        ending=course.ending,
        attempts=course.attempts,
        claimed_at=course.claimed_at,
        replied=course.replied,
        messages=_MESSAGE.all(tx.execute(_MESSAGES, of_run)),
        steps=_STEP.all(tx.execute(_STEPS, of_run)),
        answers=tx.scalar(_ANSWERS, of_run) or 0,
        now=clock.read(tx),
    )
