"""Search: runs by a number, a request id, a receipt or an address, and by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from bot.domain.ending import Ending
from bot.domain.run import RunState
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shortened_in
from bot.operator.view import Asked, View, number_told
from storage.statements.tx import Tx
from storage.views import lookup
from storage.views import runs as run_views
from storage.views.runs import RunFilter, RunLine

_PAGE = 50
_LOOKED_AT = 20_000
"""Runs that are looked at for a page of those that are something."""
_CHATS = 4
"""Chats of one address, on as many accounts, whose runs are shown."""
_LONGEST = 300
"""Characters of what is looked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search, as it stands in the address of the page."""

    text: str = ""
    state: RunState | None = None
    ending: Ending | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The runs that were found. `older` is where the next page begins, None where there is none;
    `until` is how far back this one has looked, 0 where it looked at everything."""

    runs: Sequence[RunLine]
    older: int | None
    until: int
    seen: Seen


def find(tx: Tx, wanted: Wanted, lease_seconds: float) -> Found:
    """The runs that match, newest first. For each page a bounded number is looked at: however rare
    they are, and however many there are, it costs as much."""
    named, chats = _named(tx, wanted.text)
    if chats:
        return _of_chats(tx, chats, wanted, lease_seconds)
    if wanted.text and not named:
        return Found([], None, 0, look(tx))
    before = run_views.newest_run(tx) + 1 if wanted.before is None else wanted.before
    everything = bool(named) or (wanted.state is None and wanted.ending is None)
    until = 0 if everything else max(0, before - _LOOKED_AT)
    listed = RunFilter(
        states=() if wanted.state is None else (wanted.state,),
        endings=() if wanted.ending is None else (wanted.ending,),
        ids=named,
        before=before,
        beyond=until,
        limit=_PAGE,
    )
    found = run_views.runs_listed(tx, listed, lease_seconds)
    older = found[-1].id if len(found) == _PAGE else until + 1 if until else None
    return Found([shortened_in(line) for line in found], older, until, look(tx))


def _of_chats(tx: Tx, chats: Sequence[int], wanted: Wanted, lease_seconds: float) -> Found:
    """The last runs of these chats, of which those are shown that match."""
    ids = [
        run
        for chat in chats[:_CHATS]
        for run in run_views.last_of_chat(tx, chat, _PAGE, wanted.before)
    ]
    if not ids:
        return Found([], None, 0, look(tx))
    listed = RunFilter(ids=tuple(ids), limit=len(ids))
    lines = run_views.runs_listed(tx, listed, lease_seconds)
    found = [
        shortened_in(line)
        for line in lines
        if wanted.state in (None, line.state) and wanted.ending in (None, line.ending)
    ]
    older = ids[-1] if len(chats) == 1 and len(ids) == _PAGE else None
    return Found(found, older, older or 0, look(tx))


def _named(tx: Tx, text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The runs that these words name, or else the chats."""
    if not text:
        return (), ()
    runs = [*lookup.runs_named(tx, text), *lookup.runs_of_receipt(tx, text)]
    return tuple(dict.fromkeys(runs)), () if runs else tuple(lookup.chats_named(tx, text))


def _wanted(asked: Asked) -> Wanted:
    """The search of the address. What makes no sense there is left out."""
    try:
        before = number_told(asked.given("before"))
    except ValueError:
        before = None
    return Wanted(
        asked.given("q").strip()[:_LONGEST],
        next((s for s in RunState if s.value == asked.given("state")), None),
        next((e for e in Ending if e.value == asked.given("ending")), None),
        before,
    )


async def search(asked: Asked) -> Response:
    """The page: its address is the search, so that it can be sent to somebody."""
    wanted = _wanted(asked)
    found = await asked.read(find, wanted, asked.tools.lease_seconds)
    return asked.page(
        "search.html", wanted=wanted, found=found, states=list(RunState), endings=list(Ending)
    )


VIEWS = (View("/search", search),)
