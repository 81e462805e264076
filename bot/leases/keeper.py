"""Keeping the holder's lease: begin a life, renew it, notice that it is over.

What a lease is worth and why: `bot/domain/lease.py`. The keeper renews every heartbeat; when
the trust window closes before a renewal succeeds, the life is over: everything that acts in
its name is told to stop, and once the database answers again a new life begins, which gives
the old one's runs back without counting anything against them: a database that was away is
nobody's fault. When it was lost because something blocked the loop, though, one of the agents
that ran is the cause, and it counts as the death of the process would.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.lease import LeaseTerms, TrustWindow
from bot.domain.ports import Clock
from storage import audit_log, runs
from storage import holders as holder_rows
from storage.engine.database import Database
from storage.engine.name_lock import NameLock
from storage.engine.tx import Tx
from storage.holders import Identity

_log = logging.getLogger("answerback.lease")


@dataclass(frozen=True, slots=True)
class Life:
    """One holder row while we may believe in it."""

    holder: int
    window: TrustWindow


class LeaseKeeper:
    """Owns this process's lease and its name."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        terms: LeaseTerms,
        identity: Identity,
        stood: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._db = db
        self._clock = clock
        self._terms = terms
        self._identity = identity
        self._names = NameLock(db.url, identity.name)
        self._life: Life | None = None
        self._lapsed: int | None = None
        self._stood = stood
        self._blocked = False
        self._judges_from = 0.0
        self._draining = False
        self._on_lapse: list[Callable[[], None]] = []
        self.late_renewals = 0

    @property
    def terms(self) -> LeaseTerms:
        return self._terms

    @property
    def name(self) -> str:
        return self._identity.name

    @property
    def draining(self) -> bool:
        return self._draining

    def on_lapse(self, stop: Callable[[], None]) -> None:
        """Call `stop` when the lease is lost: it must make everything in our name stop."""
        self._on_lapse.append(stop)

    def holds(self) -> bool:
        """Whether this process may begin a move or a send now."""
        return self._life is not None and self._life.window.holds(self._clock.monotonic())

    def holder(self) -> int:
        """The holder's id. Raises StaleLease when the lease is not ours to use."""
        if self._life is None or not self._life.window.holds(self._clock.monotonic()):
            raise StaleLease("this process holds no lease now")
        return self._life.holder

    def may_judge(self) -> bool:
        """Whether this process may call others dead: not right after it failed to renew."""
        return self.holds() and self._clock.monotonic() >= self._judges_from

    def remaining(self) -> float:
        """Seconds until the trust window closes; 0 without a lease."""
        if self._life is None:
            return 0.0
        return max(0.0, self._life.window.until - self._clock.monotonic())

    async def begin(self) -> None:
        """Begin a life. Earlier lives of our name are dead when the name's lock is ours."""
        began = self._clock.monotonic()
        identity = replace(self._identity, boot=self._clock.token())
        holder, name = await self._db.renew(
            _begin, identity, self._lapsed, self._names, blocked=self._blocked
        )
        self._identity = replace(identity, name=name)
        self._lapsed, self._blocked = None, False
        self._life = Life(holder, TrustWindow.opened(began, self._terms))

    async def renew(self) -> None:
        """One heartbeat. Never raises for a database that is away: the window just runs out."""
        try:
            extended = self._life is not None and await self._extend(self._life)
            if not extended and not self._draining:
                await self.begin()
                self._judges_from = self._clock.monotonic() + 2 * self._terms.heartbeat
        except DatabaseUnavailable as error:
            self.late_renewals += 1
            self._judges_from = self._clock.monotonic() + 2 * self._terms.heartbeat
            _log.warning("lease not renewed, %.1f s left: %s", self.remaining(), error)

    async def _extend(self, life: Life) -> bool:
        """Renew this life. False: it is over, and everything in its name was told to stop."""
        began = self._clock.monotonic()
        if life.window.holds(began):
            renewed = await self._db.renew(_renew, life.holder, self._terms.seconds, self._names)
            if self._life is not life:
                return False  # `watch` ended it while the database was slow.
            if renewed:
                self._stood()  # What it survived is nobody's fault any more.
                self._life = replace(life, window=TrustWindow.opened(began, self._terms))
                return True
        self._lapse()
        return False

    def watch(self) -> None:
        """Notice that the window closed, without waiting for the database to say so."""
        if self._life is not None and not self._life.window.holds(self._clock.monotonic()):
            self._lapse()

    async def drain(self) -> None:
        """Take no more work: from now on a death counts against nobody."""
        self._draining = True
        if self._life is not None:
            await self._db.renew(holder_rows.drain, self._life.holder)

    async def retire(self) -> None:
        """End the life on purpose, so that nobody waits for the lease to run out."""
        if self._life is not None:
            await self._db.renew(holder_rows.retire, self._life.holder)
            self._life = None
        self._names.release()

    def forget_name(self) -> None:
        """Let go of the name without a word, as the end of the process does."""
        self._names.release()

    def _lapse(self) -> None:
        if self._life is None:
            return
        _log.error("lease lost: this process stops what it was doing and begins anew")
        self._blocked = self._stood() >= self._terms.seconds / 2
        self._lapsed = self._life.holder
        self._life = None
        for stop in self._on_lapse:
            stop()


def _begin(
    tx: Tx, identity: Identity, lapsed: int | None, names: NameLock, *, blocked: bool
) -> tuple[int, str]:
    name = names.take(tx)
    holder = holder_rows.register(tx, replace(identity, name=name))
    if lapsed is not None:
        holder_rows.retire(tx, lapsed)
        why = "the loop was blocked" if blocked else "the lease lapsed"
        for released in runs.release_own(tx, lapsed, count=blocked):
            audit_log.note(tx, name, "given back", why, run=released.run)
    holder_rows.bury_earlier_boots(tx, name, holder)
    return holder, name


def _renew(tx: Tx, holder: int, lease_seconds: float, names: NameLock) -> bool:
    return names.keep(tx) and holder_rows.renew(tx, holder, lease_seconds)
