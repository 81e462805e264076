"""A part as a row: reading it, and the questions about the parts of a chat or a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import sqlalchemy as sa

from bot.domain.decisions.verdict import PartFacts
from bot.domain.delivery import ARRIVED, MAY_BE_SHOWN, PartState, Scope
from bot.domain.reply import ANSWERING, PartBody, PartKind
from bot.domain.run import Claim, RunState
from storage.schema.tables import Watched, outbox, receipts, runs
from storage.statements.binds import (
    ACCOUNT_ID,
    AT_MOST,
    CHAT_ID,
    HOLDER_ID,
    PART_ID,
    RUN_ID,
    SECONDS,
)
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.literals import is_in, unindexed
from storage.statements.sets import Rows, among
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the outbox, with what a send needs. Times in epoch seconds."""

    id: int
    account: int
    chat: int
    run: int | None
    kind: PartKind
    number: int
    state: PartState
    standalone: bool
    holder: int | None
    attempts: int
    resends: int
    looks: int
    not_before: float
    started_at: float
    created_at: float
    confirmed: bool
    scope: Scope | None
    error: str
    replaced_by: int | None
    receipt: str | None
    body: PartBody

    @property
    def facts(self) -> PartFacts:
        """The part as the verdict reads it."""
        return PartFacts(
            id=self.id,
            number=self.number,
            state=self.state,
            attempts=self.attempts,
            resends=self.resends,
            looks=self.looks,
            not_before=self.not_before,
            started_at=self.started_at,
            confirmed=self.confirmed,
            scope=self.scope,
            error=self.error,
        )


class Notice(IntEnum):
    """The part numbers of a run's notices: each is said at most once, by a unique key."""

    STILL_WORKING = 1
    UNCERTAIN = 2
    TOO_OLD = 3
    RETRIED = 4
    HANDED_OVER = 5
    NOBODY_YET = 6


PART = Entity(Part, outbox, number=outbox.c.part)
FACTS = Entity(PartFacts, outbox, number=outbox.c.part)

PENDING = is_in(outbox.c.state, PartState.PENDING)
SENDING = is_in(outbox.c.state, PartState.SENDING)
SENT = is_in(outbox.c.state, PartState.SENT)
UNCERTAIN = is_in(outbox.c.state, PartState.UNCERTAIN)
REFUSED = is_in(outbox.c.state, PartState.REFUSED)
STANDALONE = outbox.c.standalone == sa.true()
OPERATOR = is_in(outbox.c.kind, PartKind.OPERATOR)
ANSWERS = is_in(outbox.c.kind, *sorted(ANSWERING))
IS_PART = outbox.c.id == PART_ID
OF_RUN = outbox.c.run == RUN_ID
OF_CHAT = outbox.c.chat == CHAT_ID

_GET = sa.select(*PART.columns).where(IS_PART)
_OF_RUN_ANY = sa.select(*PART.columns).where(OF_RUN, ANSWERS).order_by(outbox.c.part)
_OF_RUN = _OF_RUN_ANY.where(~outbox.c.standalone)
_BY_RECEIPT = (
    sa.select(*PART.columns)
    .join(receipts, receipts.c.outbox == outbox.c.id)
    .where(receipts.c.receipt == sa.bindparam("receipt_id"), outbox.c.account == ACCOUNT_ID)
    .where(outbox.c.receipt == receipts.c.receipt)
)
_begun = sa.select(*PART.columns).where(SENDING, outbox.c.holder == HOLDER_ID)
_SENDING_BY = sa.union_all(
    _begun.where(is_in(outbox.c.watched, Watched.LEAVING)),
    _begun.join(runs, runs.c.id == outbox.c.run).where(
        is_in(runs.c.state, RunState.RUNNING),
        runs.c.holder == HOLDER_ID,
        runs.c.replied == sa.true(),
        outbox.c.watched.is_(None),
    ),
)


SAID = sa.func.coalesce(outbox.c.reply, outbox.c.text)
"""The agent's own words, of a part that BEGINS_REPLY."""
BEGINS_REPLY = sa.and_(is_in(outbox.c.kind, PartKind.REPLY), outbox.c.part == 1)
_REPLY = sa.select(SAID).where(OF_RUN, BEGINS_REPLY)


def reply(tx: Tx, run: int) -> str | None:
    """The agent's reply to a run in its own words, or None."""
    said: str | None = tx.scalar(_REPLY, {"run_id": run})
    return said


def get(tx: Tx, part: int) -> Part | None:
    """One part, or None."""
    return PART.first(tx.execute(_GET, {"part_id": part}))


def of_run(tx: Tx, run: int) -> Sequence[Part]:
    """The parts of the run's reply or apology, in order."""
    return PART.all(tx.execute(_OF_RUN, {"run_id": run}))


