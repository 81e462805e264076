"""Polling a platform for updates: confirm only what is committed, one poller an account.

The offset lives in memory and starts empty: Telegram draws new update ids after a quiet
week, so an old, higher offset would confirm updates that nobody has seen.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.errors import DatabaseUnavailable, PollConflict, PollRefused, PollUnavailable
from bot.domain.message import Event, PayloadError
from bot.domain.retry import backoff
from bot.flows.accept import Intake
from bot.flows.intake import Arrival
from bot.flows.lease import LeaseKeeper
from bot.flows.recover import sweep
from bot.flows.runtime import Runtime
from storage import accounts

_log = logging.getLogger("answerback.poll")
POLL_SECONDS = 25.0
_STANDBY = 2.0


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
                updates = await self.source.updates(offset, POLL_SECONDS)
                if failures:
                    failures = 0
                    await self._reconnected()
                for update in updates:
                    await self._take(update)
                    number = update.get("update_id")
                    offset = number + 1 if isinstance(number, int) else offset
            except (PollUnavailable, PollConflict, PollRefused, DatabaseUnavailable) as error:
                failures += 1
                await self._trouble(error, failures)

    async def _may_poll(self) -> bool:
        if not self.lease.holds() or self.lease.draining:
            return False
        return await self.rt.db.write(
            accounts.take_polling, self.account, self.lease.holder(), self.lease.terms.seconds
        )

    async def _take(self, update: Mapping[str, object]) -> None:
        """Commit one update, or keep it as a dead letter."""
        arrival = Arrival(self.account, json.dumps(update, ensure_ascii=False))
        try:
            events = self.source.parse(update)
        except PayloadError as error:
            await self.intake.take_dead_letter(arrival, str(error))
        else:
            await self.intake.take(arrival, events)

    async def _reconnected(self) -> None:
        """The connection is back: what happened meanwhile is looked after at once."""
        _log.info("polling works again")
        await self.rt.db.write(accounts.mark_up, self.account)
        await sweep(self.rt, self.lease)

    async def _trouble(self, error: Exception, failures: int) -> None:
        wait = backoff(failures, self.rt.clock.jitter(), cap=30.0)
        match error:
            case PollConflict():
                _log.error(
                    "another program polls with this token, or a webhook is set; "
                    "stop it, or run `answerback webhook delete`"
                )
                wait = max(wait, 5.0)
            case PollRefused():
                await self._down(str(error))
                wait = 30.0
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
