"""Lists as binds: one statement serves a set of any size.

    given = Rows("given", run_id=BigInteger(), receipt=Text())
    move = update(runs).where(runs.c.id == given.c.run_id).values(...)
    tx.execute(move, given.of([(7, "r1"), (8, "r2")]))

    tx.execute(select(runs).where(among(runs.c.id, "ids")), {"ids": [7, 8]})

Rows go over as JSON: an array for each column costs three times as much on both sides. A plain
list is an array for PostgreSQL and JSON for SQLite; the drivers make either of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Self

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Join,
    Select,
    any_,
    bindparam,
    column,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


class _Condition(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = False

    def self_group(self, against: object = None) -> Self:
        """Return it unchanged: SQLite would otherwise be told `... = 1`, which uses no index."""
        return self


class among(_Condition):  # noqa: N801 - reads as the operator that it is
    """The condition that a column is one of the values of the list bound as `name`."""

    def __init__(self, of: ColumnElement[Any], name: str) -> None:
        super().__init__(of)
        self.given = name


@compiles(among, "postgresql")
def _among_array(element: among, compiler: SQLCompiler, **kw: Any) -> str:
    [of] = element.clauses
    listed = bindparam(element.given, type_=ARRAY(of.type))
    return compiler.process(of == any_(listed), **kw)


@compiles(among, "sqlite")
def _among_json(element: among, compiler: SQLCompiler, **kw: Any) -> str:
    [of] = element.clauses
    listed = func.json_each(bindparam(element.given)).table_valued("value")
    return compiler.process(of.in_(select(listed.c.value)), **kw)


class within(_Condition):  # noqa: N801 - as above
    """The condition that a column is one of the values that a query finds. The query is run once,
    first, and PostgreSQL then looks up each value; with IN it might read all rows instead."""

    def __init__(self, of: ColumnElement[Any], found: Select[Any]) -> None:
        super().__init__(of, found.scalar_subquery())


@compiles(within, "postgresql")
def _within_array(element: within, compiler: SQLCompiler, **kw: Any) -> str:
    of, found = element.clauses
    return compiler.process(of == any_(func.array(found)), **kw)


@compiles(within, "sqlite")
def _within_query(element: within, compiler: SQLCompiler, **kw: Any) -> str:
    of, found = element.clauses
    return f"{compiler.process(of, **kw)} IN {compiler.process(found, **kw)}"


class Rows:
    """A list of rows to select from, under a name of its own. `c.place` is a row's place in the
    list, counted from 1."""

    def __init__(self, name: str, /, **columns: TypeEngine[Any]) -> None:
        self._name = name
        self.table: FromClause = _Listed(name, columns).table_valued(
            *(column(key, kind) for key, kind in columns.items()),
            column("place", BigInteger()),
            name=name,
        )
        self.c = self.table.c

    def join(self, to: FromClause, on: ColumnElement[bool]) -> Join:
        """The list joined to a table, read in this order."""
        return driving(self.table, to, on)

    def of(self, rows: Iterable[Sequence[object]]) -> dict[str, object]:
        """The binds for these rows, whose values are in the columns' order."""
        # Not escaped: what is no Unicode must not get in.
        return {self._name: json.dumps(list(rows), ensure_ascii=False)}


_CASTS = {BigInteger: "::bigint", Boolean: "::boolean", Double: "::float8", Integer: "::integer"}
"""Of a value's text into a column's type, on PostgreSQL."""


class _Listed(FunctionElement[Any]):
    inherit_cache = False

    def __init__(self, name: str, columns: dict[str, TypeEngine[Any]]) -> None:
        super().__init__()
        self.given = name
        self.given_columns = columns


@compiles(_Listed, "postgresql")
def _listed_jsonb(element: _Listed, compiler: SQLCompiler, **_kw: object) -> str:
    kinds = {key: _CASTS.get(type(kind), "") for key, kind in element.given_columns.items()}
    values = ", ".join(f"(value ->> {n}){kinds[key]} AS {key}" for n, key in enumerate(kinds))
    listed = compiler.process(bindparam(element.given, type_=JSONB))
    rows = f"jsonb_array_elements({listed}) WITH ORDINALITY AS listed (value, place)"
    return f"(SELECT {values}, place FROM {rows} WHERE place BETWEEN 1 AND {_MOST})"  # noqa: S608 - binds and our own names


@compiles(_Listed, "sqlite")
def _listed_json(element: _Listed, compiler: SQLCompiler, **_kw: object) -> str:
    keys = enumerate(element.given_columns)
    values = ", ".join(f"value ->> {place} AS {key}" for place, key in keys)
    listed = compiler.process(bindparam(element.given))
    return f"(SELECT {values}, key + 1 AS place FROM json_each({listed}))"  # noqa: S608 - as above


_MOST = 1_000_000


def taken_for_few(place: ColumnElement[int]) -> ColumnElement[bool]:
    """A condition on a row's place in a list, counted from 1, that is always true and that
    PostgreSQL takes for rare. It expects 100 rows of a list and may read a whole young table for
    them, and go on to do so when that has grown, since it keeps its plans; a row or two it looks
    up by index. `Rows` has it already."""
    return place.between(literal_column("1"), literal_column(str(_MOST)))


def driving(few: FromClause, to: FromClause, on: ColumnElement[bool]) -> Join:
    """Few rows joined to a table, read in this order: SQLite, which knows nothing of how few
    they are, could otherwise read the whole table for each of them, or first of all."""
    return _Driving(few, to, on)


class _Driving(Join):
    inherit_cache = False


@compiles(_Driving, "sqlite")
def _cross_join(element: _Driving, compiler: SQLCompiler, **kw: Any) -> str:
    kw["asfrom"] = True
    left, right = (compiler.process(side, **kw) for side in (element.left, element.right))
    kw["asfrom"] = False
    assert element.onclause is not None
    return f"{left} CROSS JOIN {right} ON {compiler.process(element.onclause, **kw)}"
