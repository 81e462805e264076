"""Delivery: the states of a part, the outcomes of a send, and later reports on it."""

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
"""States in which the person may have the part: it was not proven that it did not leave."""


class Scope(Enum):
    """The reach of a refusal."""

    PAYLOAD = "payload"
    """This message only; the chat goes on."""
    WINDOW = "window"
    """Free text is not allowed until the person writes again."""
    CHAT = "chat"
    """Nothing reaches this chat: it is parked until something changes there."""
    CONSENT = "consent"
    """The person opted out: nothing is sent until they opt in again."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider accepted it. `receipt` is its id for the message, empty if it gave none."""

    receipt: str


class LimitOf(Enum):
    """The owner of a rate limit that was reached."""

    ACCOUNT = auto()
    CHAT = auto()
    UNTOLD = auto()
    """The platform does not say. If several chats are refused at once, it is the account's."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proven not to have been sent: the same part may be sent again.

    `retry_after` is the wait that the provider named, in seconds. `limited` is set if a rate limit
    was reached. `moved_to` is set if the chat has this new address.
    """

    reason: str
    code: str = ""
    retry_after: float | None = None
    limited: LimitOf | None = None
    moved_to: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Rejected for good, within this scope."""

    scope: Scope
    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class ChannelDown:
    """The account itself can't send (token, sender, configuration). The part is kept."""

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
    """A provider's report on a part after it accepted it: a status callback, or from its list.

    `part`, `attempt` and `began` (the attempt's start, in epoch seconds) are our own, if the report
    carries them, else 0. `state` is None if the report changes nothing that we store.
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
    """The state of the chat, as far as `sendable` depends on it. Times are in epoch seconds.

    `held_until` is when the rate limit ends that the platform refused a message for. `unreachable`
    is why nothing reaches the chat. `window_open`: the platform accepts free text now. `down`: the
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
    """The part, as far as `sendable` depends on it. `own_notice`: a notice that belongs to no run,
    such as the confirmation of an opt-out, which still leaves. `posted_at` is for standalone parts,
    the time at which it was posted or last asked for: the age of a run's parts is judged with the
    run."""

    standalone: bool
    own_notice: bool = False
    posted_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """The part may leave later: from `until` on, in epoch seconds. None: once an operator resumes
    the chat, or the account is up again."""

    until: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The part may never leave. `end` is the end of its run, if it is a part of one."""

    scope: Scope
    end: Close


DOWN = "the channel is down"


def sendable(
    part: Outgoing, chat: ChatDoor, now: float, answer_max_age: float
) -> Hold | Forbidden | None:
    """The reason why the part may not leave now; None if it may.

    A pause holds back the parts of runs only: an operator pauses a chat in order to write there.
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
