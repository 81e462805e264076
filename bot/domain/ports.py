"""Ports: the protocols of clock and channel, and the values that they exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bot.domain.commands import CommandForm
from bot.domain.delivery import DeliveryStatus, LateRefusal, Lookup, NotSent, Outcome, Sent
from bot.domain.message import Address, Attachment, ChannelName, ChatKind, Inbound
from bot.domain.reply import Button, PartBody, Reply

UNKNOWN_BOOT = "unknown-boot"
"""The boot id of a system that tells none: one name for all its boots."""


class Clock(Protocol):
    """The only source of time and chance."""

    def wall(self) -> float:
        """Epoch seconds of this machine. Never used to judge a lease."""

    def monotonic(self) -> float:
        """Seconds that only go up while the process lives; also counts time spent stopped."""

    def boot(self) -> tuple[str, float]:
        """This machine's boot id and the seconds since that boot, suspended time included."""

    def jitter(self) -> float:
        """A number in [0, 1)."""

    def token(self) -> str:
        """A fresh random name, 32 hex digits."""

    async def sleep(self, seconds: float) -> None:
        """Return after this many seconds."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A chat as a channel sends to it: its current address, and the message that is answered.

    `reply_to` is the provider's id of the message that is answered, empty for none.
    """

    address: Address
    kind: ChatKind
    reply_to: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class SendRef:
    """Our name for one attempt to send one part. It is sent along if the provider allows that.

    `started_at` is when the attempt was committed, in epoch seconds of the database's clock.
    """

    part: int
    attempt: int
    started_at: float


def _always() -> bool:
    return True


STILL_OURS: ContextVar[Callable[[], bool]] = ContextVar("still_ours", default=_always)
"""A check that the holder that marked the part still has its lease. It is set in the task that
calls `Channel.send`. The channel asks once more when it has its connection, before the first byte
leaves, so that nothing leaves after the lease, however long connecting took."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed at which an account may send. None means that the platform sets no such limit.

    `per_chat` and `overall` are messages a second; `per_group_minute` messages a minute.
    `chat_burst` messages may leave at once in a chat that was at rest.
    """

    per_chat: float | None = None
    chat_burst: int = 1
    overall: float | None = None
    per_group_minute: float | None = None


class OutsideWindow(Enum):
    """The words that an account may send while free text is forbidden."""

    NOTHING = "nothing"
    INVITATION = "an invitation to write again"
    ANSWER = "the answer itself, in a template"


_ANY_FILE = 100_000_000


@dataclass(frozen=True, slots=True)
class Traits:
    """The abilities of a platform, as far as the program depends on them.

    `free_text_window` is the seconds after a person's last message in which free text may be
    sent (None: always). `looks` are the seconds after an uncertain attempt at which the
    provider's list is asked; empty means that the provider can't tell. `witness_wait` is the time,
    in seconds while some process can receive statuses, for which a status is waited for instead.
    `ordered`: parts that are sent one after the other arrive in that order, without waiting for a
    status in between. `has_buttons`: a choice can be offered as a button. `commands` is the form in
    which people give commands. `followed`: clients can follow what becomes of a message.
    `edits_overtake`: an edit may come before its message. `file_limits` are the largest files that
    are fetched, in bytes, by kind.
    """

    free_text_window: float | None = None
    looks: tuple[float, ...] = ()
    witness_wait: float = 0.0
    ordered: bool = True
    has_buttons: bool = False
    followed: bool = False
    edits_overtake: bool = False
    commands: CommandForm = CommandForm.TYPED
    outside_window: OutsideWindow = OutsideWindow.NOTHING
    typing_every: float | None = None
    pace: Pace = Pace()
    file_limits: tuple[tuple[str, int], ...] = ()

    def largest_file(self, kind: str) -> int:
        """The largest file of this kind that the platform fetches, in bytes."""
        return dict(self.file_limits).get(kind, _ANY_FILE)


class Channel(Protocol):
    """One account on one platform. `send` never tries again by itself, and never raises."""

    @property
    def name(self) -> ChannelName: ...

    @property
    def account(self) -> str:
        """The bot identity: Telegram's bot id, Twilio's sender address, `local`."""

    @property
    def traits(self) -> Traits: ...

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        """Render and split a reply into parts, in order. Pure. Empty when nothing is visible."""

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        """The message with the data of the button that was pressed in it, found in parts that
        were sent to its chat, the likeliest first. Pure; reads `sent` only as far as necessary."""

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        """Call the provider once. Every failure comes back as an outcome; only
        `CancelledError` is raised, and then the outcome is unknown."""

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | NotSent | Lookup:
        """Ask the provider whether the attempt arrived. `owned` are receipts of other parts.
        `NotSent` where it tells for certain that it did not, and that it never will."""

    async def typing(self, to: Recipient) -> None:
        """Show that an answer is being made. Best effort; never raises."""

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        """Answer a button press, so that its spinner ends. Best effort; never raises."""

    async def fetch(self, attachment: Attachment) -> bytes:
        """An attachment's bytes. Raises AttachmentUnavailable with a reason for the person."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


class ReportingChannel(Protocol):
    """The second side of a channel whose platform accepts a message first and reports on it
    later, and shows choices as text."""

    async def status(self, receipt: str) -> DeliveryStatus | None:
        """A part's status, from the platform's records; None if they can't be read."""

    def reaction(self, code: str) -> LateRefusal:
        """The reaction to a late refusal with this code."""

    def resend_after(self, code: str) -> float:
        """Seconds to wait before a part is sent once more after RESEND_ONCE."""

    def explain(self, code: str) -> str:
        """A late refusal in words for the operator."""

    def fallback_of(self, body: PartBody) -> PartBody | None:
        """The part in a plainer form, for one whose file or content was refused; or None."""

    def outside_window(self, text: str) -> PartBody | None:
        """`text` in the form that may leave in a closed window; None when there is none."""

    def leaves_outside(self, body: PartBody) -> bool:
        """Tell whether this part is in that form."""

    def offered(self, parts: Sequence[PartBody]) -> str:
        """The choices that these parts offer as text, for `choice_of`; empty if none."""

    def choice_of(self, offered: str, text: str) -> Button | None:
        """The choice that a person's words name, by number or by label; or None."""
