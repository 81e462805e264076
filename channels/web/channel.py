"""The web as a channel: a part is sent when its event is committed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.domain.clients.desk import Desk
from bot.domain.delivery import Lookup, NotSent, Outcome, Sent, Unknown
from bot.domain.errors import AttachmentUnavailable, DatabaseUnavailable
from bot.domain.message import Attachment, ChannelName, Inbound
from bot.domain.ports import STILL_OURS, Recipient, SendRef, Traits
from bot.domain.reply import PartBody, Reply
from channels.text import cleaned, is_blank, split
from channels.web.wire import part_wire

LONGEST = 50_000
"""Characters of one part."""


class WebChannel:
    """One site. Its desk is bound as the process starts: a program that only composes has none."""

    name = ChannelName("web")
    account = "site"
    # An attempt that is gone writes nothing any more, so one look, at once, tells for certain.
    traits = Traits(looks=(0.0,), has_buttons=True, followed=True)

    def __init__(self) -> None:
        self._desk: Desk | None = None

    def bind(self, desk: Desk) -> None:
        """Take the process's desk."""
        self._desk = desk

    @property
    def desk(self) -> Desk:
        """The desk, in a process that serves or sends."""
        assert self._desk is not None, "the channel has no desk"
        return self._desk

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        reply = cleaned(reply)
        texts = [] if is_blank(reply.text) else split(reply.text, LONGEST)
        if not texts and (reply.files or reply.buttons):
            texts = [""]
        return [
            PartBody(text or _named(reply), part_wire(text, reply if place == len(texts) else None))
            for place, text in enumerate(texts, 1)
        ]

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        """The label of the choice, in the place of its data."""
        for body in sent:
            for button in json.loads(body.wire or "{}").get("buttons", ()):
                if button["data"] == message.button:
                    return replace(message, text=button["label"])
        return message

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        if self._desk is None:
            return NotSent("this process has no desk for pages")
        if not STILL_OURS.get()():
            return NotSent("its holder's lease was over")
        try:
            written = await self._desk.write(ref)
        except DatabaseUnavailable as error:
            return Unknown(f"whether it was committed is not known: {error}")
        return Sent(_receipt(ref)) if written else NotSent("the attempt was over")

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | NotSent | Lookup:
        try:
            written = await self.desk.written(ref)
        except DatabaseUnavailable:
            return Lookup.CANNOT_TELL
        return Sent(_receipt(ref)) if written else NotSent("its attempt wrote nothing")

    async def typing(self, to: Recipient) -> None:
        """Tell those who follow that it is worked on."""

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        """The answer to the request says it."""

    async def fetch(self, attachment: Attachment) -> bytes:
        try:
            content = await self.desk.attachment(attachment.ref)
        except DatabaseUnavailable as error:
            raise AttachmentUnavailable("the file can't be read now") from error
        if content is None:
            raise AttachmentUnavailable("the file is not kept any more")
        return content


def _receipt(ref: SendRef) -> str:
    """Of the part, whichever attempt wrote it: there is one event for it."""
    return f"part-{ref.part}"


def _named(reply: Reply) -> str:
    """A part without words, in words."""
    names = [f.caption or f.name or f.kind for f in reply.files]
    return ", ".join([*names, *(b.label for b in reply.buttons)])
