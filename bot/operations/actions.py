"""Acts of an operator: their author, their outcome, and doing one or only planning it.

An action is one transaction that changes rows under a guard, or says why it does not: too
late, nothing to do, or refused because a person could read the same answer twice. Two shells
at once: the chat's lock lets one win, and the other is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bot.leases.runtime import Runtime
from storage.statements.tx import Tx

NOT_CONFIGURED = "its account is not configured here: run this where the service's environment is"


class Result(StrEnum):
    """The kinds of outcome of an act."""

    DONE = "done"
    TOO_LATE = "too late"
    """Somebody or something was quicker; nothing was changed."""
    REFUSED = "refused"
    """It would do harm, or can't work; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Operator:
    """The person who acts, with the reason that they gave."""

    name: str
    reason: str = ""

    def because(self, otherwise: str) -> str:
        """The reason that they gave, or else `otherwise`."""
        return self.reason or otherwise

    def signed(self, act: str) -> str:
        """The act, followed by who did it and the reason, if one was given."""
        return f"{act} by {self.name}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Acted:
    """The outcome of one act, with a sentence. `wake` are the hints to give after the commit."""

    subject: str
    result: Result
    said: str
    wake: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an act, by the name that its outcomes use."""

    name: str

    def done(self, said: str, *wake: str) -> Acted:
        return Acted(self.name, Result.DONE, said, wake)

    def too_late(self, said: str) -> Acted:
        return Acted(self.name, Result.TOO_LATE, said)

    def refused(self, said: str) -> Acted:
        return Acted(self.name, Result.REFUSED, said)


class _Planned(Exception):
    """Carries the outcome out of a transaction that is rolled back."""

    def __init__(self, acted: Acted) -> None:
        super().__init__("rolled back: a dry run")
        self.acted = acted


async def apply(rt: Runtime, act: Callable[[Tx], Acted], *, dry_run: bool = False) -> Acted:
    """Do the act in a transaction and give its hints, or only find out what it would do.

    Raises DatabaseUnavailable.
    """

    def plan(tx: Tx) -> Acted:
        raise _Planned(act(tx))

    try:
        acted = await rt.db.write_once(plan if dry_run else act)
    except _Planned as planned:
        return planned.acted
    for topic in acted.wake:
        rt.wakeups.tell(topic)
    return acted
