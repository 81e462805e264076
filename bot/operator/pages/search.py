"""Search: runs by number, request id, receipt or address, and by state and ending."""

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
"""The most runs that are examined for one page of a search by state or ending."""
_CHATS = 4
"""The most chats with the same address, on different accounts, whose runs are shown."""
_LONGEST = 300
"""The most characters of a search text."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search, as the page's address has it."""

    text: str = ""
    state: RunState | None = None
    ending: Ending | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The runs that were found. The next page begins below the number `older`; None for no next
    page. This page examined the runs above the number `until`, 0 if there was nothing left."""

    runs: Sequence[RunLine]
    older: int | None
    until: int
    seen: Seen


def find(tx: Tx, wanted: Wanted, lease_seconds: float) -> Found:
    """The runs that match, newest first. A page examines a bounded number of runs, so its cost does
    not depend on how rare matches are or how many runs there are."""
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
    """Those of the last runs of these chats that match."""
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
    """The runs that the text names; if it names none, the chats that it names."""
    if not text:
        return (), ()
    runs = [*lookup.runs_named(tx, text), *lookup.runs_of_receipt(tx, text)]
    return tuple(dict.fromkeys(runs)), () if runs else tuple(lookup.chats_named(tx, text))


def _wanted(asked: Asked) -> Wanted:
    """The search in the request's query. Values that make no sense are ignored."""
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
    """The page. Its address holds the whole search, so that it can be sent to somebody."""
    wanted = _wanted(asked)
    found = await asked.read(find, wanted, asked.tools.lease_seconds)
    return asked.page(
        "search.html", wanted=wanted, found=found, states=list(RunState), endings=list(Ending)
    )


VIEWS = (View("/search", search),)
