"""A run, drawn: its life, the verdict with its evidence, and what may be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from bot.domain.run import RunState
from bot.leases.runtime import Runtime
from bot.operations.reports.explain import explain_run
from bot.operations.reports.picture import NARROW, WIDE, draw_run
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shortened_in, shown_course, shown_verdict
from bot.operations.reports.stuck import Stuck, stuck_of_run
from bot.operator.acts import Choice, acts_of_run, choices
from bot.operator.live import Pieces
from bot.operator.view import Asked, View
from storage.statements.tx import Tx
from storage.views import runs as run_views
from storage.views import timeline
from storage.views.runs import RunLine


@dataclass(frozen=True, slots=True)
class Drawn:
    """A run, and everything that its page shows of it."""

    line: RunLine
    pictures: Sequence[tuple[str, Markup]]
    """The same picture for a wide and for a narrow screen, each with its name."""
    stuck: Sequence[Stuck]
    choices: Sequence[Choice]
    seen: Seen


def draw(tx: Tx, rt: Runtime, number: int, lease_seconds: float, *, text: bool) -> Drawn | None:
    """The run as it is now; None if there is no such run. With `text` the picture has people's
    words."""
    line = run_views.run_line(tx, number, lease_seconds)
    if line is None:
        return None
    seen = look(tx)
    course = shown_course(timeline.timeline(tx, number), whole=False)
    why = shown_verdict(explain_run(tx, rt, number, lease_seconds), whole=False)
    pictures = [
        (name, Markup(draw_run(course, why, seen.now, text=text, styled=False, wide=wide)))  # noqa: S704 - it escapes what it draws
        for name, wide in (("wide", WIDE), ("narrow", NARROW))
    ]
    stuck = stuck_of_run(tx, line, lease_seconds)
    return Drawn(
        shortened_in(line),
        pictures,
        [shortened_in(item) for item in stuck],
        _choices(line, stuck),
        seen,
    )


def _choices(line: RunLine, stuck: Sequence[Stuck]) -> Sequence[Choice]:
    """The acts that make sense for the run, each once, beginning with those that help if it is
    stuck."""
    ended = line.state is RunState.ENDED
    names = (
        ("requeue", "requeue-anyway", "answered")
        if ended
        else ("requeue", "apologise", "answered", "cancelled")
    )
    helping = [choice for item in stuck for choice in choices(item)]
    return list(dict.fromkeys([*helping, *acts_of_run(*names, run=line.id)]))


async def _drawn(asked: Asked, *, text: bool) -> Drawn:
    """The run that the path names. Raises HTTPException."""
    found = await asked.read(
        draw, asked.rt, asked.number("run"), asked.tools.lease_seconds, text=text
    )
    if found is None:
        raise HTTPException(404, "there is no such run")
    return found


def _asks_for_words(asked: Asked) -> bool:
    return "words" in asked.request.query_params


async def run(asked: Asked) -> Response:
    """The page of a run. If people's words are asked for, that is recorded first."""
    text = _asks_for_words(asked)
    found = await _drawn(asked, text=False)
    if text:
        await asked.record_reading(run=found.line.id, chat=found.line.chat)
        found = await _drawn(asked, text=True)
    return asked.page("run.html", drawn=found, words=text)


async def follow(asked: Asked) -> ASGIApp:
    """The page's live parts."""
    text = _asks_for_words(asked)
    found = await _drawn(asked, text=False)
    if text:
        await asked.record_reading(run=found.line.id, chat=found.line.chat)

    async def pieces() -> Pieces:
        seen = await _drawn(asked, text=text)
        return {"drawn": asked.piece("run_drawn.html", drawn=seen, words=text)}

    return asked.follow(pieces, shared=True)


VIEWS = (View("/runs/{run:int}", run), View("/live/runs/{run:int}", follow))
