"""The difference of two schemas, as programs of the older one feel it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, inspect

_VALUE = re.compile(r"'([^']*)'(?:::text)?")


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as its database tells it: its columns, and what it demands of rows, by names."""

    columns: Mapping[str, Mapping[str, Any]]
    demands: Mapping[str, str]


def shapes(connection: Connection) -> dict[str, TableShape]:
    """Every table of a database."""
    told = inspect(connection)
    return {name: _shape(told, name) for name in told.get_table_names()}


def _shape(told: Any, table: str) -> TableShape:
    columns = {column["name"]: column for column in told.get_columns(table)}
    demands = {c["name"]: f"CHECK {c['sqltext']}" for c in told.get_check_constraints(table)}
    for unique in told.get_unique_constraints(table):
        demands[unique["name"]] = f"UNIQUE {unique['column_names']}"
    for key in told.get_foreign_keys(table):
        goes_to = f"{key['referred_table']} {key['referred_columns']}"
        demands[key["name"]] = f"FOREIGN KEY {key['constrained_columns']} {goes_to}"
    for index in told.get_indexes(table):
        if index["unique"]:
            condition = {k: str(v) for k, v in index.get("dialect_options", {}).items()}
            demands[index["name"]] = f"UNIQUE INDEX {index['column_names']} {condition}"
    return TableShape(columns, demands)


def taken_away(before: Mapping[str, TableShape], after: Mapping[str, TableShape]) -> list[str]:
    """Everything by which a program that knows only `before` would fail on `after`: what it reads
    is gone, or a row that it writes is refused."""
    return [
        f"{name}: {fault}"
        for name, old in before.items()
        for fault in _faults(old, after.get(name))
    ]


def _faults(old: TableShape, new: TableShape | None) -> Iterator[str]:
    if new is None:
        yield "the table is gone"
        return
    yield from _of_columns(old, new)
    for name, demand in new.demands.items():
        if name not in old.demands:
            if not _is_of_new_columns(demand, old, new):
                yield f"{name} is new: {demand}"
        elif demand != old.demands[name] and not _is_wider(old.demands[name], demand):
            yield f"{name} was {old.demands[name]} and is {demand}"


def _of_columns(old: TableShape, new: TableShape) -> Iterator[str]:
    for name, column in old.columns.items():
        if name not in new.columns:
            yield f"the column {name} is gone"
            continue
        now = new.columns[name]
        if str(now["type"]) != str(column["type"]):
            yield f"{name} is {now['type']} and was {column['type']}"
        if column["nullable"] and not now["nullable"]:
            yield f"{name} may not be null any more"
        if column["default"] != now["default"] and not now["nullable"]:
            yield f"{name} has the default {now['default']} and had {column['default']}"
    for name, column in new.columns.items():
        filled = column["nullable"] or column["default"] is not None or column.get("computed")
        if name not in old.columns and not filled:
            yield f"{name} is new, and a row without it is refused"


def _is_of_new_columns(demand: str, old: TableShape, new: TableShape) -> bool:
    """Tell whether a demand leaves rows alone that an older program writes, as one does that speaks
    of nothing but columns that it leaves null."""
    named = {name for name in new.columns if re.search(rf"\b{name}\b", demand)}
    fresh = named - old.columns.keys()
    return (
        bool(fresh)
        and all(new.columns[name]["default"] is None for name in fresh)
        and (not demand.startswith("CHECK") or named == fresh)
    )


def _is_wider(old: str, new: str) -> bool:
    """Tell whether a demand only allows more values than before: the condition of a unique index
    demands more with each."""
    more = _values(old) < _values(new) and _skeleton(old) == _skeleton(new)
    return new.startswith("CHECK") and more


def _skeleton(demand: str) -> str:
    return re.sub(r"[\s,()]+", " ", _VALUE.sub("", demand)).strip()


def _values(demand: str) -> set[str]:
    return set(_VALUE.findall(demand))


def new_values(before: Mapping[str, TableShape], after: Mapping[str, TableShape]) -> list[str]:
    """The values that a column may have on `after` only, each after its constraint's name."""
    return sorted(
        f"{name} {value}"
        for table, old in before.items()
        for name, demand in old.demands.items()
        if table in after and name in after[table].demands
        for value in _values(after[table].demands[name]) - _values(demand)
    )
