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

from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.domain.ports import Channel
from bot.leases.runtime import Runtime
from bot.schedule import CronCalendar
from bot.settings import Settings
from bot.supervisor import beside
from bot.texts import Words
from bot.wiring.channels import Configured, configure
from storage import accounts
from storage.accounts import Account
from storage.engine.database import Database, DatabaseSettings, parsed_url
from storage.notify import Wakeups
from storage.schema.migrate import NEWEST, revisions

MAKE_ONE = "`answerback serve`, `chat` or `db upgrade` makes it"
_PULSE = 0.02
_FOR_HINTS = 1.0
"""Seconds that hints to running processes may take; without them they look once a second."""


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """What an operator's command is handed."""

    settings: Settings
    rt: Runtime
    channels: Configured
    accounts: Sequence[Account]


@asynccontextmanager
async def operator_session(
    settings: Settings, *, tells: bool = False, speaks: bool = True
) -> AsyncIterator[OperatorSession]:
    """Open the database beside whoever uses it. With `tells`, hints reach running processes
    through Redis; without `speaks` no channel is there, which is quicker.

    Raises ConfigurationError when there is no database, or its schema is another than ours;
    DatabaseUnavailable.
    """
    await asyncio.to_thread(_look_at, settings.database_url)
    clock = SystemClock()
    db = Database(DatabaseSettings(settings.database_url, pool=2, pool_wait=10.0), clock)
    try:
        words = Words.load(
            settings.texts_file, settings.language, word_commands=settings.command_words
        )
        none = Configured(None, None, None)
        channels = configure(settings, clock, words) if speaks else none
        rows = await db.read(accounts.listed)
        rt = Runtime(
            db=db,
            clock=clock,
            channels=_served(channels.all(), rows),
            terms=settings.terms(),
            words=words,
            wakeups=Wakeups(clock, (tells and settings.redis_url) or None),
            calendar=CronCalendar(settings.timezone),
        )
        async with _telling(rt):
            yield OperatorSession(settings, rt, channels, rows)
    finally:
        await asyncio.to_thread(db.close)


def database_exists(url: str) -> bool:
    """False only for a file of SQLite that is not there: looking must not make one."""
    parsed = parsed_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(str(parsed.database)).exists()


def schema_problem(url: str) -> str:
    """What is wrong with the database's schema, and the fix; empty when it is ours."""
    if not database_exists(url):
        return f"there is no file {parsed_url(url).database}: {MAKE_ONE}"
    found, ours = revisions(url)
    if found == ours:
        return ""
    if found is None:
        return "the database has no schema yet: run `answerback db upgrade`"
    if found < NEWEST:
        return f"the database is at schema {found}, older than {ours}: run `answerback db upgrade`"
    return f"the database is at schema {found}, newer than {ours}: use the newer Answerback"


def _look_at(url: str) -> None:
    if said := schema_problem(url):
        raise ConfigurationError(f"DATABASE_URL: {said}")


def _served(channels: Sequence[Channel], rows: Sequence[Account]) -> dict[int, Channel]:
    by_name = {(channel.name, channel.account): channel for channel in channels}
    return {
        row.id: by_name[row.channel, row.account]
        for row in rows
        if (row.channel, row.account) in by_name
    }


@asynccontextmanager
async def _telling(rt: Runtime) -> AsyncIterator[None]:
    """Carry hints to running processes while the body runs, and the last ones after it."""
    async with beside("wakeups", rt.wakeups.relay()) as relay:
        yield
        patience = _FOR_HINTS
        while not (rt.wakeups.connected or relay.done()) and patience > 0:
            await rt.clock.sleep(_PULSE)
            patience -= _PULSE
        await rt.wakeups.flush(_FOR_HINTS)


@asynccontextmanager
async def opened(session: OperatorSession) -> AsyncIterator[OperatorSession]:
    """The session with its channels able to ask their platforms."""
    channels = session.channels.all()
    try:
        for channel in channels:
            await channel.open()
        yield session
    finally:
        for channel in channels:
            await channel.close()
