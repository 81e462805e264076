"""How a run comes to be, and takes messages until somebody claims it.

A message makes a run, or joins the one that waits; an edit is used while nobody has begun. Both
hold only for a run that was never claimed, and a claim commits before it reads its messages.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Double,
    and_,
    bindparam,
    case,
    exists,
    insert,
    literal_column,
    null,
    select,
    update,
)

from bot.domain.run import Run, RunState
from storage import holders as holder_moves
from storage.engine.clock import now
from storage.engine.literals import is_in, word
from storage.engine.tx import Tx
from storage.runs.moves import COLUMNS, Claimant, run_of
from storage.schema.tables import accounts, holders, runs

_ME = bindparam("me", type_=BigInteger)
_OF = bindparam("of", type_=BigInteger)
_AT = bindparam("at", type_=Double)
_UNTIL = bindparam("until", type_=Double)


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be made at intake. Times in epoch seconds; `wait` delays its start."""

    account: int
    chat: int
    request_id: str
    order_at: float
    wait: float
    album: str


_INSERT = (
    insert(runs)
    .values(
        not_before=now + bindparam("wait"),
        idle_since=now,
        created_at=now,
        messages=literal_column("1"),
    )
    .returning(*COLUMNS)
)
_MAY_RUN = and_(
    holder_moves.alive(_ME, bindparam("lease_seconds", type_=Double)),
    exists(select(1).where(holders.c.id == _ME, ~holders.c.draining)),
    exists(select(1).where(accounts.c.id == _OF, accounts.c.down_since.is_(None))),
)
_INSERT_CLAIMED = _INSERT.values(
    state=case((_MAY_RUN, word(RunState.RUNNING)), else_=word(RunState.READY)),
    holder=case((_MAY_RUN, _ME), else_=null()),
    fence=case((_MAY_RUN, literal_column("1")), else_=literal_column("0")),
    attempts=case((_MAY_RUN, literal_column("1")), else_=literal_column("0")),
    claimed_at=case((_MAY_RUN, now), else_=null()),
    deadline_at=case((_MAY_RUN, now + bindparam("run_deadline")), else_=null()),
)


def insert_run(tx: Tx, new: NewRun, by: Claimant | None, *, head: bool) -> Run:
    """intake -> waiting | ready | running. With `by` and `head` it is born claimed, if that
    holder is alive and not draining, its account can send, and the run is due at once."""
    values: dict[str, object] = {
        "account": new.account,
        "chat": new.chat,
        "request_id": new.request_id,
        "order_at": new.order_at,
        "last_message_at": new.order_at,
        "wait": new.wait,
        "album": new.album,
    }
    if head and by is not None and not new.wait:
        values |= {
            "of": new.account,
            "me": by.holder,
            "lease_seconds": by.lease_seconds,
            "run_deadline": by.run_deadline,
        }
        return run_of(tx.execute(_INSERT_CLAIMED, values).one())
    values["state"] = RunState.READY.value if head else RunState.WAITING.value
    return run_of(tx.execute(_INSERT, values).one())


_UNCLAIMED = and_(
    runs.c.id == bindparam("run"),
    runs.c.attempts == 0,
    is_in(runs.c.state, RunState.WAITING, RunState.READY),
)
_LATER = case(
    (now + bindparam("wait") < _UNTIL, now + bindparam("wait")),
    else_=_UNTIL,
)
_JOIN = (
    update(runs)
    .where(_UNCLAIMED)
    .values(
        messages=runs.c.messages + 1,
        last_message_at=case(
            (runs.c.last_message_at < _AT, _AT),
            else_=runs.c.last_message_at,
        ),
    )
)
_JOIN_GATHERING = _JOIN.values(not_before=_LATER)


def join(tx: Tx, run: int, order_at: float, wait: float, until: float) -> bool:
    """Add a message to a run that was never claimed. False: somebody claimed it first.

    A run that collects (an album, a quiet time) is put off again by `wait` seconds, at most
    to `until` (epoch seconds).
    """
    values: dict[str, object] = {"run": run, "at": order_at}
    if not wait:
        return tx.execute(_JOIN, values).rowcount == 1
    return tx.execute(_JOIN_GATHERING, values | {"wait": wait, "until": until}).rowcount == 1


_TOUCH = select(1).where(_UNCLAIMED).with_for_update(key_share=True)


def touch_unclaimed(tx: Tx, run: int) -> bool:
    """Whether nobody has claimed this run; locks it until the transaction ends."""
    return tx.execute(_TOUCH, {"run": run}).first() is not None


def count_messages(tx: Tx, run: int, messages: int) -> None:
    """How many messages a run answers that was made for several at once."""
    tx.execute(update(runs).where(runs.c.id == run).values(messages=messages))
