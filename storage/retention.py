"""Retention: people's words are deleted once they are older than they are kept, page by page.

Of what ended, the runs give the order: their rows stay, emptied, and with them every id by which
a message is known as a duplicate. What belongs to no run (messages that nobody answered, an
operator's words) is walked through by its ids. A row of `retention` says how far a walk has come.
A page takes no chat that somebody is at work on, and waits for nobody.

Further rows are the installation's memory. One counts the seconds by which due times followed the
database's clock since the first day, and guards the following; beside it each boot of a machine
has one (`bot/leases/due_clock.py`). One says that the database came from a backup: a copy is made
with it, and who begins to work on it settles it (`restored`). One says that somebody was forgotten
whose words may be in unused space still (`compaction`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from storage import audit_log, chats, inbox, journal, outbox, reminders, runs, steps
from storage.operators import hand_replies, notes
from storage.schema.tables import inbound as inbound_rows
from storage.schema.tables import outbox as outbox_rows
from storage.schema.tables import retention
from storage.schema.tables import runs as run_rows
from storage.schema.tables.processes import RESTORED
from storage.statements import clock
from storage.statements.binds import SECONDS, STEP
from storage.statements.chat_rows import AT_ONCE
from storage.statements.clock import now
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx

_BEGIN = InsertOrSkip(retention, retention.c.what)
_WHAT = retention.c.what == sa.bindparam("name")
_MARK = (
    sa.select(retention.c.id, retention.c.at)
    .where(_WHAT)
    .with_for_update(key_share=True, skip_locked=True)
)
_MOVE_MARK = (
    sa.update(retention).where(_WHAT).values(id=sa.bindparam("new_id"), at=sa.bindparam("new_at"))
)
_PAGE: sa.ColumnElement[int] = sa.literal_column(str(AT_ONCE))
_ID, _AT = sa.bindparam("mark_id", type_=sa.BigInteger), sa.bindparam("mark_at", type_=sa.Double)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Rows in their order behind a mark (id, chat, at, and whether the row is `due` and this
    walk's `own` to empty), and how some of them are emptied."""

    name: str
    rows: sa.Select[Any]
    empty: Callable[[Tx, Sequence[int]], None]


def _empty_runs(tx: Tx, ids: Sequence[int]) -> None:
    for empty in (
        outbox.drop_receipts_of_runs,
        outbox.blank_of_runs,
        inbox.blank_of_runs,
        steps.blank,
        runs.blank,
    ):
        empty(tx, ids)


def _empty_parts(tx: Tx, ids: Sequence[int]) -> None:
    outbox.drop_receipts(tx, ids)
    outbox.blank(tx, ids)


def _behind(table: sa.Table, at: sa.Column[float]) -> sa.Select[Any]:
    """The rows of a table by their ids; those of no run are its walk's own."""
    due = (at < now - SECONDS).label("due")
    return (
        sa.select(table.c.id, table.c.chat, at.label("at"), due, table.c.run.is_(None).label("own"))
        .where(table.c.id > _ID)
        .order_by(table.c.id)
        .limit(_PAGE)
    )


_ended = run_rows.c.ended_at
_WALKS = (
    _Walk(
        "runs",
        sa.select(
            run_rows.c.id,
            run_rows.c.chat,
            _ended.label("at"),
            sa.true().label("due"),
            sa.true().label("own"),
        )
        .where(
            _ended.is_not(None),
            _ended >= _AT,
            _ended < now - SECONDS,
            sa.or_(_ended > _AT, run_rows.c.id > _ID),
        )
        .order_by(_ended, run_rows.c.id)
        .limit(_PAGE),
        _empty_runs,
    ),
    _Walk("inbound", _behind(inbound_rows, inbound_rows.c.received_at), inbox.blank),
    _Walk("outbox", _behind(outbox_rows, outbox_rows.c.created_at), _empty_parts),
)


def _walked(tx: Tx, walk: _Walk, older: float) -> bool:
    name = {"name": walk.name}
    _BEGIN.run(tx, {"what": walk.name})
    mark = tx.execute(_MARK, name).first()
    if mark is None:
        return False  # Another process is at it.
    asked = {"mark_id": mark.id, "mark_at": mark.at, "seconds": older}
    found = tx.execute(walk.rows, asked).all()
    free = chats.lock_free(tx, {row.chat for row in found if row.due})
    page = list(takewhile(lambda row: row.due and row.chat in free, found))
    if page:
        walk.empty(tx, [row.id for row in page if row.own])
        tx.execute(_MOVE_MARK, name | {"new_id": page[-1].id, "new_at": page[-1].at})
    return len(page) == AT_ONCE


