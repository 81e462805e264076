"""A chat as its person saw it, as plain text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

from bot.domain.decisions.order import in_one_order
from bot.domain.delivery import ARRIVED, PartState
from bot.domain.message import InboundKind
from bot.domain.reply import ANSWERING, PartKind
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage.chats import Chat
from storage.outbox import FIRST_OF_EXPORT
from storage.statements.tx import Tx
from storage.views import record

_SEEN = {*ARRIVED, PartState.UNCERTAIN}
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that would move a terminal's cursor, or turn the direction of what stands beside."""


class TooLarge(Exception):
    """The text has more characters than it may have."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The names of those who speak. An empty `person` stands for the name that they gave."""

    person: str
    bot: str
    team: str


OPERATORS = Labels("", "bot", "operator")


def labels_of(rt: Runtime, chat: Chat) -> Labels:
    """The names in a copy for the person of this chat."""
    said = (Text.WEB_YOU, Text.WEB_ASSISTANT, Text.WEB_TEAM)
    return Labels(*(rt.words.say(text, chat.language) for text in said))


@dataclass(frozen=True, slots=True)
class _Line:
    at: float
    who: str
    text: str
    answers: int | None = None
    """The run that this is an answer of."""


def write_text(tx: Tx, out: TextIO, chats: Sequence[int]) -> None:
    """Write all that was said in these chats into a file, from its beginning: it may be done
    again."""
    out.seek(0)
    out.truncate()
    for place, chat in enumerate(chats):
        found = record.chat(tx, chat)
        out.write("\n" if place else "")
        out.write(f"chat {chat}: {_plain(found['address'])} of {found['channel']}\n\n")
        out.writelines(_written(line) for line in _lines(tx, chat, OPERATORS))


def copied(tx: Tx, chat: int, labels: Labels, largest: int) -> str:
    """All that was said in a chat, as one text. Raises TooLarge."""
    out = io.StringIO()
    for line in _lines(tx, chat, labels):
        out.write(_written(line))
        if out.tell() > largest:
            raise TooLarge
    return out.getvalue()


def _lines(tx: Tx, chat: int, labels: Labels) -> Iterator[_Line]:
    """Both sides in one order, each read page by page. No answer stands before what it answers."""
    next_heard: int | None = None

    def heard() -> Iterator[_Line]:
        nonlocal next_heard
        for row in filter(_is_heard, record.messages(tx, chat)):
            next_heard = row["run"]
            yield _heard(row, labels)
        next_heard = None

    def held(line: _Line) -> bool:
        return line.answers is not None and line.answers == next_heard

    said = (_said(row, labels) for row in record.parts(tx, chat) if _is_said(row))
    return in_one_order(heard(), said, key=lambda line: (line.at,), held=held)


def _is_heard(row: dict[str, Any]) -> bool:
    return row["kind"] != InboundKind.REMINDER and bool(row["text"])


def _is_said(row: dict[str, Any]) -> bool:
    is_copy = row["kind"] == PartKind.NOTICE and row["part"] >= FIRST_OF_EXPORT
    return row["state"] in _SEEN and bool(row["text"]) and not is_copy


def _heard(row: dict[str, Any], labels: Labels) -> _Line:
    who = labels.person or row["sender_name"] or "person"
    return _Line(row["received_at"], who, row["text"])


def _said(row: dict[str, Any], labels: Labels) -> _Line:
    who = labels.team if row["kind"] == PartKind.OPERATOR else labels.bot
    answers = row["run"] if row["kind"] in ANSWERING else None
    return _Line(row["created_at"], who, row["text"], answers)


def _written(line: _Line) -> str:
    """The line, and below it, moved in, what else was written at once."""
    stamp = f"{datetime.fromtimestamp(line.at, UTC):%Y-%m-%d %H:%M}Z"
    who = " ".join(_plain(line.who).split())
    text = _plain(line.text).replace("\n", "\n    ")
    return f"{stamp}  {who}: {text}\n"


def _plain(text: str) -> str:
    return _ACTING.sub("\ufffd", text)
