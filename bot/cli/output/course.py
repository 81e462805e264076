"""The course of a run and the conversation of a chat, as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cli.output import render
from bot.cli.output.layout import Column, Slot, quoted
from bot.domain.reply import PartKind
from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import safe, when

with lazy_imports(__name__):
    from bot.operations.reports.course import told, told_once
    from storage.views.conversation import Heard, Said
    from storage.views.timeline import Moment

_COURSE = (Column("at", Slot.TITLE), Column("who", Slot.TITLE), Column("what", Slot.WORDS))
_TALK = (
    *(Column("at", Slot.TITLE), Column("who", Slot.TITLE), Column("run", Slot.TITLE)),
    Column("what", Slot.WORDS),
)


def print_course(course: Sequence[Moment], now: float, *, text: bool) -> None:
    """Print the events of a course in order, each once; people's words only with `text`."""
    rows = [
        (when(m.at, now), m.who, _words(told(m, now), m.text if text else ""))
        for m in told_once(course)
    ]
    render.table(_COURSE, rows)


def print_conversation(talk: Sequence[Heard | Said], now: float, *, text: bool) -> None:
    """Print what was said in a chat; the words only with `text`."""
    rows = []
    for one in talk:
        long = "" if text else f", {len(one.text)} characters"
        who, what = _heard(one, long) if one.direction == "in" else _said(one, long)
        run = "" if one.run is None else f"run {one.run}"
        rows.append((when(one.at, now), who, run, _words(what, one.text if text else "")))
    render.table(_TALK, rows)


def _heard(one: Heard, long: str) -> tuple[str, str]:
    if one.ignored is not None:
        became = f"recorded, no answer: {one.ignored.says}"
    elif one.ending is not None:
        became = one.ending.value
    else:
        became = "" if one.state is None else one.state.value
    return "person", f"{one.request_id} {one.kind.value}{long}: {became}"


def _said(one: Said, long: str) -> tuple[str, str]:
    by_hand = one.kind is PartKind.OPERATOR
    error = f", {one.error}" if one.error else ""
    kind = "by hand" if by_hand else one.kind.value
    told = f"part {one.id} {kind}{long}: {one.state.value}{error}"
    return (one.who or "operator") if by_hand else "bot", told


def _words(what: str, text: str) -> str:
    """The event, and below it people's words, each line marked as a quotation."""
    return "\n".join(filter(None, (safe(what), quoted(text))))
