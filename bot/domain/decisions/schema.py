"""The decision whether a program may work on a database, by the schema that it is at.

A migration adds, and what programs of the version before do goes on as it did: old and new ones
work beside each other. One that takes something away raises the floor, and only programs from
there on may begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a database: the newest revision that was applied, and its floor, the oldest
    revision that a program must know to work on it."""

    revision: str
    floor: str


class Fit(Enum):
    """The way in which a database and a program go together."""

    SAME = "same"
    BEHIND = "behind"
    """The program brings it to its own schema first."""
    AHEAD = "ahead"
    """A newer program was here and has only added: this one works beside it, or instead."""
    BEYOND = "beyond"
    """A newer program was here and took something away that this one needs."""


def fit(schema: Schema, newest: str) -> Fit:
    """Judge a database for a program whose own schema is `newest`."""
    if schema.floor > newest:
        return Fit.BEYOND
    if schema.revision > newest:
        return Fit.AHEAD
    return Fit.SAME if schema.revision == newest else Fit.BEHIND
