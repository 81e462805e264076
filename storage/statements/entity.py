"""An entity: a frozen dataclass as rows of the database.

The dataclass spells the columns: each field is the table's column of its name, unless the
entity says otherwise. Enumerations and checked names are made of their values, and a field that
is itself a dataclass of its own columns in that place; NULL is None.

    RUN = Entity(Run, runs)
    find = select(*RUN.columns).where(runs.c.id == bindparam("run_id"))
    run = RUN.first(tx.execute(find, {"run_id": 7}))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import itemgetter
from types import UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from sqlalchemy import ColumnElement, FromClause

T = TypeVar("T")
Reader = Callable[[Any], Any]
"""Makes a field's value from a column's value, which is never None."""


class Entity(Generic[T]):
    """Reads dataclasses of the type `made` from rows that begin with `columns`.

    `spelled` has the fields that are not simply a column of `table`: an expression, an expression
    with its reader, or another entity. The last fields may be left to their defaults.
    """

    def __init__(
        self,
        made: type[T],
        table: FromClause,
        **spelled: ColumnElement[Any] | tuple[ColumnElement[Any], Reader] | Entity[Any],
    ) -> None:
        self.columns: tuple[ColumnElement[Any], ...]
        self._made = made
        self._readers: list[Callable[[Sequence[Any]], Any]] = []
        columns: tuple[ColumnElement[Any], ...] = ()
        types = get_type_hints(made)
        for field in fields(made):  # type: ignore[arg-type]  # dataclasses have no type of theirs
            kind = _without_none(types[field.name])
            source = spelled.pop(field.name, None)
            if source is None and is_dataclass(kind):
                source = Entity(kind, table)  # type: ignore[arg-type]  # a class, not an instance
            if source is None and field.name not in table.c:
                break
            at = len(columns)
            match source:
                case Entity():
                    columns += source.columns
                    self._readers.append(_nested(source, at, len(columns)))
                case (column, reader):
                    columns += (column,)
                    self._readers.append(_converted(reader, at))
                case _:
                    columns += (table.c[field.name] if source is None else source,)
                    self._readers.append(_converted(kind, at) if _is_own(kind) else itemgetter(at))
        assert not spelled, f"{made.__name__} has no {', '.join(spelled)}, or not in this order"
        self.columns = columns

    def read(self, row: Sequence[Any]) -> T:
        """The entity of a row. Columns after `columns` are ignored."""
        return self._made(*[read(row) for read in self._readers])

    def first(self, rows: Iterable[Sequence[Any]]) -> T | None:
        """The first of the rows, or None when there is none."""
        return next(map(self.read, rows), None)

    def all(self, rows: Iterable[Sequence[Any]]) -> list[T]:
        """Every row, in their order."""
        return [self.read(row) for row in rows]


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is UnionType:
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    return hint


def _is_own(kind: Any) -> bool:
    """Tell whether the column's value becomes this type by a call: an enumeration, a checked
    name."""
    return isinstance(kind, type) and issubclass(kind, Enum | str) and kind is not str


def _nested(entity: Entity[Any], at: int, until: int) -> Callable[[Sequence[Any]], Any]:
    return lambda row: entity.read(row[at:until])


def _converted(reader: Reader, at: int) -> Callable[[Sequence[Any]], Any]:
    return lambda row: None if row[at] is None else reader(row[at])
