"""Conditions spelled so that the planner takes the right index.

A partial index serves a statement only if the planner can see that the statement stays within
it. SQLite never looks into parameters, and PostgreSQL doesn't once it keeps one plan for all of
them: `state = 'ready'` finds the index of what is ready, `state = $1` reads the whole table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Double, Text, func, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def word(value: StrEnum) -> ColumnElement[str]:
    """The value of an enumeration of ours, as an SQL literal."""
    return literal_column(f"'{value.value}'", Text)


def is_in(column: ColumnElement[str], *values: StrEnum) -> ColumnElement[bool]:
    """Tell whether the column has one of these values, spelled as the conditions of indexes are."""
    if len(values) == 1:
        return column == word(values[0])
    return column.in_([word(value) for value in values])


def is_not(column: ColumnElement[str], value: StrEnum) -> ColumnElement[bool]:
    """Tell whether the column has another value."""
    return column != word(value)


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column, spelled so that no index serves it: for a condition that thousands of rows meet,
    beside one that names the row. Without statistics, a planner might choose the wrong one."""
    return func.coalesce(column, column)


class later_of(FunctionElement[float]):  # noqa: N801 - reads as the function that it is
    """The later of two times, neither of them NULL. Each is computed once; CASE would compute one
    of them twice."""

    type = Double()
    inherit_cache = True


@compiles(later_of, "postgresql")
def _greatest(element: later_of, compiler: SQLCompiler, **kw: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **kw)})"


@compiles(later_of, "sqlite")
def _scalar_max(element: later_of, compiler: SQLCompiler, **kw: Any) -> str:
    return f"max({compiler.process(element.clauses, **kw)})"
