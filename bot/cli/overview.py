"""`answerback stuck | recover | top`: whatever stands still, and the service at a glance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.session import DONE, NOT_DONE, in_session, operator_of, settings_with_logs
from bot.cli.shapes import Shape, holder_shape, shape, shortened_in
from bot.cli.wording import span
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import shortened
from bot.leases import recovery
from bot.operations.stuck import Stuck, Trouble, database_troubles, find_stuck, in_order
from bot.operations.webhooks import stuck_webhooks
from bot.wiring import OperatorSession, Settings, operator_session, schema_problem
from bot.wiring.operator import unfit_database
from storage import accounts, holders
from storage.accounts import Account
from storage.engine.probe import RedisUnreachable, ping_redis
from storage.engine.tx import Tx
from storage.holders import HolderRow
from storage.views import diagnostics, gauges
from storage.views.gauges import Gauges, Rates

_HEAD = ("what", "id", "since", "why", "next")
_REDIS_PATIENCE = 2.0
_LATELY = 60.0
"""Seconds over which rates are taken."""
_HOLDERS = 20


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

    For example: stuck --older 10 --json
    """
    settings = settings_with_logs("WARNING")
    if watch:
        with suppress(KeyboardInterrupt):
            asyncio.run(_watch(settings, older, every, offline=offline))
        raise typer.Exit(DONE)
    found = asyncio.run(_found(settings, older, offline=offline))
    if json:
        render.as_json([shape(item) for item in found])
    elif found:
        render.table(_HEAD, _rows(found))
    else:
        render.lines(["nothing is stuck"])
    raise typer.Exit(NOT_DONE if found else DONE)


def _rows(found: Sequence[Stuck]) -> Sequence[Sequence[object]]:
    return [(s.kind.value, s.id, span(s.since), s.why, s.act) for s in found]


async def _found(settings: Settings, older: float, *, offline: bool) -> Sequence[Stuck]:
    try:
        said = await asyncio.to_thread(schema_problem, settings.database_url)
    except DatabaseUnavailable:
        if found := await asyncio.to_thread(unfit_database, settings):
            return found
        raise
    if said:
        act = "answerback db upgrade  # brings the schema to this version"
        return [Stuck(Trouble.SCHEMA, "database", 0.0, said, act)]
    async with operator_session(settings, speaks=not offline) as session:
        return await _all(session, older, offline=offline)


async def _all(session: OperatorSession, older: float, *, offline: bool) -> Sequence[Stuck]:
    lease = session.settings.lease_seconds
    url, clock = session.settings.database_url, session.rt.clock
    found = [*await asyncio.to_thread(database_troubles, url, clock)]
    found += await session.rt.db.read(find_stuck, older, lease)
    if redis := session.settings.redis_url:
        try:
            await ping_redis(redis, _REDIS_PATIENCE)
        except RedisUnreachable as error:
            why = f"Redis does not answer ({error}): answers are slower by up to a second"
            act = "answerback doctor  # then look after Redis; nothing is lost"
            found.append(Stuck(Trouble.WAKE_UPS, "redis", 0.0, why, act))
    if not offline:
        async with session.opened():
            found += await stuck_webhooks(session.endpoints)
    return [shortened_in(item) for item in in_order(found)]


async def _watch(settings: Settings, older: float, every: float, *, offline: bool) -> None:
    with render.screen(once=False) as show:
        async with operator_session(settings, speaks=not offline) as session:
            while True:
                found = await _all(session, older, offline=offline)
                table = render.panel(f"{len(found)} stuck", _HEAD, _rows(found))
                show([table if found else render.line("nothing is stuck")])
                await session.rt.clock.sleep(every)


@options.grouped(without=["reason", "dry_run", "yes"])
def recover(*, acting: options.Acting) -> None:
    """Do one recovery pass now: release what dead processes held, let waiting chats begin.
    A process that is merely late gets two heartbeats to say so.

    For example: recover
    """
    by = operator_of(acting)

    async def work(session: OperatorSession) -> tuple[int, int, int]:
        rt, lease = session.rt, session.settings.lease_seconds
        if await rt.db.read(diagnostics.overdue_holders, lease):
            await rt.clock.sleep(2 * session.settings.heartbeat_seconds)
        swept = await recovery.pass_by_hand(rt, by.name)
        return len(swept.released), swept.doubted, await recovery.repair(rt)

    released, doubted, promoted = in_session(work, tells=True)
    if acting.json:
        render.as_json({"released": released, "uncertain": doubted, "promoted": promoted})
        return
    said = f"{released} run(s) released, {doubted} part(s) uncertain, {promoted} chat(s) go on"
    render.lines([said])


@dataclass(frozen=True, slots=True)
class _Picture:
    gauges: Gauges
    rates: Rates
    holders: Sequence[HolderRow]
    accounts: Sequence[Account]


def top(
    *,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two pictures.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="One picture, then leave.")] = False,
    json: options.Json = False,
) -> None:
    """Show rates, what is in flight, what waits, each channel, each process and the last
    errors, until Ctrl-C.

    For example: top --every 5
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


def _drawn(seen: _Picture) -> render.Picture:
    rates = seen.rates
    ended = ", ".join(f"{count} {name}" for name, count in rates.endings) or "none"
    now = asdict(seen.gauges)
    cells = [span(value) if isinstance(value, float) else value for value in now.values()]
    channels = [(a.channel, a.account, a.down_reason or "up") for a in seen.accounts]
    processes = [
        (
            *(h.name, h.role, h.pid, span(h.lease_age)),
            "gone" if h.gone else "draining" if h.draining else "alive",
        )
        for h in seen.holders
    ]
    last = [(run, says, f"{span(ago)} ago") for run, says, ago in rates.errors]
    problems = [render.panel("last errors", ("run", "says", "when"), last)] if last else []
    return [
        render.line(f"last minute: {rates.recorded} messages recorded; ended: {ended}"),
        render.panel("runs", [name.replace("_", " ") for name in now], [cells]),
        render.panel("channels", ("channel", "account", "state"), channels),
        render.panel("processes", ("name", "role", "pid", "renewed", "state"), processes),
        *problems,
    ]
