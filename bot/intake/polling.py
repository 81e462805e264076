"""Polling a platform for updates: only what is committed is confirmed, and each account has one
poller.

The offset lives in memory, starts empty, and is dropped whenever no update is left: after a quiet
week Telegram begins anew with random update ids, so an old, higher offset would confirm updates
that nobody has seen.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.errors import DatabaseUnavailable, PollConflict, PollRefused, PollUnavailable
from bot.domain.message import PayloadError
from bot.domain.plugin import Updates
from bot.intake.accept import Intake
from bot.intake.arrival import Arrival
from bot.leases.keeper import LeaseKeeper
from bot.leases.recovery import sweep
from bot.leases.runtime import Runtime
from bot.supervisor import beside
from storage import accounts
from storage.notify import READY
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.poll")
POLL_SECONDS = 25.0
_STANDBY = 2.0
_AWAY_FROM = 3
"""Failures in a row after which a platform that can't be reached counts as away."""
_LOOK_UP = 0.25
"""Seconds between two checks, while a poll is open, that this process may still poll."""


@dataclass(slots=True)
class Poller:
    """Polls for one account while this process's lease holds and nobody else does."""

    rt: Runtime
    lease: LeaseKeeper
    intake: Intake
    account: int
    source: Updates
    cut_off: str = ""
    """The reason why nothing comes in until somebody acts; empty while another process polls."""
    failing: str = ""
    """The reason why nothing comes in at the moment."""
    _offset: int | None = None
    _failures: int = 0

    async def poll(self) -> float:
        """Ask once for updates and commit them; returns the seconds until the next time."""
        try:
            if not await self._may_poll():
                self._offset, self.cut_off, self.failing = None, "", ""
                return _STANDBY
            updates = await self._ask(self._offset)
            if self._failures:
                self._failures, self.cut_off, self.failing = 0, "", ""
                _log.info("polling works again")
                await self.rt.db.write(accounts.comes_in, self.account)
                if await self.rt.db.write(accounts.mark_up, self.account):
                    self.rt.wakeups.tell(READY)
                # Whoever died meanwhile is not left until the next sweep.
                await sweep(self.rt, self.lease)
            if not updates:
                self._offset = None
            # All at once, so that they share transactions; a chat's updates keep their order.
            taking = (self._take(update) for update in updates)
            taken = await asyncio.gather(*taking, return_exceptions=True)
            for update, outcome in zip(updates, taken, strict=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                number = update.get("update_id")
                self._offset = number + 1 if isinstance(number, int) else self._offset
        except (PollUnavailable, PollConflict, PollRefused, DatabaseUnavailable) as error:
            self._failures += 1
            return await self._trouble(error)
        return 0.0

    def _mine(self) -> bool:
        return self.lease.holds() and not self.lease.draining

    async def _may_poll(self) -> bool:
        if self._mine():
            return await self.rt.db.write(
                accounts.take_polling, self.account, self.lease.holder(), self.lease.terms.seconds
            )
        if self.lease.holds():
            await self.rt.db.write(accounts.leave_all_polling, self.lease.holder())
        return False

    async def _ask(self, offset: int | None) -> Sequence[Mapping[str, object]]:
        """The next updates; none if this process may no longer poll. A poll that is given up in the
        middle confirms nothing."""
        async with beside("updates", self.source.updates(offset, POLL_SECONDS)) as asking:
            while not asking.done():
                await asyncio.wait((asking,), timeout=_LOOK_UP)
                if not self._mine():
                    return ()
            return asking.result()

    async def _take(self, update: Mapping[str, object]) -> None:
        """Commit one update, or keep it as a dead letter."""
        arrival = Arrival(self.account, json.dumps(update, ensure_ascii=False), "poll")
        try:
            events = self.source.parse(update)
        except PayloadError as error:
            await self.intake.take_dead_letter(arrival, str(error))
        else:
            await self.intake.take(arrival, events)

    async def _trouble(self, error: Exception) -> float:
        """Log and note why polling failed; returns the seconds until the next try."""
        retry = self.rt.retry
        wait = retry.connection.after(self._failures, self.rt.clock.jitter())
        match error:
            case PollConflict():
                _log.error("%s", error)
                await self._note(accounts.cut_off, str(error))
                wait = max(wait, retry.poll_conflict)
            case PollRefused():
                _log.error("the platform refuses the bot's token: %s", error)
                await self._note(accounts.mark_down, str(error))
                wait = retry.poll_refused
            case PollUnavailable(retry_after=seconds) if seconds:
                wait = max(wait, seconds)
            case _:
                if self._failures >= _AWAY_FROM:
                    self.failing = str(error)
                _log.warning("can't poll, again in %.0f s: %s", wait, error)
        return wait

    async def _note(self, move: Callable[[Tx, int, str], bool], reason: str) -> None:
        try:
            await self.rt.db.write(move, self.account, reason)
        except DatabaseUnavailable as error:
            _log.warning("could not note that nothing comes in: %s", error)
        self.cut_off = reason  # after the commit: whoever sees it here finds it there
