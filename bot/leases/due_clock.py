"""The clock of due times, which somebody may set while nobody lives who saw it before.

Due times and deadlines are seconds of the database's wall clock. When that is set, they are moved
with it, once; `followed` counts by how much in all. So the clock, less what was followed, is always
as far ahead of the seconds since a machine's boot as it was when the first process began there.
That difference, the machine's *base*, is kept in the database, and whoever comes finds a step by
it: the process that saw the clock before may be dead, and one that was busy may have missed that it
was set forward and back.

A system that does not name its boots has no base. There a process knows what it saw itself.
"""

from __future__ import annotations

from bot.domain.decisions.terms import LeaseTerms
from bot.domain.ports import UNKNOWN_BOOT, Clock
from storage.retention import DueTimes


class DueClock:
    """One process's looks at the clock of due times. `machine` names this boot of this machine."""

    def __init__(self, clock: Clock, terms: LeaseTerms) -> None:
        self.machine = clock.boot()[0]
        self._clock = clock
        self._slack = terms.seconds / 2
        """Seconds. Less is no step, but drift."""
        self._settles = terms.seconds
        self._seen: tuple[float, float] | None = None
        self._like_this_since = 0.0

    def step(self, found: DueTimes, asked: float) -> float:
        """Seconds by which somebody set it and nobody has followed; 0 for none. It was looked at
        after monotonic second `asked`; what came late tells nothing."""
        now = self._clock.monotonic()
        if now - asked > self._slack / 2:
            return 0.0
        ahead = found.now - now
        if found.base is not None:
            step = ahead - found.followed - found.base
        else:
            step = self._unfollowed(ahead, found.followed)
        if abs(step) > self._slack:
            return step
        if self._seen is None or self._seen[1] != found.followed:
            self._like_this_since = now
        # Who saw no step and finds one followed began after it.
        self._seen = ahead, found.followed
        return 0.0

    def _unfollowed(self, ahead: float, followed: float) -> float:
        """The step, by what this process saw itself."""
        ahead_before, followed_before = self._seen or (ahead, followed)
        step = ahead - ahead_before
        return step - (followed - followed_before) if abs(step) > self._slack else 0.0

    def has_followed(self, found: DueTimes, step: float) -> None:
        """The due times followed this step by our hand."""
        if self._seen is not None:
            ahead_before, followed_before = self._seen
            seen = found.followed - followed_before + step
            self._seen = ahead_before + seen, found.followed + step

    def to_keep(self, found: DueTimes) -> float | None:
        """The base to be kept now, when no step was found: where there is none, once nobody has
        followed anything for a lease, since whoever is older would have; and after much drift."""
        if self._seen is None or self.machine == UNKNOWN_BOOT:
            return None
        ahead, followed = self._seen
        base = ahead - followed
        if found.base is None:
            settled = self._clock.monotonic() - self._like_this_since >= self._settles
            return base if settled and followed == found.followed else None
        return base if abs(base - found.base) > self._slack / 2 else None