_OF_RUNS = (
    sa.select(*PART.columns)
    .where(among(outbox.c.run, "run_ids"), ANSWERS, ~outbox.c.standalone)
    .order_by(outbox.c.part)
)


def of_runs(tx: Tx, runs: Sequence[int]) -> Mapping[int, Sequence[Part]]:
    """The same for several runs; one without parts is left out."""
    found: dict[int, list[Part]] = {}
    for part in PART.all(tx.execute(_OF_RUNS, {"run_ids": runs})) if runs else ():
        assert part.run is not None
        found.setdefault(part.run, []).append(part)
    return found


_claims = Rows("claims", run_id=sa.BigInteger(), holder_id=sa.BigInteger(), fence=sa.BigInteger())
_waiter = runs.alias("waiter")
_SOMEBODY_WAITS = sa.exists(
    sa.select(1).where(
        _waiter.c.chat == runs.c.chat,
        is_in(_waiter.c.state, RunState.WAITING),
    )
).correlate(runs)
_OF_HELD = (
    sa.select(*FACTS.columns, outbox.c.run, _SOMEBODY_WAITS)
    .select_from(
        _claims.join(
            runs,
            sa.and_(
                runs.c.id == _claims.c.run_id,
                unindexed(runs.c.holder) == _claims.c.holder_id,
                runs.c.fence == _claims.c.fence,
                is_in(unindexed(runs.c.state), RunState.RUNNING),
            ),
        ).join(outbox, outbox.c.run == runs.c.id)
    )
    .where(is_in(outbox.c.kind, PartKind.REPLY), ~outbox.c.standalone)
    .order_by(outbox.c.part)
)


@dataclass(frozen=True, slots=True)
class HeldReply:
    """The parts of a running run's reply, in order, and whether another run waits behind it."""

    parts: list[PartFacts]
    waits: bool


def of_held(tx: Tx, claims: Sequence[Claim]) -> Mapping[int, HeldReply]:
    """The replies of those runs that are still held under these claims. Their chats are locked:
    that keeps everybody else from moving them."""
    if not claims:
        return {}
    found: dict[int, HeldReply] = {}
    rows = [(one.run, one.holder, one.fence) for one in claims]
    for *facts, run, waits in tx.execute(_OF_HELD, _claims.of(rows)):
        found.setdefault(run, HeldReply([], waits)).parts.append(FACTS.read(facts))
    return found


def of_run_any(tx: Tx, run: int) -> Sequence[Part]:
    """The parts of the run's answer, those that go out by themselves by now among them."""
    return PART.all(tx.execute(_OF_RUN_ANY, {"run_id": run}))


_behind = outbox.alias("behind")
_OVERTAKEN = sa.select(
    sa.exists(
        sa.select(1).where(
            _behind.c.chat == CHAT_ID,
            _behind.c.id > PART_ID,  # Runs of a chat store their answers one behind the other.
            is_in(_behind.c.kind, PartKind.REPLY),
            is_in(_behind.c.state, *sorted(MAY_BE_SHOWN)),
        )
    )
)


def overtaken(tx: Tx, part: Part) -> bool:
    """Tell whether the chat may have been shown an answer, or a part of this one, that belongs
    behind this part."""
    return bool(tx.scalar(_OVERTAKEN, {"chat_id": part.chat, "part_id": part.id}))


def by_receipt(tx: Tx, account: int, receipt: str) -> Part | None:
    """The part that a provider's id names, or None. For accounts whose platform reports on parts:
    it looks among all receipts, where other platforms' numbers come again and again."""
    return PART.first(tx.execute(_BY_RECEIPT, {"account_id": account, "receipt_id": receipt}))


def sending_by(tx: Tx, holder: int) -> Sequence[Part]:
    """The parts that this holder has begun to send and not heard of: those of its runs, and those
    that no run waits for."""
    return PART.all(tx.execute(_SENDING_BY, {"holder_id": holder}))


_BODIES = (
    sa.select(outbox.c.text, outbox.c.wire)
    .where(OF_CHAT)
    .order_by(
        sa.case((outbox.c.receipt == sa.bindparam("receipt_id"), 0), else_=1), outbox.c.id.desc()
    )
    .limit(sa.literal_column("200"))
)


def bodies(tx: Tx, chat: int, receipt: str) -> Iterator[PartBody]:
    """The parts that the chat was sent lately: the part with this receipt first, then the newest.
    Nothing is read before the first one is asked for."""
    for row in tx.execute(_BODIES, {"chat_id": chat, "receipt_id": receipt}):
        yield PartBody(row.text, row.wire)


