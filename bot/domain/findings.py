"""Checks: of a running process for `/readyz`, and of an installation for `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so for this process to do its job."""

    name: str
    well: bool
    says: str


class Level(StrEnum):
    """`problem`: it does not work; `warning`: it works, and something should be known."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `fix` says what to do, empty where nothing is wrong."""

    name: str
    level: Level
    says: str
    fix: str = ""


def fine(name: str, says: str) -> Finding:
    """Nothing is wrong with it."""
    return Finding(name, Level.OK, says)


def warning(name: str, says: str, fix: str) -> Finding:
    """It works, and somebody should know."""
    return Finding(name, Level.WARNING, says, fix)


def problem(name: str, says: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(name, Level.PROBLEM, says, fix)
