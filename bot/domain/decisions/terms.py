"""The operator's bounds, in pieces. Seconds unless the name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.decisions.verdict import POLICY, Policy


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """`seconds` a renewal is worth and `heartbeat` seconds between renewals."""

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
    """Bounds of the work on a turn. `handoff_patience` passes before a person who waits for
    another is told that nobody came; 0 is for ever."""

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
    """Bounds of intake and batching. `allowed` empty lets everybody in. `pieces_quiet` is waited
    for what may go on in a further message without an album's name; `album_longest` bounds both."""

    burst: Burst = Burst.MERGE
    quiet: float = 0.0
    album_quiet: float = 1.2
    pieces_quiet: float = 2.0
    album_longest: float = 6.0
    messages_per_minute: int = 60
    waiting_max: int = 100
    turns_per_day: int = 0
    words: bool = True
    """True where whole messages such as "cancel" are commands on WhatsApp."""
    data: bool = True
    """True where people ask themselves for a copy of their chat, or to have it forgotten."""
    allowed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Terms:
    """All bounds together, handed out in pieces."""

    work: WorkTerms = WorkTerms()
    intake: IntakeTerms = IntakeTerms()
    policy: Policy = POLICY
