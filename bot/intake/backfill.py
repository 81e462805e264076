"""Reading in a platform's own records what people wrote while nobody listened.

A webhook that fails is not delivered again for long, but the platform keeps the message. So
its records are listed at every start, after every gap of ours, and every few minutes: what
is missing goes through the same intake as everything else, which knows what it has.

The mark says where the next listing begins. It moves only after a listing that was read to
its end, to the newest message that was seen, less an overlap for what a list shows late.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime

from bot.delivery.status import ask
from bot.domain.errors import DatabaseUnavailable, RecordsUnavailable, StaleLease
from bot.domain.plugin import Records
from bot.intake.accept import Intake
from bot.intake.arrival import Arrival
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from storage import accounts, inbox, outbox
from storage.notify import READY

EVERY = 120.0
"""Seconds between two looks while nothing happens."""
AGAIN = 30.0
"""Seconds until the next look after one that broke off."""
OVERLAP = 900.0
"""Seconds that are listed once more: what a list may show late, and clocks that differ."""
YOUNG = 20.0
"""Seconds for which a message is left to its webhook, which tells more than a list."""

_ASKING = 30.0
"""Seconds that one round of questions about parts may take."""
_AT_ONCE = 50

_log = logging.getLogger("answerback.backfill")


class Backfill:
    """Looks into one account's records: regularly where no other process does, and after
    every gap of this process's own."""

    def __init__(
        self, rt: Runtime, lease: LeaseKeeper, intake: Intake, account: int, records: Records
    ) -> None:
        self._rt = rt
        self._lease = lease
        self._intake = intake
        self._account = account
        self._records = records
        self._seen_gaps = -1
        self._due = 0.0

    async def look_if_due(self) -> float:
        """Look after a gap and when it is time; returns the seconds until this is asked anew."""
        clock = self._rt.clock
        gaps, now = self._gaps(), clock.monotonic()
        gap = gaps != self._seen_gaps
        if self._lease.holds() and not self._lease.draining and (gap or now >= self._due):
            wait = await self._try(alone=not gap)
            self._seen_gaps = gaps
            self._due = clock.monotonic() + wait
        return min(self._lease.terms.heartbeat, EVERY)

    async def look(self) -> tuple[int, bool]:
        """Record what is missing; returns how many messages were, and whether some were left to
        webhooks that may still come.

        Raises RecordsUnavailable when the listing was not complete, DatabaseUnavailable.
        """
        rt = self._rt
        since = await rt.db.write(accounts.begin_mark, self._account)
        newest, young = since, frozenset[str]()

        async def known(seen: Mapping[str, float | None]) -> frozenset[str]:
            nonlocal newest, young
            newest = max([newest, *(at for at in seen.values() if at is not None)])
            recorded, now = await rt.db.read(inbox.recorded, self._account, list(seen))
            if recorded:
                times = {name: seen[name] for name in recorded}
                await rt.db.write(inbox.fill_sent_times, self._account, times)
            # A time in the future is a clock that is wrong.
            age = {name: now - at for name, at in seen.items() if at is not None}
            left = frozenset(n for n in age if 0 <= age[n] < YOUNG and n not in recorded)
            young |= left
            return recorded | left

        found = 0
        async for message in self._records.inbound_since(datetime.fromtimestamp(since, UTC), known):
            body = json.dumps(asdict(message), ensure_ascii=False)
            await self._intake.take(Arrival(self._account, body), [message])
            found += 1
        await rt.db.write(accounts.move_mark, self._account, newest - OVERLAP)
        return found, bool(young)

    async def _try(self, *, alone: bool) -> float:
        """One look, with `alone` only if no other process has taken it upon itself. Returns
        the seconds until the next one."""
        try:
            mine = await self._rt.db.write(
                accounts.take_polling,
                self._account,
                self._lease.holder(),
                self._lease.terms.seconds,
            )
            if alone and not mine:
                return EVERY
            rows = await self._rt.db.read(accounts.listed)
            was_down = any(r.id == self._account and r.down_since is not None for r in rows)
            missing, young = await self.look()
            # What was reported while this look was under way is newer than what it saw.
            if was_down and await self._rt.db.write(accounts.mark_up, self._account):
                _log.info("the platform takes the account again")
                self._rt.wakeups.tell(READY)
            await self._ask_after()
        except (RecordsUnavailable, DatabaseUnavailable, StaleLease) as error:
            _log.warning("not caught up, again in %.0f s: %s", AGAIN, error)
            return AGAIN
        if missing:
            _log.warning("%d messages had come without a webhook", missing)
        return YOUNG if young else EVERY

    async def _ask_after(self) -> None:
        """Ask about parts on which no callback came: what failed later must not look answered."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ASKING):
                for part in await self._rt.db.read(outbox.unreported, self._account, _AT_ONCE):
                    await ask(self._rt, part)

    def _gaps(self) -> int:
        """The number of times that this process may have missed something."""
        lease = self._lease
        return lease.lapses + lease.late_renewals + self._intake.turned_away
