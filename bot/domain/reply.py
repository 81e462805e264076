"""The agent's reply, and the parts that a channel makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Button:
    """A choice under a message. Pressed, it comes back as a message of its own, or opens a link."""

    label: str
    """The words on it."""
    data: str = ""
    """The words that come back as `TurnMessage.button`, of any length; the label if empty."""
    url: str = ""
    """A link to open instead: then nothing comes back."""


@dataclass(frozen=True, slots=True)
class FileOut:
    """A file to send: either a public `url`, which the platform fetches, or text `content`.

    A platform that refuses the file gets the caption with the address, or the text itself.
    """

    kind: str
    """photo, document, voice, audio or video; `content` always goes as a document."""
    url: str = ""
    """An address that the platform itself can reach, by http or https."""
    content: str = ""
    """Text to send as a file, such as CSV or Markdown."""
    name: str = ""
    """The file's name, as the person sees and saves it."""
    caption: str = ""
    """Words that stand with it, in Markdown."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's whole answer to a turn: the text, then the files, the buttons under the last."""

    text: str = ""
    """Markdown; the channel renders it, and cuts what is too long for one message."""
    buttons: tuple[Button, ...] = ()
    """Choices under the last message; where a platform has none, a numbered list."""
    files: tuple[FileOut, ...] = ()
    """Files, each a message of its own."""
    silent: bool = False
    """True to say nothing at all, whatever else is given."""


class PartKind(StrEnum):
    """The purpose of an outbox row. Only `reply` and `operator` enter the agent's history."""

    REPLY = "reply"
    APOLOGY = "apology"
    NOTICE = "notice"
    OPERATOR = "operator"


ANSWERING = frozenset({PartKind.REPLY, PartKind.APOLOGY})
"""The kinds of an answer, which stands behind the messages that it is for."""


@dataclass(frozen=True, slots=True)
class PartBody:
    """One message as it goes on the wire.

    `text` is what the person reads (for history and operators); `wire` is the channel's own
    JSON, rendered once and stored, so that every attempt sends the same bytes.
    """

    text: str
    wire: str
