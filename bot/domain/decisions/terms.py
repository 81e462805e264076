"""The operator's bounds, grouped by the rooms that need them. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.decisions.verdict import POLICY, Policy


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """A lease lasts `seconds` from its last renewal, and is renewed every `heartbeat` seconds."""

    seconds: float
    heartbeat: float

    @property
    def margin(self) -> float:
        """Seconds before the end of the lease at which a holder stops acting."""
        return min(1.0, self.seconds / 10)


class Burst(StrEnum):
    """The treatment of messages that come while a run of their chat waits."""

    MERGE = "merge"
    """They join it and are answered together."""
    EACH = "each"
    """Each gets a run of its own."""


@dataclass(frozen=True, slots=True)
class WorkTerms:
    """Bounds of the work on turns. `handoff_patience` is the time after a handoff after which the
    person is told that nobody could answer yet; 0: never."""

    lease: LeaseTerms = LeaseTerms(15.0, 5.0)
    run_deadline: float = 900.0
    concurrency: int = 100
    shutdown_grace: float = 30.0
    still_working_after: float = 45.0
    handoff_patience: float = 3600.0
    typing_after: float = 2.0
    poll: float = 1.0
    history_runs: int = 50


@dataclass(frozen=True, slots=True)
class IntakeTerms:
    """Bounds of intake and batching. An empty `allowed` lets everybody in. `album_quiet` is the
    time without a further message after which an album is complete, `pieces_quiet` the same for a
    text in pieces; `album_longest` bounds both."""

    burst: Burst = Burst.MERGE
    quiet: float = 0.0
    album_quiet: float = 1.2
    pieces_quiet: float = 2.0
    album_longest: float = 6.0
    messages_per_minute: int = 60
    waiting_max: int = 100
    turns_per_day: int = 0
    words: bool = True
    """True if whole messages such as "cancel" are commands on WhatsApp."""
    data: bool = True
    """True if people may ask for a copy of their chat, or to have it forgotten."""
    allowed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Terms:
    """All bounds together."""

    work: WorkTerms = WorkTerms()
    intake: IntakeTerms = IntakeTerms()
    policy: Policy = POLICY
