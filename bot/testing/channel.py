"""A platform of people in a test: it keeps what each of them was sent, and fails to order."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import assert_never

from bot.domain.delivery import Lookup, NotSent, Outcome, Refused, Scope, Sent, Unknown
from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import Attachment, ChannelName, Inbound
from bot.domain.ports import Recipient, SendRef, Traits
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.text import is_blank

NAME = ChannelName("testing")


class Fault(Enum):
    """The way in which one send fails."""

    ARRIVED_UNKNOWN = "it arrives, and the answer that says so is lost"
    LOST_UNKNOWN = "it is lost, and no answer says so"
    NOT_NOW = "the platform says that it did not take it"
    REFUSED = "the platform refuses this message for ever"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as a person gets it. `text` is what the agent wrote, Markdown and all, or what
    stands under a file."""

    text: str
    buttons: tuple[Button, ...] = ()
    files: tuple[FileOut, ...] = ()


@dataclass
class FakeChannel:
    """One account. It outlives the processes that send through it."""

    messages: defaultdict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    """By chat, oldest first."""
    toasts: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The words shown over buttons, by chat."""
    faults: deque[Fault] = field(default_factory=deque)
    uploads: dict[str, bytes] = field(default_factory=dict)
    """The files that people sent, by the reference of the attachment."""
    name = NAME
    account = "bot"
    traits = Traits(has_buttons=True)

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        shown = [Message(one.caption, files=(one,)) for one in reply.files]
        if reply.buttons or not is_blank(reply.text):
            shown.insert(0, Message(reply.text, reply.buttons))
        return [PartBody(_words(message), json.dumps(asdict(message))) for message in shown]

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        """A press says itself what it stands for."""
        return message

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        fault = self.faults.popleft() if self.faults else None
        if fault is None or fault is Fault.ARRIVED_UNKNOWN:
            self.messages[to.address.chat].append(_message(body.wire))
        match fault:
            case None:
                return Sent(f"receipt-{ref.part}-{ref.attempt}")
            case Fault.ARRIVED_UNKNOWN | Fault.LOST_UNKNOWN:
                return Unknown("the test lost the answer")
            case Fault.NOT_NOW:
                return NotSent("the test said: not now")
            case Fault.REFUSED:
                return Refused(Scope.PAYLOAD, "the test refused it")
            case other:
                assert_never(other)

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | Lookup:
        """As Telegram, it has no list of what it took."""
        return Lookup.CANNOT_TELL

    async def typing(self, to: Recipient) -> None:
        """Nobody in a test looks at it."""

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        if text:
            self.toasts[callback_id.rpartition(":")[0]].append(text)

    async def fetch(self, attachment: Attachment) -> bytes:
        if attachment.ref not in self.uploads:
            raise AttachmentUnavailable("the test has no such file")
        return self.uploads[attachment.ref]


def _words(message: Message) -> str:
    return message.text or " ".join(file.name or file.kind for file in message.files)


def _message(wire: str) -> Message:
    said = json.loads(wire)
    buttons = tuple(Button(**button) for button in said["buttons"])
    return Message(said["text"], buttons, tuple(FileOut(**file) for file in said["files"]))
