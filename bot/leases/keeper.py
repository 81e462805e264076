"""Keeping the holder's lease: begin a session, renew it, notice that it is over.

The keeper renews the lease at every heartbeat. If the trust window closes before a renewal
succeeds, the session is over: everything that acts in its name is told to stop. Once the database
answers again, a new session begins and gives back the runs of the old one. Nothing is counted
against them, since a database that was away is nobody's fault. But if the lease was lost because
something blocked the event loop, an agent that ran is the likely cause, and it counts as a death of
the process would.

Three clocks are involved, and each is used for one thing only.

* The *database's* clock decides whether a holder is dead: it is if its row was last renewed more
  than its own `seconds` ago. (SQLite has no clock of its own; there it is the machine's boot id and
  the time since boot, so that setting the wall clock changes nothing.)
* The holder's *monotonic* clock decides whether it may still act. A renewal is valid for `seconds`,
  less a margin, from the moment at which it was *begun*. The database can't have stamped it
  earlier, so the holder's window always closes before the database would call it dead.
* Wall clocks decide nothing.

One gap remains: a process may be frozen between its last look at the window and the moment at which
the bytes leave its socket. No bot can close that. The part is then `sending`, and whoever takes the
run over treats it as uncertain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.domain.decisions.terms import LeaseTerms
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.ports import Clock
from bot.leases.due_clock import DueClock
from storage import audit_log, runs
from storage import holders as holder_rows
from storage.engine.database import Database
from storage.engine.name_lock import NameLock
from storage.holders import Identity
from storage.retention import restored_from
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.lease")


@dataclass(frozen=True, slots=True)
class TrustWindow:
    """The time for which a holder trusts a successful renewal, `until` a monotonic second."""

    until: float

    @staticmethod
    def opened(began: float, terms: LeaseTerms) -> TrustWindow:
        """The window of a renewal that was begun at monotonic second `began`."""
        return TrustWindow(began + terms.seconds - terms.margin)

    def holds(self, monotonic: float) -> bool:
        """Tell whether the holder may still begin a move or a send."""
        return monotonic < self.until


@dataclass(frozen=True, slots=True)
class Session:
    """A row of ours in `holders`, and the window in which we may act as that holder."""

    holder: int
    window: TrustWindow


class LeaseKeeper:
    """The owner of this process's lease and its name. Nobody gets a lease on a database that was
    restored from a backup and is not settled, not even a process that only reconnected.

    `stood` returns the longest standstill of the loop, in seconds, since it was last called.
    """

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
        self.terms = terms
        self._identity = identity
        self._names = NameLock(db.url, identity.name)
        self._renewing = asyncio.Lock()
        self._session: Session | None = None
        self._lapsed: int | None = None
        """The holder of the session that was lost, whose runs the next session gives back."""
        self._stood = stood
        self._blocked = False
        """True if that session was lost because the loop stood still: that counts as a death."""
        self._judges_from = 0.0
        """The monotonic second from which on this process may call others dead."""
        self._lease_clock_ahead: float | None = None
        self.due_clock = DueClock(clock, terms)
        self.draining = False
        self._on_lapse: list[Callable[[], None]] = []
        self.lapses = 0
        """Sessions that were lost."""
        self.late_renewals = 0
        """Heartbeats for which the database was away."""

    @property
    def name(self) -> str:
        return self._identity.name

    def on_lapse(self, stop: Callable[[], None]) -> None:
        """Call `stop` when the lease is lost. It must stop everything that acts in our name."""
        self._on_lapse.append(stop)

    def holds(self) -> bool:
        """Tell whether this process may begin a move or a send now."""
        return self._session is not None and self._session.window.holds(self._clock.monotonic())

    def holder(self) -> int:
        """The holder's id. Raises StaleLease while this process holds no lease."""
        if self._session is None or not self._session.window.holds(self._clock.monotonic()):
            raise StaleLease("this process holds no lease now")
        return self._session.holder

    def may_judge(self) -> bool:
        """Tell whether this process may call others dead: not right after it failed to renew."""
        return self.holds() and self._clock.monotonic() >= self._judges_from

    def may_judge_at(self, lease_clock: float) -> bool:
        """As `may_judge`, given what the database's lease clock shows. If somebody has set that
        clock, the living look dead: nobody is judged until all have had time to renew."""
        now = self._clock.monotonic()
        ahead, before = lease_clock - now, self._lease_clock_ahead
        self._lease_clock_ahead = ahead
        if before is not None and abs(ahead - before) > self.terms.seconds / 2:
            _log.warning("the database's clock was set by %.0f s", ahead - before)
            self._judges_from = max(self._judges_from, now + self.terms.seconds)
        return self.may_judge()

    def remaining(self) -> float:
        """Seconds until the trust window closes; 0 without a lease."""
        if self._session is None:
            return 0.0
        return max(0.0, self._session.window.until - self._clock.monotonic())

    async def begin(self) -> None:
        """Begin a session. Since we hold the lock on our name, its earlier sessions are dead."""
        began = self._clock.monotonic()
        identity = replace(self._identity, boot=self._clock.token())
        holder, name = await self._db.renew(
            _begin, identity, self.terms, self._lapsed, self._names, blocked=self._blocked
        )
        self._identity = replace(identity, name=name)
        self._lapsed, self._blocked = None, False
        self._session = Session(holder, TrustWindow.opened(began, self.terms))

    async def renew(self) -> None:
        """One heartbeat. If the database is away, nothing is raised: the window runs out."""
        try:
            async with self._renewing:
                extended = self._session is not None and await self._extend(self._session)
                if not extended and not self.draining:
                    await self.begin()
                    self._judges_from = self._clock.monotonic() + 2 * self.terms.heartbeat
        except DatabaseUnavailable as error:
            self.late_renewals += 1
            self._judges_from = self._clock.monotonic() + 2 * self.terms.heartbeat
            _log.warning("lease not renewed, %.1f s left: %s", self.remaining(), error)

    async def _extend(self, session: Session) -> bool:
        """Renew this session. False: it is over, and everything in its name was told to stop."""
        began = self._clock.monotonic()
        if session.window.holds(began):
            renewed = await self._db.renew(_renew, session.holder, self._names)
            if self._session is not session:
                return False  # `watch` ended it while the database was slow.
            if renewed:
                self._stood()  # Reset: the session survived any standstill until now.
                self._session = replace(session, window=TrustWindow.opened(began, self.terms))
                return True
        self._lapse()
        return False

    def watch(self) -> None:
        """Notice that the window has closed, without waiting for the database."""
        if self._session is not None and not self._session.window.holds(self._clock.monotonic()):
            self._lapse()

    async def drain(self) -> None:
        """Tell the others that this process takes no more work, so that its death counts against
        no run."""
        self.draining = True
        if self._session is not None:
            await self._db.renew(holder_rows.drain, self._session.holder)

    def leave(self) -> Session | None:
        """End the session in this process; the caller then retires its row. In this order, a
        renewal that is under way does not take the retired row for a lost lease."""
        session, self._session = self._session, None
        return session

    def forget_name(self) -> None:
        """Release the lock on the name, as the end of the process would."""
        self._names.release()

    def _lapse(self) -> None:
        if self._session is None:
            return
        _log.error("lease lost: this process stops what it was doing and begins anew")
        self._blocked = self._stood() >= self.terms.seconds / 2
        self._lapsed = self._session.holder
        self._session = None
        self.lapses += 1
        for stop in self._on_lapse:
            stop()


def _begin(
    tx: Tx,
    identity: Identity,
    terms: LeaseTerms,
    lapsed: int | None,
    names: NameLock,
    *,
    blocked: bool,
) -> tuple[int, str]:
    if restored_from(tx) is not None:
        raise DatabaseUnavailable(
            "the database came from a backup and is not settled: run `answerback db restored`, or "
            "start this process anew"
        )
    name = names.take(tx)
    holder = holder_rows.register(tx, replace(identity, name=name), terms.seconds)
    holder_rows.mark_earlier_dead(tx, name, holder)
    if lapsed is not None:
        holder_rows.retire(tx, lapsed)
        why = "the loop was blocked" if blocked else "the lease lapsed"
        for released in runs.release_own(tx, lapsed, count=blocked):
            audit_log.note(tx, name, "given back", why, run=released.run)
    return holder, name


def _renew(tx: Tx, holder: int, names: NameLock) -> bool:
    settled = restored_from(tx) is None
    return settled and names.keep(tx) and holder_rows.renew(tx, holder)
