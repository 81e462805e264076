"""`answerback doctor | webhook | agent | db`: checks, and putting right what they find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, NoReturn, TypeVar, assert_never

import typer

from bot.cli import options
from bot.cli.output import render
from bot.cli.output.layout import Column, Slot
from bot.cli.output.shapes import Shape, shape
from bot.cli.session import DONE, NOT_DONE, CommandFailed, in_session, settings_with_logs
from bot.domain.decisions.schema import Fit, fit
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.findings import Finding, Level
from bot.domain.plugin import WebhookState
from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import span

with lazy_imports(__name__):
    import asyncio

    from bot.operations import webhooks
    from bot.wiring import OperatorSession, database_exists
    from bot.wiring.agents import examine_agent
    from bot.wiring.operator import examine, upgrade_database
    from storage import retention
    from storage.schema import migrate
    from storage.schema.tables import words

T = TypeVar("T")

webhook = typer.Typer(no_args_is_help=True, help="The webhooks at the platforms.")
agent = typer.Typer(no_args_is_help=True, help="The agent behind AGENT.")
database = typer.Typer(no_args_is_help=True, help="The database: its schema, backups, a move.")


def doctor(*, json: options.Json = False) -> None:
    """Examine settings, database, Redis, platforms, agent and disk. Each line says what is
    wrong and the fix. The exit code is 1 when something does not work; warnings leave it 0.

    For example: answerback doctor
    """
    _report(asyncio.run(examine()), json=json)


def _report(found: Sequence[Finding], *, json: bool) -> NoReturn:
    tell(found, json=json)
    _exit_by(found)


def tell(found: Sequence[Finding], *, json: bool) -> None:
    """Print findings, each with its fix."""
    level, what = Column("", Slot.TITLE), Column("what", Slot.TITLE)
    render.listing(
        found,
        shape,
        (level, what, Column("says", Slot.PROSE), Column("fix", Slot.PROSE)),
        lambda f: (f.level.value, f.name, f.says, f.fix),
        none="nothing was examined",
        json=json,
    )


def _exit_by(found: Iterable[Finding]) -> NoReturn:
    broken = any(finding.level is Level.PROBLEM for finding in found)
    raise typer.Exit(NOT_DONE if broken else DONE)


@webhook.command("set")
def set_(
    *,
    drop_pending: Annotated[
        bool, typer.Option("--drop-pending", help="Telegram throws away what waits there.")
    ] = False,
) -> None:
    """Point the platforms at PUBLIC_URL; what their APIs can't do is printed, to be entered by
    hand. Meta asks the address at once, so the service must run. An account that could not send
    is tried again.

    For example: answerback webhook set
    """

    _change(
        lambda session: webhooks.set_webhooks(
            session.endpoints,
            session.settings.public_url,
            drop_pending=drop_pending,
            then=partial(webhooks.try_again, session.rt),
        )
    )


@webhook.command()
def delete() -> None:
    """Take our webhooks away. What waits at Telegram stays there for polling.

    For example: answerback webhook delete
    """
    _change(lambda session: webhooks.delete_webhooks(session.endpoints))


def _at_platforms(ask: Callable[[OperatorSession], Awaitable[Sequence[T]]]) -> Sequence[T]:
    """Ask the platforms, with the channels open. Raises ConfigurationError, and CommandFailed if a
    platform refuses."""

    async def work(session: OperatorSession) -> Sequence[T]:
        async with session.opened():
            return await ask(session)

    try:
        return in_session(work, speaks=True)
    except ConfigurationError:
        raise
    except webhooks.REFUSALS as error:
        raise CommandFailed(str(error)) from error


def _change(act: Callable[[OperatorSession], Awaitable[Sequence[str]]]) -> None:
    render.lines(_at_platforms(act) or ["no platform is configured"])


@webhook.command()
def info(*, json: options.Json = False) -> None:
    """Show the webhooks as the platforms have them: URL, what waits, the last error.

    For example: answerback webhook info --json
    """
    states = _at_platforms(lambda session: webhooks.webhook_states(session.endpoints))
    columns = (
        *(Column("channel", Slot.TITLE), Column("state", Slot.PROSE), Column("url")),
        *(Column("should be"), Column("pending"), Column("last error", Slot.PROSE)),
    )
    none = "no platform is configured: the variables of one in .env turn it on"
    render.listing(states, _hook_shape, columns, _hook_row, none=none, json=json)
    _exit_by(map(webhooks.webhook_finding, states))


def _hook_shape(state: WebhookState) -> Shape:
    level = webhooks.webhook_finding(state).level.value
    error = {"last_error": state.error, "last_error_age_s": state.error_age}
    return shape(state, "error error_age", level=level, **error)


def _hook_row(state: WebhookState) -> tuple[object, ...]:
    age = "" if state.error_age is None else f" ({span(state.error_age)} ago)"
    error = f"{state.error}{age}" if state.error else ""
    says = webhooks.webhook_finding(state).says
    return state.channel, says, state.url, state.wanted, state.pending, error


@agent.command()
def check(
    url: Annotated[str, typer.Argument(help="The agent's URL, else AGENT.", metavar="URL")] = "",
    *,
    json: options.Json = False,
) -> None:
    """Ask the agent what a life of turns would ask it, and say what would go wrong. Its steps are
    done. The exit code is 1 when turns would fail.

    For example: answerback agent check http://127.0.0.1:8000/turn
    """
    _report(asyncio.run(examine_agent(settings_with_logs("WARNING"), url)), json=json)


@database.command()
def upgrade() -> None:
    """Bring the database to this version's schema; a file of SQLite is made. A start does the
    same by itself, one process at a time.

    For example: answerback db upgrade
    """
    revision = upgrade_database(settings_with_logs("WARNING"))
    render.lines([f"the database is at schema {revision}"])


@database.command()
def current(*, json: options.Json = False) -> None:
    """Show the database's schema and this version's. The exit code is 1 when this version can't
    work on it as it is.

    For example: answerback db current
    """
    url = settings_with_logs("WARNING", foreign=False).database_url
    if not database_exists(url):
        raise DatabaseUnavailable("there is no database file yet: run `answerback db upgrade`")
    found, ours = migrate.schema_of(url), migrate.NEWEST
    fits = None if found is None else fit(found, ours)
    if json:
        at, floor = (None, None) if found is None else (found.revision, found.floor)
        render.as_json({"current": at, "floor": floor, "newest": ours})
    else:
        at = "none" if found is None else found.revision
        render.lines([f"the database is at schema {at}; {_state(fits, ours)}"])
    raise typer.Exit(DONE if fits in (Fit.SAME, Fit.AHEAD) else NOT_DONE)


def _state(fits: Fit | None, ours: str) -> str:
    match fits:
        case Fit.SAME:
            return "current"
        case Fit.AHEAD:
            return f"this version has {ours}, and works on it"
        case Fit.BEHIND | None:
            return f"this version has {ours}: answerback db upgrade"
        case Fit.BEYOND:
            return f"this version has {ours}, which is too old: use the newer Answerback"
        case other:
            assert_never(other)


@database.command()
def compact() -> None:
    """Write the database anew, so that deleted words are in no unused space of it either. Nobody
    can write meanwhile: choose a quiet hour. It needs as much room again.

    For example: answerback db compact
    """

    async def work(session: OperatorSession) -> bool:
        db = session.rt.db
        owed = await db.read(retention.compaction_owed)
        done = await db.compact([table.name for table in words.WORDS])
        if done and owed is not None:
            await db.write(retention.compacted, owed)
        return done

    if not in_session(work):
        raise CommandFailed("somebody was reading an older state of it all the time: try it again")
    render.lines(["the database is written anew: what was deleted is nowhere in it"])
