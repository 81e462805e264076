"""What an operator's act is: who does it, what became of it, and how it is done or rehearsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bot.leases.runtime import Runtime
from storage.engine.tx import Tx


class Result(StrEnum):
    """What became of an act."""

    DONE = "done"
    TOO_LATE = "too late"
    """Somebody or something was quicker; nothing was changed."""
    REFUSED = "refused"
    """It would do harm, or can't work; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Who acts, and why."""

    name: str
    reason: str = ""

    def because(self, otherwise: str) -> str:
        """The reason as it is kept."""
        return self.reason or otherwise


@dataclass(frozen=True, slots=True)
class Acted:
    """One act's outcome in one sentence. `wake` are the hints to tell after the commit."""

    subject: str
    result: Result
    said: str
    wake: tuple[str, ...] = ()


class _Rehearsed(Exception):
    """Carries a plan out of the transaction that is rolled back."""

    def __init__(self, acted: Acted) -> None:
        super().__init__("rolled back: a rehearsal")
        self.acted = acted


async def perform(rt: Runtime, act: Callable[[Tx], Acted], *, rehearse: bool = False) -> Acted:
    """Do the act in its transaction and tell who waits; or only find out what it would do.

    Raises DatabaseUnavailable.
    """
    if rehearse:
        try:
            return await rt.db.write(_rehearse, act)
        except _Rehearsed as rehearsed:
            return rehearsed.acted
    acted = await rt.db.write(act)
    for topic in acted.wake:
        rt.wakeups.tell(topic)
    return acted


def _rehearse(tx: Tx, act: Callable[[Tx], Acted]) -> Acted:
    raise _Rehearsed(act(tx))


NOT_CONFIGURED = "its account is not configured here: run this where the service's environment is"
