"""Polling a platform for updates: confirm only what is committed, one poller an account.

The offset lives in memory, starts empty, and is dropped whenever nothing is left: Telegram
draws new update ids after a quiet week, so an old, higher offset would confirm updates that
nobody has seen.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.errors import DatabaseUnavailable, PollConflict, PollRefused, PollUnavailable
from bot.domain.message import Event, PayloadError
from bot.intake.accept import Intake
from bot.intake.record import Arrival
from bot.leases.keeper import LeaseKeeper
from bot.leases.recovery import sweep
from bot.leases.runtime import Runtime
from storage import accounts
from storage.notify import READY

_log = logging.getLogger("answerback.poll")
POLL_SECONDS = 25.0
_STANDBY = 2.0
_LOOK_UP = 0.25
"""Seconds between two looks at whether this process may still poll, while it waits."""

WEBHOOK_IS_SET = (
    "a webhook is set for this bot, so Telegram gives no updates to polling: "
    "run `answerback webhook delete`, or set TELEGRAM_MODE=webhook"
)
SOMEBODY_ELSE_POLLS = (
    "another program polls with this bot's token and takes its updates: stop it; "
    "processes of Answerback on one database take turns by themselves"
)


class Source(Protocol):
    """Where updates come from. `updates` raises PollUnavailable, PollConflict, PollRefused."""

    async def updates(self, offset: int | None, timeout: float) -> Sequence[Mapping[str, object]]:
        """Updates from `offset` on; asking with an offset confirms those before it."""
        ...

    def parse(self, update: Mapping[str, object]) -> tuple[Event, ...]:
        """The events of an update. Raises PayloadError."""
        ...


@dataclass(frozen=True, slots=True)
class Poller:
    """Polls for one account while this process's lease holds and nobody else does."""

    rt: Runtime
    lease: LeaseKeeper
    intake: Intake
    account: int
    source: Source

    async def run(self) -> None:
        """Poll until cancelled."""
        offset: int | None = None
        failures = 0
        while True:
            try:
                if not await self._may_poll():
                    offset = None
                    await self.rt.clock.sleep(_STANDBY)
                    continue
                updates = await self._ask(offset)
                if failures:
                    failures = 0
                    await self._reconnected()
                if not updates:
                    offset = None
                for update in updates:
                    await self._take(update)
                    number = update.get("update_id")
                    offset = number + 1 if isinstance(number, int) else offset
            except (PollUnavailable, PollConflict, PollRefused, DatabaseUnavailable) as error:
                failures += 1
                await self._trouble(error, failures)
            except Exception as error:  # noqa: BLE001 - the task's edge: polling must go on
                failures += 1
                _log.error("polling broke, and goes on", exc_info=error)
                await self.rt.clock.sleep(self._wait(failures))

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
        """The next updates; none when this process has to leave meanwhile. What is given up
        in the middle confirms nothing."""
        asking = asyncio.create_task(self.source.updates(offset, POLL_SECONDS), name="updates")
        try:
            while not asking.done():
                await asyncio.wait((asking,), timeout=_LOOK_UP)
                if not self._mine():
                    return ()
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _take(self, update: Mapping[str, object]) -> None:
        """Commit one update, or keep it as a dead letter."""
        arrival = Arrival(self.account, json.dumps(update, ensure_ascii=False), "poll")
        try:
            events = self.source.parse(update)
        except PayloadError as error:
            await self.intake.take_dead_letter(arrival, str(error))
        else:
            await self.intake.take(arrival, events)

    async def _reconnected(self) -> None:
        """The connection is back: what happened meanwhile is looked after at once."""
        _log.info("polling works again")
        if await self.rt.db.write(accounts.mark_up, self.account):
            self.rt.wakeups.tell(READY)
        await sweep(self.rt, self.lease)

    def _wait(self, failures: int) -> float:
        return self.rt.retry.connection.after(failures, self.rt.clock.jitter())

    async def _trouble(self, error: Exception, failures: int) -> None:
        wait = self._wait(failures)
        match error:
            case PollConflict():
                _log.error("%s", WEBHOOK_IS_SET if error.webhook else SOMEBODY_ELSE_POLLS)
                wait = max(wait, self.rt.retry.poll_conflict)
            case PollRefused():
                await self._down(str(error))
                wait = self.rt.retry.poll_refused
            case PollUnavailable(retry_after=seconds) if seconds:
                wait = max(wait, seconds)
            case _:
                _log.warning("can't poll, again in %.0f s: %s", wait, error)
        await self.rt.clock.sleep(wait)

    async def _down(self, reason: str) -> None:
        _log.error("the platform refuses the bot's token: %s", reason)
        try:
            await self.rt.db.write(accounts.mark_down, self.account, reason)
        except DatabaseUnavailable as error:
            _log.warning("could not note that the channel is down: %s", error)