def delete_old(tx: Tx, older: float) -> bool:
    """Delete one page each of what is older than `older` seconds. True: there may be more."""
    reminders.forget_past(tx, older)
    prunes = (
        inbox.drop_old_payloads,
        audit_log.drop_old,
        journal.prune,
        notes.forget_old,
        hand_replies.forget_old,
    )
    more = [prune(tx, older) for prune in prunes]
    return any([*more, *(_walked(tx, walk, older) for walk in _WALKS)])


_CLOCK = "clock"
_BASE = sa.bindparam("base_of", type_=sa.Text)
_DUE_TIMES = sa.select(
    sa.select(retention.c.at).where(retention.c.what == _CLOCK).scalar_subquery().label("followed"),
    sa.select(retention.c.at).where(retention.c.what == _BASE).scalar_subquery().label("base"),
)
_AT_FIRST = insert(retention).values(what=_CLOCK, at=_AT + STEP)
_FOLLOW = _AT_FIRST.on_conflict_do_update(
    index_elements=[retention.c.what],
    set_={"at": _AT_FIRST.excluded.at},
    where=retention.c.at == _AT,
)
_FIRST_BASE = insert(retention).values(what=_BASE, at=_AT)
_KEEP_BASE = _FIRST_BASE.on_conflict_do_update(
    index_elements=[retention.c.what], set_={"at": _FIRST_BASE.excluded.at}
)


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The clock of due times, which shows `now`; by how much they have `followed` it in all; and
    how far it is ahead of a machine's seconds since its boot, less that. None: nobody knows yet."""

    followed: float
    base: float | None
    now: float


def due_times(tx: Tx, machine: str) -> DueTimes:
    """All that shows whether somebody set the clock, for a machine by the name of its boot."""
    # In this order: what was followed before the clock was read is in what it shows.
    row = tx.execute(_DUE_TIMES, {"base_of": _base_of(machine)}).one()
    return DueTimes(row.followed or 0.0, row.base, clock.read(tx))


def keep_base(tx: Tx, machine: str, base: float) -> None:
    """Remember the base of a machine. A row for each of its boots."""
    tx.execute(_KEEP_BASE, {"base_of": _base_of(machine), "mark_at": base})


def _base_of(machine: str) -> str:
    return f"{_CLOCK} of {machine}"


def follow_clock(tx: Tx, followed: float, step: float) -> bool:
    """followed -> followed + step; who makes this move makes all due times follow. False: another
    one did since `followed` was read."""
    return tx.execute(_FOLLOW, {"mark_at": followed, "step": step}).rowcount == 1


_IS_RESTORED = retention.c.what == RESTORED
_OPEN = sa.select(retention.c.at).where(_IS_RESTORED, retention.c.id == 0)
_MARK_RESTORED = insert(retention).values(what=RESTORED, id=0, at=_AT)
_MARK_AGAIN = _MARK_RESTORED.on_conflict_do_update(
    index_elements=[retention.c.what],
    set_={"at": _MARK_RESTORED.excluded.at, "id": 0},
    where=retention.c.id == 1,
)
_SETTLE_RESTORED = (
    sa.update(retention).where(_IS_RESTORED, retention.c.id == 0).values(id=1, at=now)
)


def mark_restored(tx: Tx, made_at: float) -> None:
    """The database came from a backup that was made then; what its copy says of that holds."""
    tx.execute(_MARK_AGAIN, {"mark_at": made_at})


def restored_from(tx: Tx) -> float | None:
    """The moment of the backup from which the database came, until that is settled."""
    found: float | None = tx.scalar(_OPEN)
    return found


def settle_restored(tx: Tx) -> bool:
    """Settle that the database came from a backup, once. False: another process did."""
    return tx.execute(_SETTLE_RESTORED).rowcount == 1


_COMPACTION = "compaction"
_IS_COMPACTION = retention.c.what == _COMPACTION
_OWE = insert(retention).values(what=_COMPACTION, id=0, at=now)
_OWE = _OWE.on_conflict_do_update(
    index_elements=[retention.c.what], set_={"at": _OWE.excluded.at, "id": 0}
)
_OWED = sa.select(retention.c.at).where(_IS_COMPACTION, retention.c.id == 0)
_COMPACTED = (
    sa.update(retention)
    .where(_IS_COMPACTION, retention.c.id == 0, retention.c.at <= _AT)
    .values(id=1)
)


def owe_compaction(tx: Tx) -> None:
    """Somebody was forgotten: the database is to be written anew, without what was deleted."""
    tx.execute(_OWE)


def compaction_owed(tx: Tx) -> float | None:
    """The moment since which that is owed; None where it is not."""
    found: float | None = tx.scalar(_OWED)
    return found


def compacted(tx: Tx, owed_since: float) -> None:
    """Settle all that was owed then; whoever was forgotten since is owed it still."""
    tx.execute(_COMPACTED, {"mark_at": owed_since})
