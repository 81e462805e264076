"""A run: the obligation to answer one message, or several that came before it was begun."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.ending import Cause, Ending


class RunState(StrEnum):
    """The states of a run, each with whoever moves it on.

    `waiting` stands behind another run of its chat, until the transaction that ends that
    run promotes it; `ready` is the head of its chat, until a worker claims it; `running`
    is owned by a holder under a fence, until that holder settles or requeues it, or a
    recovery pass releases it; `ended` has an ending and moves no more.
    """

    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"


LIVE = (RunState.WAITING, RunState.READY, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class Claim:
    """A holder's hold on one run. Every write names all three, and fails if the run has moved."""

    run: int
    holder: int
    fence: int


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `runs`. Times are in epoch seconds of the database's clock.

    `attempts` counts claims, `failures` failures without progress, and `deaths` the holders that
    died while its agent was at work, unless they were draining. `replied`: its reply or an apology
    is stored. `cause` is why it ended, or why an apology is owed. `messages` counts the messages
    that it answers, and is 0 once their words were deleted. `handoff` is why its agent asked for a
    person, None if it did not.
    """

    id: int
    chat: int
    account: int
    state: RunState
    fence: int
    holder: int | None
    attempts: int
    failures: int
    deaths: int
    replied: bool
    not_before: float
    deadline_at: float | None
    created_at: float
    ending: Ending | None
    cause: Cause | None
    detail: str
    messages: int = 1
    handoff: str | None = None

    @property
    def claim(self) -> Claim:
        """The hold of the worker that claimed this run. The run must be running."""
        assert self.holder is not None
        return Claim(self.id, self.holder, self.fence)
