"""The standing of new messages, one row for each, read while their chats are locked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from bot.domain.decisions.admission import ChatFacts, Unanswered
from bot.domain.decisions.terms import Burst, IntakeTerms
from bot.domain.message import ChatKind, Inbound
from bot.domain.run import RunState
from storage.chats import Chat
from storage.runs.rows import ENDED, HEADS, LIVE, OPEN, WAITING
from storage.schema.tables import holders, inbound, runs
from storage.statements.clock import now
from storage.statements.literals import is_in
from storage.statements.sets import Rows
from storage.statements.tx import Tx

_MINUTE = 60.0
_DAY = 86_400.0


class Taker(NamedTuple):
    """A run that one more message may join. `ready`: it is the head of the chat."""

    run: int
    attempts: int
    made_at: float
    ready: bool


class Standing(NamedTuple):
    """The circumstances that a message meets in its chat. Times in epoch seconds.

    `known` is the row under its request id, with its run, its provider's time and its `extra`.
    The head is the run that is ready or running, with the number of its claims, which is at least
    one where its answer is stored; `deserted` says that its holder is gone, `crossed` that a run of
    a chat that became part of this one is live. `waiting` counts the messages that wait behind,
    None where no run does; `last` is the last of those runs that nobody has begun, where messages
    join runs. `gathers` says that a run which nobody has begun waits for the rest of a bundle,
    `left_behind` that what came before of this message's own bundle concerned nobody. The rest
    counts messages and turns that came lately.
    """

    now: float
    known: int | None
    known_run: int | None
    known_sent_at: float | None
    known_extra: str | None
    head: int | None
    head_state: str | None
    head_attempts: int | None
    head_made_at: float | None
    deserted: bool
    crossed: bool
    waiting: int | None
    last: int | None
    last_made_at: float | None
    gathers: bool
    left_behind: bool
    recent_messages: int
    recent_turns: int

    @property
    def idle(self) -> bool:
        """Tell whether the chat has no live run."""
        return self.head is None and self.waiting is None and not self.crossed

    def facts(self, chat: Chat, names: frozenset[str] = frozenset()) -> ChatFacts:
        """The facts about the chat by which the message is admitted."""
        out = chat.opted_out_at is not None
        return ChatFacts(out, self.recent_messages, self.waiting or 0, self.recent_turns, names)

    @property
    def taker(self) -> Taker | None:
        """The run that the message may join: the last waiting one that was never claimed, or else
        the head if it is ready."""
        if self.last is not None and self.last_made_at is not None:
            return Taker(self.last, 0, self.last_made_at, ready=False)
        if self.head is not None and self.head_state == RunState.READY:
            assert self.head_attempts is not None
            assert self.head_made_at is not None
            return Taker(self.head, self.head_attempts, self.head_made_at, ready=True)
        return None


_came = Rows(
    "came",
    chat=sa.BigInteger(),
    account=sa.BigInteger(),
    request_id=sa.Text(),
    sent_at=sa.Double(),
    bundle=sa.Text(),
)
_PER_MINUTE = sa.bindparam("messages_per_minute", type_=sa.Integer)
_PER_DAY = sa.bindparam("turns_per_day", type_=sa.Integer)
_MERGES = sa.bindparam("merges", type_=sa.Integer)
_head = runs.alias("head")
_IN_CHAT = runs.c.chat == _came.c.chat
_UNBEGUN = sa.and_(_IN_CHAT, WAITING, runs.c.attempts == 0, runs.c.replied == sa.false())


def _scalar(select: sa.Select[Any]) -> sa.ScalarSelect[Any]:
    return select.correlate(_came.table).scalar_subquery()


def _counted(
    found: sa.Select[Any] | sa.CompoundSelect[Any], at_most: sa.BindParameter[int]
) -> sa.ScalarSelect[Any]:
    limited = found.limit(at_most).subquery()
    return sa.select(sa.func.count()).select_from(limited).scalar_subquery()


def _last(column: sa.Column[Any]) -> sa.Case[Any]:
    in_order = sa.select(column).where(_UNBEGUN).order_by(runs.c.order_at.desc(), runs.c.id.desc())
    return sa.case((_MERGES == 1, _scalar(in_order.limit(1))))


# Messages that did not concern us or were refused do not count. Those of a backlog arrive together
# without having been written so: where the provider tells the time, that is what counts.
_written_at = sa.func.coalesce(inbound.c.sent_at, inbound.c.received_at)
_recent_messages: sa.Select[Any] = (
    sa.select(sa.literal_column("1"))
    .where(
        inbound.c.chat == _came.c.chat,
        inbound.c.received_at > now - _MINUTE,
        sa.or_(inbound.c.run.is_not(None), inbound.c.command.is_not(None)),
        sa.or_(_came.c.sent_at.is_(None), _written_at > _came.c.sent_at - _MINUTE),
    )
    .correlate(_came.table)
)
_recent_turns: sa.CompoundSelect[Any] = sa.union_all(
    *(
        sa.select(sa.literal_column("1"))
        .where(_IN_CHAT, condition, runs.c.created_at > now - _DAY)
        .correlate(_came.table)
        for condition in (sa.and_(ENDED, runs.c.ended_at > now - _DAY), *OPEN)
    )
)
_left_behind: sa.Select[Any] = (
    sa.select(sa.literal_column("1"))
    .where(
        inbound.c.chat == _came.c.chat,
        inbound.c.received_at > now - sa.bindparam("longest", type_=sa.Double),
        inbound.c.album == _came.c.bundle,
        is_in(inbound.c.ignored, Unanswered.NOT_ADDRESSED),
    )
    .correlate(_came.table)
)
_gathers = sa.or_(
    *(
        sa.exists(
            sa.select(1)
            .where(_IN_CHAT, share, runs.c.attempts == 0, runs.c.album != sa.literal_column("''"))
            .correlate(_came.table)
        )
        for share in OPEN
    )
)
_crossed = sa.select(1).where(runs.c.moves_to == _came.c.chat, LIVE).correlate(_came.table)
_STANDING = (
    sa.select(
        now,
        inbound.c.id,
        inbound.c.run,
        inbound.c.sent_at,
        inbound.c.extra,
        _head.c.id,
        _head.c.state,
        sa.case((_head.c.replied == sa.true(), 1), else_=_head.c.attempts),
        _head.c.created_at,
        holders.c.id.is_not(None).label("deserted"),
        sa.exists(_crossed).label("crossed"),
        _scalar(sa.select(sa.func.sum(runs.c.messages)).where(_IN_CHAT, WAITING)),
        _last(runs.c.id),
        _last(runs.c.created_at),
        _gathers.label("gathers"),
        sa.case((_came.c.bundle.is_not(None), sa.exists(_left_behind)), else_=sa.false()).label(
            "left_behind"
        ),
        _counted(_recent_messages, _PER_MINUTE),
        sa.case((_PER_DAY > 0, _counted(_recent_turns, _PER_DAY)), else_=0),
    )
    .select_from(
        _came.table.outerjoin(
            inbound,
            sa.and_(
                inbound.c.account == _came.c.account, inbound.c.request_id == _came.c.request_id
            ),
        )
        .outerjoin(_head, sa.and_(_head.c.chat == _came.c.chat, is_in(_head.c.state, *HEADS)))
        .outerjoin(holders, sa.and_(holders.c.id == _head.c.holder, holders.c.gone_at.is_not(None)))
    )
    .order_by(_came.c.place)
)


def standing(
    tx: Tx, came: Sequence[tuple[int, int, Inbound]], terms: IntakeTerms
) -> Sequence[Standing]:
    """The standing of these messages (chat, account, message), at most one of each chat."""
    rows = _came.of(
        (
            chat,
            account,
            said.request_id,
            said.sent_at,
            said.bundle if said.chat_kind is ChatKind.GROUP else None,
        )
        for chat, account, said in came
    )
    rows |= {
        "longest": terms.album_longest,
        "messages_per_minute": terms.messages_per_minute,
        "turns_per_day": terms.turns_per_day,
        "merges": int(terms.burst is Burst.MERGE),
    }
    return [Standing(*row) for row in tx.execute(_STANDING, rows)]
