"""The JSON that commands print. Keys may be added; none may be removed or change its meaning."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING

from bot.cli.output.wording import moment
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.operations.reports.stuck import Stuck
    from storage.holders import HolderRow
    from storage.views.chats import ChatLine
    from storage.views.conversation import Heard, Said
    from storage.views.parts import DeadLetter, PartLine
    from storage.views.runs import RunLine
    from storage.views.timeline import Moment

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Shape = dict[str, object]

_MOMENTS = ("_at", "_since", "_until")
_SPANS = ("age", "since", "lease_age", "oldest_ready", "oldest_waiting")
FOR_EVER = 1e11
"""A pause until this moment (epoch seconds) or later lasts until somebody resumes the chat."""


def shape(record: DataclassInstance, without: str = "", **other: object) -> Shape:
    """A record's fields: enums by their values, moments in ISO 8601, spans in seconds under a name
    that ends in `_s`. The fields named in `without` are left out; `other` adds or overrides
    keys."""
    shown: Shape = {}
    for field in fields(record):
        name, value = field.name, getattr(record, field.name)
        if name in without.split():
            continue
        if name in _SPANS:
            name, value = f"{name}_s", round(value, 3)
        elif value is not None and (name == "at" or name.endswith(_MOMENTS)):
            value = moment(value)
        shown[name] = value.value if isinstance(value, Enum) else value
    return shown | other


def run_shape(run: RunLine) -> Shape:
    return shape(run, "account replied not_before kept deadline_at", holder=run.holder or None)


def part_shape(part: PartLine, *, text: bool) -> Shape:
    hidden = "account not_before"
    return shape(part, hidden if text else f"{hidden} text")


def chat_shape(chat: ChatLine, *, wants_person: bool = False) -> Shape:
    """A chat. Times that do not apply are null."""
    hidden = "bot live not_before"
    more: Shape = {"live_runs": chat.live, "wants_person": wants_person}
    if chat.paused_until is not None and chat.paused_until >= FOR_EVER:
        hidden += " paused_until"
        more["paused_until"] = "resumed"
    return shape(chat, hidden, **more)


def moment_shape(happened: Moment, *, text: bool) -> Shape:
    due = "" if happened.due is None else f", due again at {moment(happened.due)}"
    hidden = "due mark thing" if text else "due mark thing text"
    return shape(happened, hidden, detail=f"{happened.detail}{due}")


def stuck_shape(item: Stuck) -> Shape:
    of = f" (run {item.run})" if item.run else ""
    return shape(item, "what account run", why=f"{item.why}{of}")


def said_shape(one: Heard | Said, *, text: bool) -> Shape:
    """A line of a conversation. `direction` distinguishes a person's messages from ours."""
    hidden = "attachments made_at standalone"
    return shape(one, hidden if text else f"{hidden} text sender_name")


def letter_shape(letter: DeadLetter, *, text: bool) -> Shape:
    return shape(letter, "size" if text else "size body", bytes=letter.size)


def holder_shape(holder: HolderRow) -> Shape:
    return shape(holder, "gone", alive=not holder.gone)
