"""The course of a run in words, each thing once: the same on every screen and picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.operations.reports.phrases import when
from storage.views.timeline import Mark, Moment


def told(happened: Moment, now: float) -> str:
    """The moment as a sentence, without its time, its author and anybody's words."""
    due = "" if happened.due is None else f"due again at {when(happened.due, now)}"
    if happened.what.startswith("receipt "):
        return f"{happened.detail} has the {happened.what}"
    state = happened.what.rpartition(" ")[2]
    detail = "" if happened.detail == f"the provider says {state}" else happened.detail
    return ": ".join(filter(None, (happened.what, ", ".join(filter(None, (detail, due))))))


def told_once(course: Sequence[Moment]) -> Iterator[Moment]:
    """Without what another line says too: the run's own end where an event tells of it, and that a
    part of a reply was stored where its sending is told."""
    ended = any(m.mark is Mark.ENDED and m.who != _RUN for m in course)
    sending = {m.thing for m in course if m.mark is Mark.SENDING}
    for happened in course:
        if ended and happened.mark is Mark.ENDED and happened.who == _RUN:
            continue
        reply = happened.mark is Mark.STORED and happened.what.startswith("reply ")
        if reply and happened.thing in sending:
            continue
        yield happened


_RUN = "run"
"""The author of an end that the run's own row tells."""
