"""The decision about a copy: from which database, to which, and what is left to do of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.decisions.seals import DatabaseState, Fill, Open, Seal, SealKind, judge_copy
from bot.domain.errors import ConfigurationError

NEWEST = "0007"
OLD = DatabaseState("sqlite:////srv/bot.db", NEWEST, filled=("runs",))
NEW = DatabaseState("postgresql://db:5432/bot")


def sealed(state: DatabaseState, kind: SealKind, copy: str, place: str) -> DatabaseState:
    return replace(state, revision=kind.value, seal=Seal(kind, copy, place, NEWEST))


MOVED = sealed(OLD, SealKind.MOVED, "one", NEW.place)
UNFINISHED = sealed(NEW, SealKind.UNFINISHED, "one", OLD.place)
WHOLE = sealed(replace(NEW, filled=("runs",)), SealKind.WHOLE, "one", OLD.place)


@pytest.mark.parametrize(
    ("source", "target", "left"),
    [
        (OLD, NEW, Fill()),
        (OLD, replace(NEW, revision=NEWEST), Fill()),
        (OLD, UNFINISHED, Fill()),
        (OLD, WHOLE, Fill()),
        (MOVED, WHOLE, Open()),
    ],
)
def test_a_copy_that_broke_off_goes_on_where_nothing_is_lost(
    source: DatabaseState, target: DatabaseState, left: Fill | Open
) -> None:
    assert judge_copy(source, target, NEWEST) == left


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (OLD, replace(OLD, filled=()), "can't be copied to itself"),
        (replace(OLD, revision="0006"), NEW, "is at schema 0006 and this version at 0007"),
        (replace(OLD, revision=None), NEW, "is at schema none"),
        (OLD, replace(NEW, revision="0006"), "both must be the same"),
        (OLD, replace(NEW, strange=("events", "files")), "has tables of others (events, files)"),
        (OLD, replace(NEW, revision=NEWEST, filled=("runs",)), "is not empty (runs)"),
        (OLD, sealed(NEW, SealKind.MOVED, "one", OLD.place), "the database has moved to"),
        (OLD, sealed(NEW, SealKind.WHOLE, "one", "sqlite:////other.db"), "other.db"),
        (MOVED, NEW, f"has moved to {NEW.place}"),
        (MOVED, replace(WHOLE, seal=Seal(SealKind.WHOLE, "two", OLD.place, NEWEST)), "has moved"),
        (sealed(OLD, SealKind.UNFINISHED, "one", "x"), NEW, "an unfinished copy of x"),
        (sealed(OLD, SealKind.WHOLE, "one", "x"), NEW, "a copy of x that was not opened"),
    ],
)
def test_what_would_lose_something_or_can_not_work_is_refused_with_the_reason(
    source: DatabaseState, target: DatabaseState, says: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        judge_copy(source, target, NEWEST)
    assert says in str(refused.value)
