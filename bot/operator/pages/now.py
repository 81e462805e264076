"""Now: everything that is stuck, worst first, and the service at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup
from starlette.responses import Response
from starlette.types import ASGIApp

from bot.domain.message import shortened
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shortened_in
from bot.operations.reports.stuck import Stuck, find_stuck
from bot.operator.acts import Choice, choices, recovers
from bot.operator.live import Pieces
from bot.operator.pages import plots
from bot.operator.view import Asked, View
from storage import accounts, holders
from storage.accounts import Account
from storage.holders import HolderRow
from storage.statements.tx import Tx
from storage.views.health import gauges
from storage.views.health.gauges import Gauges, Rates
from storage.views.health.hours import Span, last_hours

_OLDER = 60.0
"""Seconds for which it is normal that something does not move."""
_LATELY = 60.0
"""Seconds over which rates are taken."""
_HOLDERS = 50


@dataclass(frozen=True, slots=True)
class Standing:
    """Something that is stuck, with the acts that may help."""

    item: Stuck
    choices: Sequence[Choice]
    recovers: bool

    @property
    def key(self) -> str:
        """A name that is unique among all that is stuck, and the same at every look."""
        return f"{self.item.kind.name.lower()}-{self.item.what or self.item.id}".replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Glance:
    """Everything that the page shows."""

    standing: Sequence[Standing]
    gauges: Gauges
    rates: Rates
    holders: Sequence[HolderRow]
    accounts: Sequence[Account]
    hours: Sequence[Span]
    seen: Seen

    @property
    def plots(self) -> Sequence[Markup]:
        """Plots of the last hours."""
        return plots.endings(self.hours), plots.waits(self.hours)


def glance(tx: Tx, lease_seconds: float) -> Glance:
    """A look at the service."""
    found = [shortened_in(item) for item in find_stuck(tx, _OLDER, lease_seconds)]
    rates = gauges.read_rates(tx, _LATELY)
    errors = tuple((run, shortened(says), ago) for run, says, ago in rates.errors)
    return Glance(
        [Standing(item, choices(item), recovers(item)) for item in found],
        gauges.read_gauges(tx),
        replace(rates, errors=errors),
        holders.listed(tx, lease_seconds)[:_HOLDERS],
        [shortened_in(account) for account in accounts.listed(tx)],
        last_hours(tx, plots.SPAN),
        look(tx),
    )


async def now(asked: Asked) -> Response:
    """The first page."""
    return asked.page("now.html", glance=await asked.read(glance, asked.tools.lease_seconds))


async def follow(asked: Asked) -> ASGIApp:
    """The page's live parts."""

    async def pieces() -> Pieces:
        seen = await asked.read(glance, asked.tools.lease_seconds)
        return {
            name: asked.piece(f"now_{name}.html", glance=seen)
            for name in ("stuck", "figures", "plots", "processes")
        }

    return asked.follow(pieces, shared=True)


VIEWS = (View("", now), View("/", now), View("/live/now", follow))
