"""The clock of due times: noticing that somebody has set it.

Due times and deadlines are seconds of the database's wall clock. If that clock is set, they are
moved by the same step, once, and `followed` is the sum of all steps that were followed so far. So

    wall clock - followed - seconds since this machine's boot

is constant, however often the clock is set. This constant is the machine's *base*. It is kept in
the database, so that any process can tell a step by it: the process that saw the clock before may
be dead, and one that was busy may have missed that the clock was set.

A system that does not name its boots has no base. There, a process compares with what it saw last.
"""

from __future__ import annotations

from bot.domain.decisions.terms import LeaseTerms
from bot.domain.ports import UNKNOWN_BOOT, Clock
from storage.retention import DueTimes


class DueClock:
    """One process's view of the clock of due times. `machine` names this boot of this machine."""

    def __init__(self, clock: Clock, terms: LeaseTerms) -> None:
        self.machine = clock.boot()[0]
        self._clock = clock
        self._slack = terms.seconds / 2
        """Seconds: a smaller difference is drift, and not a step."""
        self._settles = terms.seconds
        self._seen: tuple[float, float] | None = None
        self._like_this_since = 0.0

    def step(self, found: DueTimes, asked: float) -> float:
        """Seconds by which somebody set the clock and which nobody has followed yet; 0 for none.

        `found` was asked for at monotonic second `asked`; if it took long, it tells nothing.
        """
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
        # We saw no step, but one was followed: we began after it.
        self._seen = ahead, found.followed
        return 0.0

    def _unfollowed(self, ahead: float, followed: float) -> float:
        """The step, judged by what this process saw last."""
        ahead_before, followed_before = self._seen or (ahead, followed)
        step = ahead - ahead_before
        return step - (followed - followed_before) if abs(step) > self._slack else 0.0

    def has_followed(self, found: DueTimes, step: float) -> None:
        """Note that this process has moved the due times by this step."""
        if self._seen is not None:
            ahead_before, followed_before = self._seen
            seen = found.followed - followed_before + step
            self._seen = ahead_before + seen, found.followed + step

    def to_keep(self, found: DueTimes) -> float | None:
        """The base to store now, given that no step was found; None: leave it.

        A first base is stored once nobody has followed a step for the length of a lease, since an
        older process would have. A base is renewed when the clocks have drifted apart.
        """
        if self._seen is None or self.machine == UNKNOWN_BOOT:
            return None
        ahead, followed = self._seen
        base = ahead - followed
        if found.base is None:
            settled = self._clock.monotonic() - self._like_this_since >= self._settles
            return base if settled and followed == found.followed else None
        return base if abs(base - found.base) > self._slack / 2 else None
