"""Delivery: the states of a part, the outcome of a send, and later news of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from bot.domain.ending import Cause, Close, Ending


class PartState(StrEnum):
    """A part's way out: pending -> sending -> sent -> delivered -> read, or an exit.

    `pending` waits for its turn (mark_sending moves it on); `sending` is committed before
    the provider is called; `uncertain` may have arrived and is not sent again unasked;
    `refused` was rejected for ever; `dropped` was withdrawn before it was sent.
    """

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    UNCERTAIN = "uncertain"
    REFUSED = "refused"
    DROPPED = "dropped"


ARRIVED = frozenset({PartState.SENT, PartState.DELIVERED, PartState.READ})
"""States that carry a receipt."""
MAY_BE_SHOWN = ARRIVED | {PartState.SENDING, PartState.UNCERTAIN}
"""States in which the person may have the part; one that was proven not to leave is in none."""


class Scope(Enum):
    """The reach of a refusal: all that stops with it."""

    PAYLOAD = "payload"
    """This message only; the chat goes on."""
    WINDOW = "window"
    """Free text is not allowed now; the chat goes on when the person writes again."""
    CHAT = "chat"
    """Nothing reaches this chat until something changes there: park it."""
    CONSENT = "consent"
    """The person asked for silence: nothing is sent until they ask for messages again."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider took it and named it. `receipt` is its id (may be empty if it told none)."""

    receipt: str


class LimitOf(Enum):
    """The one whose rate limit was reached."""

    ACCOUNT = auto()
    CHAT = auto()
    UNTOLD = auto()
    """The platform does not tell: several chats at once show that it is the account's."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proven not to have been sent: the same part may go again.

    `retry_after` in seconds when the provider named a wait; `limited` says whose rate limit was
    reached, if that is why; `moved_to` is the chat's new address when that is.
    """

    reason: str
    code: str = ""
    retry_after: float | None = None
    limited: LimitOf | None = None
    moved_to: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Rejected for ever, in the named scope."""

    scope: Scope
    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class ChannelDown:
    """The account itself can't send (token, sender, configuration). The outbox is kept."""

    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may or may not have arrived: time-out, disconnect, 5xx, cancellation, crash."""

    reason: str
    code: str = ""


Outcome = Sent | NotSent | Refused | ChannelDown | Unknown


class Lookup(Enum):
    """The answer of a provider's records about an uncertain part, where it is not `Sent`."""

    NOT_FOUND = "not_found"
    CANNOT_TELL = "cannot_tell"


class LateRefusal(Enum):
    """The reaction to a provider's late refusal of a message that it had taken."""

    PERMANENT_CHAT = "permanent_chat"
    """Nothing reaches this person until they write again."""
    PERMANENT_PAYLOAD = "permanent_payload"
    """This message can't be delivered in this form."""
    WINDOW = "window"
    """Free text is closed: a template, or an answer when the person writes again."""
    OPTED_OUT = "opted_out"
    """The person asked the platform for silence."""
    RESEND_ONCE = "resend_once"
    """Reported as not delivered, so one more send can't double it."""
    ACCOUNT_DOWN = "account_down"
    """The account can't send anything: what was refused waits until it can."""
    CONFIGURATION = "configuration"
    """Something that this message needs at the provider is to be put right by the operator."""
    NONE = "none"
    """A warning: the provider goes on by itself."""
    UNKNOWN = "unknown"
    """Failed for a reason that we do not know: listed, never sent again."""


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """A provider's later word on a part: a status callback or a look at its list.

    `part`, `attempt` and `began` (the attempt's start, epoch seconds) are ours when the
    report carries them (0 when it does not); `state` is None when the word changes nothing
    that we keep.
    """

    receipt: str
    state: PartState | None
    provider_status: str
    part: int = 0
    attempt: int = 0
    code: str = ""
    began: float = 0.0


@dataclass(frozen=True, slots=True)
class ChatDoor:
    """The chat's side of the gate. Times in epoch seconds.

    `held_until` is when the platform's own limit of the chat ends; `unreachable` is why nothing
    reaches the chat; `window_open` says that the platform takes free text now, `down` that the
    account can't send at all.
    """

    paused_until: float | None = None
    held_until: float = 0.0
    unreachable: str = ""
    opted_out: bool = False
    window_open: bool = True
    down: bool = False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The part's side of it. `own_notice` is one that belongs to no run, such as the
    confirmation of an opt-out: the last that leaves. The age of a run's parts is judged with
    the run, so `posted_at` is for standalone ones: when it was posted, or wanted once more."""

    standalone: bool
    own_notice: bool = False
    posted_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Not now. `until` in epoch seconds; None: until an operator resumes the chat, or the account
    is up again."""

    until: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Never. `end` is that of a run whose part this is."""

    scope: Scope
    end: Close


DOWN = "the channel is down"


def sendable(
    part: Outgoing, chat: ChatDoor, now: float, answer_max_age: float
) -> Hold | Forbidden | None:
    """The reason that keeps the part from leaving now; None when nothing does.

    An operator pauses the runs of a chat to speak there: standalone parts go on.
    """
    paused = chat.paused_until is not None and chat.paused_until > now
    if paused and not part.standalone:
        return Hold(None, "the chat is paused")
    if chat.down:
        return Hold(None, DOWN)
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
