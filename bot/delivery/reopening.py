"""Accounts that are down: taken up again once their platform says that they can send.

For each account one process asks, the one that holds the right to poll for it. Each time that an
account is soon down again, the next question waits longer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from bot.domain.errors import StaleLease
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from storage import accounts
from storage.accounts import Account
from storage.notify import READY

LOOK_EVERY = 20.0
"""Seconds between two looks at which accounts are down."""
_SOONEST, _LATEST = 60.0, 3600.0
"""Seconds between two questions about one account."""

_log = logging.getLogger("answerback.delivery")
Recovered = Callable[[str], Awaitable[bool]]


@dataclass(slots=True)
class Reopening:
    """Asks about those of our accounts that are down and whose platform can be asked."""

    rt: Runtime
    lease: LeaseKeeper
    asks: Mapping[int, Recovered]
    _due: dict[int, float] = field(default_factory=dict)
    _wait: dict[int, float] = field(default_factory=dict)
    """Seconds between two questions about an account: longer, each time that it was soon down
    again."""

    async def look(self) -> None:
        """Ask about what is down and due. Raises DatabaseUnavailable."""
        now = self.rt.clock.monotonic()
        for account in await self.rt.db.read(accounts.listed):
            ask = self.asks.get(account.id)
            if ask is None:
                continue
            if account.down_since is None:
                self._forget(account.id, now)
            elif now >= self._due.get(account.id, now) and await self._mine(account.id):
                await self._ask(account, ask, now)

    async def _ask(self, account: Account, ask: Recovered, now: float) -> None:
        wait = self._wait.setdefault(account.id, _SOONEST)
        self._due[account.id] = now + wait
        if not await ask(account.down_code or ""):
            return
        self._wait[account.id] = min(2 * wait, _LATEST)
        if await self.rt.db.write(accounts.mark_up, account.id):
            _log.info("%s says that %s can send again", account.channel, account.account)
            self.rt.wakeups.tell(READY)

    def _forget(self, account: int, now: float) -> None:
        """Start again with the shortest wait for an account that has been up for long."""
        if now >= self._due.get(account, now) + _LATEST:
            self._due.pop(account, None)
            self._wait.pop(account, None)

    async def _mine(self, account: int) -> bool:
        """Tell whether this process asks about the account: no other polls for it."""
        try:
            mine = self.lease.holder(), self.lease.terms.seconds
            return await self.rt.db.write(accounts.take_polling, account, *mine)
        except StaleLease:
            return False