_LAST_SENT_AT = (
    sa.select(outbox.c.sent_at)
    .where(OF_CHAT, outbox.c.sent_at.is_not(None))
    .order_by(outbox.c.id.desc())
    .limit(sa.literal_column("10"))
)


def last_sent_at(tx: Tx, chat: int) -> float | None:
    """The time at which something of ours last reached the chat, in epoch seconds; None for
    never."""
    return max(tx.scalars(_LAST_SENT_AT, {"chat_id": chat}).all(), default=None)


_lately = sa.select(outbox.c.id, outbox.c.receipt).where(OF_CHAT, outbox.c.receipt.is_not(None))
_lately_owned = (
    _lately.order_by(outbox.c.id.desc()).limit(sa.literal_column("500")).subquery("lately")
)
_OWNED_RECEIPTS = sa.union_all(
    sa.select(_lately_owned.c.receipt),
    sa.select(receipts.c.receipt).join(_lately_owned, _lately_owned.c.id == receipts.c.outbox),
)


def owned_receipts(tx: Tx, chat: int) -> frozenset[str]:
    """Every receipt of the chat's parts: a look-up must not adopt one that is known, be it
    another part's or an earlier attempt's of the same one."""
    return frozenset(tx.scalars(_OWNED_RECEIPTS, {"chat_id": chat}))


_WORDS = 200
"""Of operators, the newest of a chat: they leave in their order."""


def answered_at(chat: sa.Column[int]) -> sa.ColumnElement[float | None]:
    """The time at which an operator wrote the last of the words that reached this chat, in epoch
    seconds. They may have waited to leave: what came meanwhile they do not answer. Words that were
    sent with a device of their own ended what they answer when they were recorded."""
    lately = (
        sa.select(outbox.c.created_at, outbox.c.state)
        .where(outbox.c.chat == chat, OPERATOR, outbox.c.attempts > 0)
        .order_by(outbox.c.id.desc())
        .limit(sa.literal_column(str(_WORDS)))
        .correlate(chat.table)
        .subquery()
    )
    reached = is_in(lately.c.state, *sorted(ARRIVED))
    return sa.select(sa.func.max(lately.c.created_at)).where(reached).scalar_subquery()


_BY_DEVICE_AT = sa.select(sa.func.max(outbox.c.sent_at)).where(
    OF_CHAT, OPERATOR, outbox.c.attempts == 0, is_in(outbox.c.state, *sorted(ARRIVED))
)


def by_device_at(tx: Tx, chat: int) -> float | None:
    """The provider's time of the last words that a person of ours sent to this chat with a device
    of their own, in epoch seconds."""
    at: float | None = tx.scalar(_BY_DEVICE_AT, {"chat_id": chat})
    return at


_COUNT_UNFINISHED = sa.select(sa.func.count()).where(
    OF_CHAT, is_in(outbox.c.watched, Watched.DUE, Watched.LEAVING)
)


def count_unfinished(tx: Tx, chat: int) -> int:
    """The number of messages of a chat that are on their way or about to be, without a run that
    looks after them."""
    return int(tx.scalars(_COUNT_UNFINISHED, {"chat_id": chat}).one())


_UNREPORTED_FROM = 60.0
_UNREPORTED_UNTIL = 600.0
_UNREPORTED = (
    sa.select(outbox.c.id)
    .join(runs, runs.c.id == outbox.c.run)
    .where(
        runs.c.account == ACCOUNT_ID,
        runs.c.ended_at > now - _UNREPORTED_UNTIL,
        runs.c.ended_at < now - _UNREPORTED_FROM,
        runs.c.ending == "answered",
        SENT,
        ~outbox.c.confirmed,
    )
    .order_by(outbox.c.id)
    .limit(AT_MOST)
)


def unreported(tx: Tx, account: int, limit: int) -> Sequence[int]:
    """Parts of runs that were answered a few minutes ago, on which the platform has not said
    a word since it took them."""
    return tx.scalars(_UNREPORTED, {"account_id": account, "at_most": limit}).all()


_FOLLOWS_UNREPORTED = sa.select(
    sa.exists(
        sa.select(1).where(
            OF_RUN,
            outbox.c.kind == sa.bindparam("kind"),
            outbox.c.part < sa.bindparam("number"),
            SENT,
            ~outbox.c.confirmed,
            outbox.c.started_at > now - SECONDS,
        )
    )
)


def follows_unreported(tx: Tx, part: Part, within: float) -> bool:
    """Tell whether an earlier part of the same answer was taken in the last `within` seconds and
    is not reported on: this one could overtake it."""
    values = {"run_id": part.run, "kind": part.kind.value, "number": part.number}
    return part.run is not None and bool(
        tx.scalar(_FOLLOWS_UNREPORTED, values | {"seconds": within})
    )
