"""Seals of a database, and the decision about a copy from one database to another.

A sealed database takes no rows and lets no process start. A copy seals its target before the first
row, and its source when every row was compared; last of all it opens the target. So whenever it
dies, at most one of the two can be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from bot.domain.errors import ConfigurationError


class SealKind(StrEnum):
    """The reason that a database is sealed."""

    MOVED = "moved"
    """Everything of it is in another database, which goes on in its place."""
    UNFINISHED = "unfinished"
    """A copy is being made here, or was given up."""
    WHOLE = "whole"
    """A copy was made here and compared, and not opened yet."""


SEALED_REVISIONS = frozenset(kind.value for kind in SealKind)
"""They stand in the place of a schema's floor, where no version of this program knows them."""


@dataclass(frozen=True, slots=True)
class Seal:
    """A seal. `copy` names the copy that set it, `place` is the other database of it, without a
    password, and `revision` the floor of the sealed one's schema."""

    kind: SealKind
    copy: str
    place: str
    revision: str

    @property
    def says(self) -> str:
        """The seal, for operators."""
        match self.kind:
            case SealKind.MOVED:
                return f"the database has moved to {self.place}"
            case SealKind.UNFINISHED:
                return f"the database holds an unfinished copy of {self.place}"
            case SealKind.WHOLE:
                return f"the database holds a copy of {self.place} that was not opened"
            case other:
                assert_never(other)

    @property
    def fix(self) -> str:
        """The way on."""
        match self.kind:
            case SealKind.MOVED:
                return "name that one in DATABASE_URL, or see `answerback db reopen --help`"
            case SealKind.UNFINISHED | SealKind.WHOLE:
                return "run the same `answerback db copy` again"
            case other:
                assert_never(other)


class DatabaseSealed(ConfigurationError):
    """The database is sealed: nothing may be done with it."""

    def __init__(self, seal: Seal) -> None:
        self.seal = seal
        super().__init__(f"DATABASE_URL: {seal.says}; {seal.fix}")


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database before a copy, at `place`. `revision` is that of its schema, None without one.
    `strange` are tables that have names of ours and no schema of ours, `filled` those that have
    rows."""

    place: str
    revision: str | None = None
    seal: Seal | None = None
    strange: Sequence[str] = ()
    filled: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Fill:
    """Copy everything; what the target holds of an earlier try is replaced."""


@dataclass(frozen=True, slots=True)
class Open:
    """The target was filled and compared, and the source sealed: only open the target."""


def judge_copy(source: DatabaseState, target: DatabaseState, newest: str) -> Fill | Open:
    """The rest of a copy that there is to do, by a program whose schema is `newest`. Raises
    ConfigurationError where it must not be done."""
    if source.place == target.place:
        raise ConfigurationError(f"{source.place} can't be copied to itself")
    if source.seal is not None:
        ours = target.seal is not None and target.seal.copy == source.seal.copy
        if source.seal.kind is SealKind.MOVED and ours:
            return Open()
        raise DatabaseSealed(source.seal)
    if source.revision != newest:
        raise ConfigurationError(
            f"{source.place} is at schema {source.revision or 'none'} and this version at "
            f"{newest}: `answerback db upgrade` brings it there, unless it is the newer one"
        )
    if (seal := target.seal) is not None:
        if seal.kind is SealKind.MOVED or seal.place != source.place:
            raise ConfigurationError(f"{target.place} can't be used: {seal.says}; {_ANOTHER}")
        return Fill()
    if target.revision is not None and target.revision != newest:
        raise ConfigurationError(
            f"{target.place} is at schema {target.revision} and {source.place} at {newest}: "
            f"both must be the same; {_ANOTHER}"
        )
    for tables, says in ((target.strange, "has tables of others"), (target.filled, "is not empty")):
        if tables:
            names = ", ".join(tables)
            raise ConfigurationError(f"{target.place} {says} ({names}); {_ANOTHER}")
    return Fill()


_ANOTHER = "name an empty database"
