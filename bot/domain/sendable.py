"""The gate before a send: one table for a run's parts and for standalone ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.delivery import Scope
from bot.domain.ending import Cause, Close, Ending


@dataclass(frozen=True, slots=True)
class ChatDoor:
    """The chat's side of the gate. Times in epoch seconds.

    `held_until` is when the platform's own limit of the chat ends; `unreachable` is why nothing
    reaches the chat; `window_open` says that the platform takes free text now.
    """

    paused_until: float | None = None
    held_until: float = 0.0
    unreachable: str = ""
    opted_out: bool = False
    window_open: bool = True


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The part's side of it. `own_notice` is one that belongs to no run, such as the
    confirmation of an opt-out: the last that leaves. The age of a run's parts is judged with
    the run, so `posted_at` is for standalone ones."""

    standalone: bool
    own_notice: bool = False
    posted_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Not now. `until` in epoch seconds; None: until an operator resumes the chat."""

    until: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Never. `end` is that of a run whose part this is."""

    scope: Scope
    end: Close


def sendable(
    part: Outgoing, chat: ChatDoor, now: float, answer_max_age: float
) -> Hold | Forbidden | None:
    """The reason that keeps the part from leaving now; None when nothing does.

    An operator pauses the runs of a chat to speak there: standalone parts go on.
    """
    paused = chat.paused_until is not None and chat.paused_until > now
    if paused and not part.standalone:
        return Hold(None, "the chat is paused")
    if chat.held_until > now:
        return Hold(chat.held_until, "the platform limits this chat")
    if chat.opted_out and not part.own_notice:
        return _forbidden(Scope.CONSENT, Cause.OPTED_OUT)
    if chat.unreachable:
        return _forbidden(Scope.CHAT, Cause.UNREACHABLE, chat.unreachable)
    if not chat.window_open:
        return _forbidden(Scope.WINDOW, Cause.WINDOW_CLOSED)
    if part.standalone and now - part.posted_at > answer_max_age:
        return _forbidden(Scope.PAYLOAD, Cause.TOO_OLD, "too old to be worth sending")
    return None


def _forbidden(scope: Scope, cause: Cause, detail: str = "") -> Forbidden:
    return Forbidden(scope, Close(Ending.UNDELIVERABLE, cause, detail))
