"""`answerback top`: the service as it is now, over and over."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.render import Screen
from bot.cli.session import in_session
from bot.cli.shapes import Shape, holder_shape, shape
from bot.cli.wording import span
from bot.wiring import OperatorSession
from storage import accounts, holders
from storage.accounts import Account
from storage.engine.tx import Tx
from storage.holders import HolderRow
from storage.views import gauges
from storage.views.gauges import Gauges, Rates

_LATELY = 60.0
"""Seconds over which rates are taken."""
_HOLDERS = 20


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
        with render.screen(once=once) as picture:
            while True:
                _draw(picture, await db.read(_look, lease))
                if once:
                    return
                await session.rt.clock.sleep(every)

    with suppress(KeyboardInterrupt):
        in_session(work)


def _look(tx: Tx, lease_seconds: float) -> _Picture:
    return _Picture(
        gauges.read_gauges(tx),
        gauges.read_rates(tx, _LATELY),
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


def _draw(picture: Screen, seen: _Picture) -> None:
    rates = seen.rates
    ended = ", ".join(f"{count} {name}" for name, count in rates.endings) or "none"
    picture.line(f"last minute: {rates.recorded} messages recorded; ended: {ended}")
    now = asdict(seen.gauges)
    cells = [span(value) if isinstance(value, float) else value for value in now.values()]
    picture.table("runs", [name.replace("_", " ") for name in now], [cells])
    channels = [(a.channel, a.account, a.down_reason or "up") for a in seen.accounts]
    picture.table("channels", ("channel", "account", "state"), channels)
    processes = [
        (
            *(h.name, h.role, h.pid, span(h.lease_age)),
            "gone" if h.gone else "draining" if h.draining else "alive",
        )
        for h in seen.holders
    ]
    picture.table("processes", ("name", "role", "pid", "renewed", "state"), processes)
    if rates.errors:
        last = [(run, says, f"{span(ago)} ago") for run, says, ago in rates.errors]
        picture.table("last errors", ("run", "says", "when"), last)
    picture.show()
