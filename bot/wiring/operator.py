"""The operator's session beside the service, and the examination of everything, wired."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding
from bot.lazy_imports import lazy_imports
from bot.schedule import CronCalendar
from bot.settings import Settings
from bot.wiring.channels import (
    at_the_terminal,
    configured,
    connect,
    ways_to_configure,
)
from bot.wiring.remarks import read_settings, remarks_on

with lazy_imports(__name__):
    from bot.operations import database_copy, doctor
    from bot.operations.actions import Operator
    from bot.operations.database_copy import Copied, Pace, Seal
    from bot.operations.reports.stuck import Stuck, database_troubles
    from bot.operations.session import OperatorSession, SessionParts, open_session
    from bot.wiring.agents import build_agent, words_of
    from bot.wiring.process import make_ready


@asynccontextmanager
async def operator_session(
    settings: Settings, *, tells: bool = False, speaks: bool = True
) -> AsyncIterator[OperatorSession]:
    """Open the database beside whoever uses it. With `tells`, hints reach running processes
    through Redis; without `speaks` no channel is there, which is quicker.

    Raises ConfigurationError when there is no database, or its schema is none that we can work on;
    DatabaseUnavailable.
    """
    clock, words = SystemClock(), words_of(settings)
    parts = SessionParts(
        clock,
        words,
        CronCalendar(settings.timezone),
        connect(settings, clock, words) if speaks else (),
    )
    async with open_session(settings, parts, tells=tells) as session:
        yield session


def unfit_database(settings: Settings) -> Sequence[Stuck]:
    """The demands that the database does not meet, where nothing else can be asked of it. Raises
    DatabaseUnavailable."""
    return database_troubles(settings.database_url, SystemClock())


def upgrade_database(settings: Settings) -> str:
    """Bring the database to this version's schema; returns its revision. Raises
    ConfigurationError, DatabaseUnavailable."""
    return make_ready(settings.database_url, SystemClock())


def copy_database(
    settings: Settings, target: str, by: Operator, tell: Callable[[Pace], object]
) -> Copied:
    """Copy everything from our database to another, and close ours. Raises ConfigurationError,
    DatabaseUnavailable, CopyFailed."""
    return database_copy.copy_database(
        settings.database_url,
        target,
        SystemClock(),
        lease_seconds=settings.lease_seconds,
        who=by.name,
        tell=tell,
    )


def reopen_database(settings: Settings, by: Operator) -> Seal | None:
    """Take our database into use again after a copy closed it; returns its seal. Raises
    ConfigurationError, DatabaseUnavailable, CopyFailed."""
    return database_copy.reopen_database(
        settings.database_url, SystemClock(), by.name, by.because("by hand")
    )


async def examine() -> Sequence[Finding]:
    """Everything that this process would need: what is wrong, and the fix. Never raises."""
    try:
        settings = at_the_terminal(read_settings())
    except ConfigurationError as error:
        return doctor.settings_problems(error)
    clock = SystemClock()

    async def close_agent() -> None:
        await build_agent(settings, words_of(settings), clock).close()

    return await doctor.examine(
        doctor.Examined(
            settings,
            clock,
            has_platform=bool(configured(settings)),
            ways_to_configure=ways_to_configure(settings),
            remarks=remarks_on(settings),
            session=lambda: operator_session(settings),
            close_agent=close_agent,
        )
    )
