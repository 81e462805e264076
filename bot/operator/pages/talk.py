"""The lines of a conversation as a page shows them: author, time, text, and their fate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import assert_never

from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from bot.operations.inbox import OpenChat
from bot.operator.pages.files import named
from storage.views.conversation import Heard, Said, attached


@dataclass(frozen=True, slots=True)
class Line:
    """A message of a person or a part of ours. `day` is set on the first line of a day, and empty
    on the others. `became` says what became of it, and `mark` is its CSS class. `doubtful`: nobody
    knows whether it arrived, so an operator may say."""

    key: str
    number: int
    ours: bool
    by: str
    stamp: str
    at: str
    day: str
    text: str
    files: Sequence[str]
    edited: bool
    became: str
    mark: str
    run: int | None
    doubtful: bool = False


def lines_of(chat: OpenChat) -> Sequence[Line]:
    """The conversation of a chat, oldest line first."""
    lines: list[Line] = []
    day = ""
    for one in chat.talk:
        moment = datetime.fromtimestamp(one.at, UTC)
        today = f"{moment:%A, %Y-%m-%d}"
        line = _heard(one, chat, moment) if isinstance(one, Heard) else _said(one, moment)
        lines.append(line if today == day else replace(line, day=today))
        day = today
    return lines


def _heard(one: Heard, chat: OpenChat, moment: datetime) -> Line:
    mark, became = _became(one)
    return Line(
        key=f"heard-{one.id}",
        number=one.id,
        ours=False,
        by=one.sender_name or chat.line.name or "the person",
        stamp=f"{moment:%H:%M}",
        at=moment.isoformat(timespec="seconds"),
        day="",
        text=one.text,
        files=[named(file) for file in attached(one.attachments)],
        edited=one.edited_at is not None,
        became=became,
        mark=mark,
        run=one.run,
    )


def _became(one: Heard) -> tuple[str, str]:
    """The class and the words of a message's fate; empty if the answer below it shows it."""
    if one.ignored is not None:
        return "faint", f"no answer: {one.ignored.says}"
    match one.state:
        case None | RunState.ENDED:
            pass
        case RunState.WAITING:
            return "faint", "waits"
        case RunState.READY | RunState.RUNNING:
            return "faint", "is being answered"
        case other:
            assert_never(other)
    if one.ending in (None, Ending.ANSWERED, Ending.UNCERTAIN):
        return "", ""
    return ("care" if one.ending.needs_eyes else "faint"), one.ending.value


def _said(one: Said, moment: datetime) -> Line:
    mark, became = _delivery(one)
    return Line(
        key=f"said-{one.id}",
        number=one.id,
        ours=True,
        by=_author(one),
        stamp=f"{moment:%H:%M}",
        at=moment.isoformat(timespec="seconds"),
        day="",
        text=one.text,
        files=(),
        edited=False,
        became=became,
        mark=mark,
        run=one.run,
        doubtful=one.state is PartState.UNCERTAIN,
    )


def _author(one: Said) -> str:
    match one.kind:
        case PartKind.OPERATOR:
            return one.who.partition("@")[0] or "a person of ours"
        case PartKind.REPLY:
            return "the agent"
        case PartKind.APOLOGY | PartKind.NOTICE:
            return "the bot itself"
        case other:
            assert_never(other)


def _delivery(one: Said) -> tuple[str, str]:
    match one.state:
        case PartState.PENDING:
            return "faint", "goes out next" + (f": {one.error}" if one.error else "")
        case PartState.SENDING:
            return "faint", "is being sent"
        case PartState.SENT:
            return "faint", "sent"
        case PartState.DELIVERED:
            return "faint", "delivered"
        case PartState.READ:
            return "faint", "read"
        case PartState.UNCERTAIN:
            return "care", "may not have arrived" + (f": {one.error}" if one.error else "")
        case PartState.REFUSED:
            return "bad", f"refused: {one.error or 'without a reason'}"
        case PartState.DROPPED:
            return "faint", "not sent"
        case other:
            assert_never(other)
