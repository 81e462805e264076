"""An operator's session: the database and the configured channels, without working on anything.

Nothing is registered, claimed or migrated, and no connection to a platform is opened: it
stands beside running processes, or alone while none runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from bot.domain.decisions.schema import Fit, fit
from bot.domain.errors import ConfigurationError
from bot.domain.plugin import Endpoint
from bot.domain.ports import Clock
from bot.domain.reminders import Calendar
from bot.lazy_imports import lazily
from bot.leases.runtime import Runtime
from bot.observability.metrics import Observer
from bot.settings import Settings
from bot.supervisor import beside
from bot.texts import Words
from storage import accounts
from storage.accounts import Account
from storage.engine import read_only
from storage.engine.database import Database, DatabaseSettings, parsed_url
from storage.notify import Wakeups
from storage.schema.migrate import NEWEST, schema_of

MAKE_ONE = "`answerback serve`, `chat` or `db upgrade` makes it"
_LOOK_AGAIN = 0.02
_FOR_HINTS = 1.0
"""Seconds that hints to running processes may take; without them they look once a second."""


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """The tools of an operator's command. `endpoints` are the configured accounts, whether or
    not the database knows them."""

    settings: Settings
    rt: Runtime
    endpoints: Sequence[Endpoint]
    accounts: Sequence[Account]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Let the channels ask their platforms while the body runs."""
        channels = [endpoint.channel for endpoint in self.endpoints]
        try:
            for channel in channels:
                await channel.open()
            yield
        finally:
            for channel in channels:
                await channel.close()


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts of a session besides its settings."""

    clock: Clock
    words: Words
    calendar: Calendar
    endpoints: Sequence[Endpoint] = ()


@asynccontextmanager
async def open_session(
    settings: Settings, parts: SessionParts, *, tells: bool
) -> AsyncIterator[OperatorSession]:
    """Open the database beside whoever uses it. With `tells`, hints reach running processes
    through Redis.

    Raises ConfigurationError when there is no database, or its schema is none that we can work on;
    DatabaseUnavailable.
    """
    if said := await asyncio.to_thread(schema_problem, settings.database_url):
        raise ConfigurationError(f"DATABASE_URL: {said}")
    place = DatabaseSettings(settings.database_url, pool=2, pool_wait=10.0)
    db = Database(place, parts.clock)
    try:
        rows = await db.read(accounts.listed)
        known = {(row.channel, row.account): row.id for row in rows}
        served = {
            known[name]: endpoint
            for endpoint in parts.endpoints
            if (name := (endpoint.channel.name, endpoint.channel.account)) in known
        }
        rt = Runtime(
            db=db,
            clock=parts.clock,
            channels={row: endpoint.channel for row, endpoint in served.items()},
            terms=settings.terms(),
            words=parts.words,
            wakeups=Wakeups(parts.clock, (tells and settings.redis_url) or None),
            calendar=parts.calendar,
            observer=lazily(Observer),  # an operator's process shows no metrics
        )
        async with _telling(rt):
            yield OperatorSession(settings, rt, parts.endpoints, rows)
    finally:
        await asyncio.to_thread(db.close)


def database_exists(url: str) -> bool:
    """False only for a file of SQLite that is not there: looking must not make one."""
    parsed = parsed_url(url)
    return parsed.get_backend_name() != "sqlite" or read_only.exists(Path(str(parsed.database)))


def schema_problem(url: str) -> str:
    """The fault of the database's schema, with the fix; empty when we can work on it. Raises
    DatabaseSealed, DatabaseUnavailable."""
    if not database_exists(url):
        return f"there is no file {parsed_url(url).database}: {MAKE_ONE}"
    found = schema_of(url)
    if found is None:
        return "the database has no schema yet: run `answerback db upgrade`"
    at = f"the database is at schema {found.revision}"
    match fit(found, NEWEST):
        case Fit.SAME | Fit.AHEAD:
            return ""
        case Fit.BEHIND:
            return f"{at}, older than {NEWEST}: run `answerback db upgrade`"
        case Fit.BEYOND:
            return f"{at}, too new for {NEWEST}: use the newer Answerback"
        case other:
            assert_never(other)


@asynccontextmanager
async def _telling(rt: Runtime) -> AsyncIterator[None]:
    """Carry hints to running processes while the body runs, and the last ones after it."""
    async with beside("wakeups", rt.wakeups.relay()) as relay:
        yield
        patience = _FOR_HINTS
        while not (rt.wakeups.connected or relay.done()) and patience > 0:
            await rt.clock.sleep(_LOOK_AGAIN)
            patience -= _LOOK_AGAIN
        await rt.wakeups.flush(_FOR_HINTS)
