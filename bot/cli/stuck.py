"""`answerback stuck | recover`: everything that stands still, and releasing what is dead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.session import DONE, NOT_DONE, in_session, operator_of, settings_with_logs
from bot.cli.shapes import shape
from bot.cli.wording import span
from bot.leases import recovery
from bot.operations.stuck import Stuck, Trouble, database_troubles, find_stuck, in_order
from bot.operations.webhooks import stuck_webhooks
from bot.wiring import OperatorSession, Settings, operator_session, schema_problem
from storage.engine.probe import RedisUnreachable, ping_redis
from storage.views import diagnostics

_HEAD = ("what", "id", "since", "why", "next")
_REDIS_PATIENCE = 2.0


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
    found = asyncio.run(_look(settings, older, offline=offline))
    if json:
        render.as_json([shape(item) for item in found])
    elif found:
        render.table(_HEAD, _rows(found))
    else:
        render.lines(["nothing is stuck"])
    raise typer.Exit(NOT_DONE if found else DONE)


def _rows(found: Sequence[Stuck]) -> Sequence[Sequence[object]]:
    return [(s.kind.value, s.id, span(s.since), s.why, s.act) for s in found]


async def _look(settings: Settings, older: float, *, offline: bool) -> Sequence[Stuck]:
    if said := await asyncio.to_thread(schema_problem, settings.database_url):
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
    return in_order(found)


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
