"""A copy of everything from one database to another, which then goes on in its place.

1. The target is prepared and sealed as unfinished, and committed: nothing starts on it.
2. The source is locked: nobody else changes it until the end. It is read, and no more.
3. The target is filled, read again and compared, row by row, and sealed as whole: one commit.
4. The source is sealed as moved: the commit that ends its lock. From here on nothing writes there.
5. The target is opened.

Whoever dies before 4 leaves the source as it was, and a sealed target that the next try fills
anew; between 4 and 5 the next try has only to open the target. Tables and columns are those of
`storage/schema/tables`, in the order of their foreign keys: no list of them is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from itertools import compress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import URL, Table

from bot.domain.decisions.seals import DatabaseState, Open, Seal, SealKind, judge_copy
from bot.domain.errors import ConfigurationError
from bot.domain.message import clean
from bot.domain.ports import Clock
from storage import audit_log, holders
from storage.copying.ends import (
    CopyFailed,
    End,
    Values,
    end_of,
    place_of,
    state_of,
    unlocked_end_of,
)
from storage.copying.sums import RowSum
from storage.engine.private import make_file, make_folder
from storage.schema import migrate
from storage.schema.seal import (
    allow_changes,
    change_seal,
    lift_seal,
    refuse_changes,
    seal_of,
    set_seal,
)
from storage.schema.tables import metadata
from storage.statements.tx import Tx

__all__ = ["Copied", "CopiedTable", "CopyFailed", "Progress", "Stage", "copy", "place_of", "reopen"]

_TOLD_EVERY = 2000
"""Rows."""


class Stage(Enum):
    """The part of a copy that is under way."""

    COPYING = "copying"
    INDEXING = "making indexes"
    COMPARING = "comparing"
    SEALED = "the copy is whole"
    MOVED = "the source is closed"


@dataclass(frozen=True, slots=True)
class Progress:
    """The place that a copy has come to: `done` of `total` rows of this table in this stage. Each
    row is copied and compared; in all tables that was done `passed` times and has to be done `left`
    times."""

    stage: Stage
    table: str = ""
    done: int = 0
    total: int = 0
    passed: int = 0
    left: int = 0


Tell = Callable[[Progress], object]


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that is the same on both sides. `cleaned` counts rows of which the target can't hold
    a character."""

    name: str
    rows: int
    digest: str
    cleaned: int


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy that is in use from now on. No tables: an earlier call had copied them, and this one
    opened it."""

    source: str
    target: str
    tables: Sequence[CopiedTable]


@dataclass(frozen=True, slots=True)
class _Order:
    """One call of `copy`."""

    copy: str
    who: str
    lease_seconds: float
    tell: Tell


class _Counter:
    """Tells of rows as they pass."""

    def __init__(self, totals: Mapping[str, int], tell: Tell) -> None:
        self.totals = totals
        self.tell = tell
        self._passed = 0
        self._in_all = 2 * sum(totals.values())

    def through(self, stage: Stage, table: str, rows: Iterator[Values]) -> Iterator[Values]:
        """The rows, told of while they pass and when they are over."""
        done = 0
        for row in rows:
            done += 1
            self._passed += 1
            if done % _TOLD_EVERY == 0:
                self._say(stage, table, done)
            yield row
        self._say(stage, table, done)

    def _say(self, stage: Stage, table: str, done: int) -> None:
        left = self._in_all - self._passed
        self.tell(Progress(stage, table, done, self.totals[table], self._passed, left))


def copy(
    source: URL,
    target: URL,
    clock: Clock,
    *,
    lease_seconds: float,
    who: str,
    tell: Tell,
) -> Copied:
    """Copy everything, and put the target in the place of the source.

    Raises ConfigurationError where it must not be done, and nothing was; DatabaseUnavailable and
    CopyFailed where it was given up, and may be tried again."""
    order = _Order(clock.token(), who, lease_seconds, tell)
    with ExitStack() as stack:
        one = stack.enter_context(end_of(source, clock))
        found = state_of(one.tx, one.place)
        judge_copy(found, _state(target, clock), migrate.NEWEST)
        if found.seal is None:
            _refuse_living(one, lease_seconds)
        _make_folder(target)
        other = stack.enter_context(end_of(target, clock))
        one.hold()
        left = judge_copy(
            state_of(one.tx, one.place), state_of(other.tx, other.place), migrate.NEWEST
        )
        tables = () if isinstance(left, Open) else _copied(one, other, target, order)
        tell(Progress(Stage.MOVED))
        _open(other, f"{who} copied it from {one.place}", who)
        return Copied(one.place, other.place, tables)


def reopen(tx: Tx, who: str, why: str) -> Seal | None:
    """Open a sealed database again on an operator's word; returns its seal, None if it has none.
    Raises CopyFailed for an unfinished copy."""
    seal = seal_of(tx)
    if seal is None:
        return None
    if seal.kind is SealKind.UNFINISHED:
        raise CopyFailed(f"{seal.says}: there is nothing to open; {seal.fix}")
    lift_seal(tx, seal)
    audit_log.note(tx, who, "database reopened", why)
    return seal


def _state(url: URL, clock: Clock) -> DatabaseState:
    """The state of a database that may be missing, and stays so."""
    file = Path(str(url.database))
    if url.get_backend_name() == "sqlite" and not file.exists():
        return DatabaseState(place_of(url))
    with unlocked_end_of(url, clock) as end:
        return state_of(end.tx, end.place)


def _make_folder(url: URL) -> None:
    """Make the file of a database that is to be filled, and its folder. Raises
    ConfigurationError."""
    if url.get_backend_name() == "sqlite":
        file = Path(str(url.database)).absolute()
        try:
            make_folder(file.parent)
            make_file(file)
        except OSError as error:
            raise ConfigurationError(
                f"the new database {file} can't be made ({error.strerror}); name a file in a "
                "folder where this program may write"
            ) from error


def _copied(source: End, target: End, url: URL, order: _Order) -> Sequence[CopiedTable]:
    """Fill the target and seal both; the target waits to be opened."""
    _refuse_living(source, order.lease_seconds)
    _reserve(url, state_of(source.tx, source.place), order.copy)
    tables = metadata.sorted_tables
    counter = _Counter({table.name: _count(source.tx, table) for table in tables}, order.tell)
    target.begin()
    allow_changes(target.tx)
    target.prepare()
    sent = {table.name: _fill(source, target, table, counter) for table in tables}
    order.tell(Progress(Stage.INDEXING))
    target.finish()
    for table in tables:
        if table.autoincrement_column is not None:
            target.number_on(table, source.last_number(table))
    for table in tables:
        _compare(target, table, sent[table.name], counter)
    refuse_changes(target.tx)
    change_seal(target.tx, SealKind.WHOLE)
    target.commit()
    order.tell(Progress(Stage.SEALED))
    set_seal(source.tx, SealKind.MOVED, order.copy, target.place)
    source.commit()
    return [CopiedTable(name, s.sum.rows, s.sum.digest, s.cleaned) for name, s in sent.items()]


def _refuse_living(source: End, lease_seconds: float) -> None:
    living = holders.at_work(source.tx, lease_seconds)
    if living:
        names = ", ".join(f"{h.name} ({h.role}, process {h.pid} on {h.host})" for h in living)
        says = f"{source.place} is in use by {names}: stop what runs"
        if not source.tx.is_sqlite:
            says += f"; of what was killed the lease runs out within {lease_seconds:.0f} s"
        raise CopyFailed(says)


def _reserve(url: URL, source: DatabaseState, copy: str) -> None:
    """Bring the target to our schema, empty, and seal it. Raises ConfigurationError where it may
    not be filled."""
    whole = url.render_as_string(hide_password=False)
    with migrate.locked(whole) as connection, connection.begin():
        tx = migrate.transaction(connection)
        found = state_of(tx, place_of(url))
        judge_copy(source, found, migrate.NEWEST)
        if found.seal is not None:
            lift_seal(tx, found.seal)
            _empty(tx)
        migrate.apply_missing(connection)
        set_seal(tx, SealKind.UNFINISHED, copy, source.place)


def _empty(tx: Tx) -> None:
    names = [table.name for table in reversed(metadata.sorted_tables)]
    if not tx.is_sqlite:
        tx.run(f"TRUNCATE {', '.join(names)}")
        return
    for name in names:
        tx.run(f"DELETE FROM {name}")  # noqa: S608 - a name of ours


@dataclass(slots=True)
class _Sent:
    """The rows of a table that were handed to the target."""

    sum: RowSum
    cleaned: int = 0


def _count(tx: Tx, table: Table) -> int:
    return tx.scalar(sa.select(sa.func.count()).select_from(table)) or 0


def _fill(source: End, target: End, table: Table, counter: _Counter) -> _Sent:
    sent = _Sent(RowSum())
    cleans = source.tx.is_sqlite and not target.tx.is_sqlite
    stores = [column.computed is None for column in table.columns]
    whole = all(stores)

    def passed() -> Iterator[Values]:
        for found in counter.through(Stage.COPYING, table.name, source.rows(table)):
            row = found
            if cleans and any(isinstance(value, str) and "\0" in value for value in row):
                row = tuple(clean(value) if isinstance(value, str) else value for value in row)
                sent.cleaned += 1
            sent.sum.add(row)
            yield row if whole else tuple(compress(row, stores))

    target.fill(table, passed())
    return sent


def _compare(target: End, table: Table, sent: _Sent, counter: _Counter) -> None:
    """Read a table of the target again. Raises CopyFailed where it is not what was sent, or that is
    not what was counted before."""
    there = RowSum()
    for row in counter.through(Stage.COMPARING, table.name, target.rows(table)):
        there.add(row)
    expected = counter.totals[table.name]
    if (there.rows, there.digest) != (expected, sent.sum.digest):
        raise CopyFailed(
            f"{table.name} differs: {expected} rows with the sum {sent.sum.digest} became "
            f"{there.rows} with {there.digest}; the source is as it was"
        )


def _open(target: End, why: str, who: str) -> None:
    target.begin()
    seal = seal_of(target.tx)
    assert seal is not None
    lift_seal(target.tx, seal)
    audit_log.note(target.tx, who, "database copied", why)
    target.commit()
