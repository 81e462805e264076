"""`answerback stuck | recover | top`: everything that is stuck, and the service at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated

import typer

from bot.cli import options
from bot.cli.output import render
from bot.cli.output.layout import Column, Slot
from bot.cli.output.shapes import Shape, holder_shape, shape, stuck_shape
from bot.cli.session import DONE, NOT_DONE, in_session, operator_of, settings_with_logs
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import shortened
from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import counted, span
from bot.operations.reports.seen import UNSEEN, Seen, look
from bot.operations.reports.shortening import shortened_in

with lazy_imports(__name__):
    import asyncio

    from bot.operations import recovering
    from bot.operations.reports.stuck import (
        Stuck,
        Trouble,
        database_troubles,
        find_stuck,
        in_order,
        uncertain,
    )
    from bot.operations.webhooks import stuck_webhooks
    from bot.wiring import OperatorSession, Settings, operator_session, schema_problem
    from bot.wiring.operator import unfit_database
    from storage import accounts, holders
    from storage.accounts import Account
    from storage.engine import probe
    from storage.holders import HolderRow
    from storage.statements.tx import Tx
    from storage.views.health import gauges
    from storage.views.health.gauges import Gauges, Rates

_COLUMNS = (
    *(Column("trouble", Slot.TITLE), Column("what", Slot.TITLE), Column("since", Slot.TITLE)),
    *(Column("account", Slot.TITLE), Column("why", Slot.PROSE), Column("next", Slot.COMMAND)),
)
_NOTHING = "nothing is stuck"
_NOT_ASKED = f"{_NOTHING}; the platforms were not asked"
_REDIS_PATIENCE = 2.0
_LATELY = 60.0
"""Seconds over which rates are taken."""
_HOLDERS = 20
_DOUBTS = 5


def stuck(
    *,
    older: Annotated[
        float, typer.Option(min=0, help="Seconds within which standing still is normal.")
    ] = 60.0,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the platforms.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Look again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 5.0,
    json: options.Json = False,
) -> None:
    """Show everything that needs eyes, worst first, with its cause and the next command.
    The exit code is 0 when there is nothing, else 1.

    For example: answerback stuck --older 10 --json
    """
    settings = settings_with_logs("WARNING", foreign=not offline)
    if watch:
        with suppress(KeyboardInterrupt):
            asyncio.run(_watch(settings, older, every, offline=offline))
        raise typer.Exit(DONE)
    found, seen = asyncio.run(_found(settings, older, offline=offline))
    none = _NOT_ASKED if offline else _NOTHING
    render.listing(found, stuck_shape, _COLUMNS, partial(_row, seen=seen), none=none, json=json)
    raise typer.Exit(NOT_DONE if found else DONE)


def _row(item: Stuck, seen: Seen) -> Sequence[object]:
    account = seen.account_of_several(item.account)
    return item.kind.value, item.named, seen.ago(item.since), account, item.why, item.act


_Found = tuple[Sequence[Stuck], Seen]


async def _found(settings: Settings, older: float, *, offline: bool) -> _Found:
    try:
        said = await asyncio.to_thread(schema_problem, settings.database_url)
    except DatabaseUnavailable:
        if found := await asyncio.to_thread(unfit_database, settings):
            return found, UNSEEN
        raise
    if said:
        act = "answerback db upgrade  # brings the schema to this version"
        return [Stuck(Trouble.SCHEMA, "database", 0.0, said, act)], UNSEEN
    async with operator_session(settings, speaks=not offline) as session:
        return await _all(session, older, offline=offline)


async def _all(session: OperatorSession, older: float, *, offline: bool) -> _Found:
    lease = session.settings.lease_seconds
    url, clock = session.settings.database_url, session.rt.clock
    found = [*await asyncio.to_thread(database_troubles, url, clock)]
    found += await session.rt.db.read(find_stuck, older, lease)
    if redis := session.settings.redis_url:
        try:
            await probe.ping_redis(redis, _REDIS_PATIENCE)
        except probe.RedisUnreachable as error:
            why = f"Redis does not answer ({error}): answers are slower by up to a second"
            act = "answerback doctor  # then look after Redis; nothing is lost"
            found.append(Stuck(Trouble.WAKE_UPS, "redis", 0.0, why, act))
    if not offline:
        async with session.opened():
            found += await stuck_webhooks(session.endpoints)
    seen = await session.rt.db.read(look)
    return [shortened_in(item) for item in in_order(found)], seen


async def _watch(settings: Settings, older: float, every: float, *, offline: bool) -> None:
    with render.screen(once=False) as show:
        async with operator_session(settings, speaks=not offline) as session:
            while True:
                found, seen = await _all(session, older, offline=offline)
                rows = [_row(item, seen) for item in found]
                show(render.section(f"{len(found)} stuck", _COLUMNS, rows, _NOTHING))
                await session.rt.clock.sleep(every)


@options.grouped(without=["reason", "dry_run", "yes"])
def recover(*, acting: options.Acting) -> None:
    """Do one recovery pass now: release what dead processes held, let waiting chats begin.
    A process that is merely late gets two heartbeats to say so.

    For example: answerback recover
    """
    by = operator_of(acting)

    done = in_session(lambda session: recovering.recover(session.rt, by.name), tells=True)
    if acting.json:
        render.as_json(shape(done))
        return
    told = (
        ("released", done.released, "run"),
        ("uncertain", done.uncertain, "part"),
        ("going on", done.promoted, "chat"),
    )
    render.lines(["; ".join(f"{what}: {counted(count, noun)}" for what, count, noun in told)])


@dataclass(frozen=True, slots=True)
class _Picture:
    gauges: Gauges
    rates: Rates
    holders: Sequence[HolderRow]
    accounts: Sequence[Account]
    uncertain: Sequence[Stuck]
    seen: Seen


def top(
    *,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two pictures.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="One picture, then leave.")] = False,
    json: options.Json = False,
) -> None:
    """Show rates, what is in flight, what waits, each channel, each process and the last
    errors, until Ctrl-C.

    For example: answerback top --every 5
    """

    async def work(session: OperatorSession) -> None:
        db, lease = session.rt.db, session.settings.lease_seconds
        if json:
            render.as_json(_shape(await db.read(_look, lease)))
            return
        with render.screen(once=once) as show:
            while True:
                show(_drawn(await db.read(_look, lease)))
                if once:
                    return
                await session.rt.clock.sleep(every)

    with suppress(KeyboardInterrupt):
        in_session(work)


def _look(tx: Tx, lease_seconds: float) -> _Picture:
    rates = gauges.read_rates(tx, _LATELY)
    errors = tuple((run, shortened(says), ago) for run, says, ago in rates.errors)
    return _Picture(
        gauges.read_gauges(tx),
        replace(rates, errors=errors),
        holders.listed(tx, lease_seconds)[:_HOLDERS],
        accounts.listed(tx),
        [shortened_in(item) for item in uncertain(tx)[:_DOUBTS]],
        look(tx),
    )


def _shape(seen: _Picture) -> Shape:
    return {
        **shape(seen.gauges),
        "recorded_last_minute": seen.rates.recorded,
        "ended_last_minute": dict(seen.rates.endings),
        "holders": [holder_shape(h) for h in seen.holders],
        "channels": [
            {"channel": a.channel, "account": a.account, "down": a.down_reason}
            for a in seen.accounts
        ],
        "errors": [{"run": run, "says": says} for run, says, _ in seen.rates.errors],
    }


def _drawn(picture: _Picture) -> render.Picture:
    rates, gauges_, seen = picture.rates, picture.gauges, picture.seen
    ended = ", ".join(f"{count} {name}" for name, count in rates.endings) or "none"
    figures = [
        (_FIGURES.get(name, name.replace("_", " ")), span(value) if type(value) is float else value)
        for name, value in asdict(gauges_).items()
    ]
    return [
        *render.sentences([f"last minute: {rates.recorded} messages recorded; ended: {ended}"]),
        *render.figures(figures),
        *_doubts(picture),
        *render.section(
            "channels", _CHANNELS, [_channel(a, seen) for a in picture.accounts], _NO_CHANNEL
        ),
        *render.section(
            "processes", _PROCESSES, [_process(h, seen) for h in picture.holders], _NO_PROCESS
        ),
        *_errors(picture),
        *_next(picture),
    ]


_FIGURES = {
    "uncertain": "uncertain parts",
    "standalone": "standalone parts",
    "down": "accounts down",
    "wanting": "want a person",
}
_CHANNELS = (
    *(Column("channel", Slot.TITLE), Column("account", Slot.TITLE), Column("state", Slot.TITLE)),
    *(Column("since"), Column("why", Slot.PROSE)),
)
_NO_CHANNEL = "none was ever connected: `answerback serve` connects those that are configured"
_PROCESSES = (
    *(Column("name", Slot.TITLE), Column("state", Slot.TITLE), Column("role")),
    *(Column("pid"), Column("renewed")),
)
_NO_PROCESS = "none was ever here: `answerback serve` starts one"
_ERRORS = (*(Column("run", Slot.TITLE), Column("ended", Slot.TITLE), Column("says", Slot.PROSE)),)
_DOUBT = (Column("what", Slot.TITLE), Column("since", Slot.TITLE), Column("next", Slot.COMMAND))


def _doubts(picture: _Picture) -> render.Picture:
    if not picture.uncertain:
        return []
    rows = [(d.named, picture.seen.ago(d.since), d.act) for d in picture.uncertain]
    more = picture.gauges.uncertain - len(rows)
    rest = render.sentences([f"and {more} more: answerback stuck"]) if more > 0 else []
    return [*render.section("uncertain", _DOUBT, rows, ""), *rest]


def _next(picture: _Picture) -> render.Picture:
    now = picture.gauges
    if not (now.uncertain or now.down or now.wanting or now.waiting or picture.rates.errors):
        return []
    return [*render.sentences([""]), *render.step(_LOOK)]


_LOOK = "answerback stuck  # lists what stands still, each with its cause and its command"


def _channel(account: Account, seen: Seen) -> Sequence[object]:
    state = "up" if account.down_since is None else "down"
    since = "" if account.down_since is None else seen.when(account.down_since)
    name = shortened(account.name or account.account)
    return account.channel, name, state, since, account.down_reason


def _process(holder: HolderRow, seen: Seen) -> Sequence[object]:
    state = "gone" if holder.gone else "draining" if holder.draining else "alive"
    return holder.name, state, holder.role, holder.pid, seen.ago(holder.lease_age)


def _errors(picture: _Picture) -> render.Picture:
    rows = [(run, picture.seen.ago(ago), says) for run, says, ago in picture.rates.errors]
    return render.section("last errors", _ERRORS, rows, "") if rows else []
