"""The agent's reply, and the parts that a channel makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Button:
    """A choice under a message. `data` comes back as an inbound message when it is pressed."""

    label: str
    data: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class FileOut:
    """A file to send: a public `url`, or text `content` to send as a document.

    `kind` is one of photo, document, voice, audio, video.
    """

    kind: str
    url: str = ""
    content: str = ""
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's whole answer to a turn. `text` is Markdown; the channel renders it."""

    text: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[FileOut, ...] = ()
    silent: bool = False


class PartKind(StrEnum):
    """The purpose of an outbox row. Only `reply` and `operator` enter the agent's history."""

    REPLY = "reply"
    APOLOGY = "apology"
    NOTICE = "notice"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class PartBody:
    """One message as it goes on the wire.

    `text` is what the person reads (for history and operators); `wire` is the channel's own
    JSON, rendered once and stored, so that every attempt sends the same bytes.
    """

    text: str
    wire: str
