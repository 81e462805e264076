"""Telegram as a channel: a send is one call without retries, and every failure is an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from telegram import InputFile
from telegram.error import TelegramError

from bot.domain.commands import CommandForm
from bot.domain.delivery import Lookup, NotSent, Outcome, Refused, Scope, Sent
from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import Address, Attachment, ChatKind, Inbound
from bot.domain.plugin import Host
from bot.domain.ports import Pace, Recipient, SendRef, Traits
from bot.domain.reply import PartBody, Reply
from channels.raw import integer, string
from channels.telegram import NAME
from channels.telegram.account import TelegramAccount
from channels.telegram.api import Rejected
from channels.telegram.compose import Wire, compose, full_data
from channels.telegram.errors import TOPIC_GONE, about_entities, outcome_of, unknown_method
from channels.telegram.settings import TelegramSettings

FILE_LIMIT = 20 * 1024 * 1024
"""Bytes of the largest file that Telegram hands out to bots."""

_TRAITS = Traits(
    has_buttons=True,
    commands=CommandForm.MARKED,
    typing_every=4.0,
    pace=Pace(per_chat=1, overall=30, per_group_minute=20),
    file_limits=(("photo", 5_000_000), ("document", 20_000_000), ("audio", 20_000_000)),
)
_GENERAL_TOPIC = "1"
_DRAFT_ID = 1
_DRAFT_EVERY = 20.0
"""Seconds; Telegram shows a draft for 30."""
_BRIEF = 5.0
"""Seconds to wait for the answer to a call that is only decoration, such as typing."""
_NOTICE_LIMIT = 200


class TelegramChannel(TelegramAccount):
    """One bot, sending and fetching."""

    name = NAME
    traits = _TRAITS

    def __init__(self, settings: TelegramSettings, host: Host) -> None:
        super().__init__(settings)
        self._host = host
        self._opened = False
        self._drafts = True
        self._drafted: dict[Address, float] = {}

    async def open(self) -> None:
        for pool in self._api.pools:
            await pool.initialize()
        self._opened = True

    async def close(self) -> None:
        self._opened = False
        for pool in self._api.pools:
            await pool.shutdown()

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        over_file = self._host.long_reply(to.language)
        return compose(reply, to, self.settings.max_parts, over_file)

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        data = full_data(message.button, (body.wire for body in sent))
        if data == message.button:
            return message
        text = data if message.text == message.button else message.text
        return replace(message, button=data, text=text)

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        """Send a part. If Telegram refuses its form, a plainer one follows at once (without a topic
        that is gone, or without formatting), since the refused call showed nothing."""
        if not self._opened:
            return NotSent("the channel is closed")
        try:
            wire = Wire.decode(body.wire)
        except ValueError:
            return Refused(Scope.PAYLOAD, "the stored message can't be read")
        address = to.address
        outcome = await self._send_once(address, wire)
        if isinstance(outcome, Refused) and outcome.code == TOPIC_GONE and address.topic:
            address = Address(address.chat)
            outcome = await self._send_once(address, wire.unquoted())
        plain = wire.plainest()
        if plain is None or not isinstance(outcome, Refused) or outcome.scope is not Scope.PAYLOAD:
            return outcome
        if about_entities(outcome) or wire.params != plain.params:
            return await self._send_once(address, plain)
        return outcome

    async def _send_once(self, address: Address, wire: Wire) -> Outcome:
        kept = wire if wire.chat in ("", address.chat) else wire.unquoted()
        params = {**kept.params, **_place(address)}
        files: dict[str, InputFile] = {}
        if (upload := wire.upload) is not None:
            files[upload.field] = InputFile(upload.content.encode(), upload.name)
        try:
            result = await self._api.call(wire.method, params, files)
        except TelegramError as error:
            if unknown_method(error, wire.method):
                return Refused(Scope.PAYLOAD, f"this Bot API has no {wire.method}", "404")
            return outcome_of(error)
        self._drafted.pop(address, None)
        number = integer(result, "message_id") if isinstance(result, dict) else None
        return Sent(str(number) if number else "")

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | Lookup:
        """Can't tell: a bot has no way to see what it has sent."""
        return Lookup.CANNOT_TELL

    async def typing(self, to: Recipient) -> None:
        if to.kind is ChatKind.BROADCAST or not self._opened:
            return
        where = _place(to.address)
        await self._decorate("sendChatAction", {**where, "action": "typing"})
        if to.kind is ChatKind.PRIVATE and self._drafts and self._draft_due(to.address):
            draft = {**where, "draft_id": _DRAFT_ID, "text": ""}
            self._drafts = await self._decorate("sendMessageDraft", draft)

    def _draft_due(self, address: Address) -> bool:
        now = self._host.clock.monotonic()
        self._drafted = {a: at for a, at in self._drafted.items() if now - at < _DRAFT_EVERY}
        if address in self._drafted:
            return False
        self._drafted[address] = now
        return True

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        params: dict[str, object] = {"callback_query_id": callback_id}
        if text:
            params["text"] = text[:_NOTICE_LIMIT]
        await self._decorate("answerCallbackQuery", params)

    async def _decorate(self, method: str, params: dict[str, object]) -> bool:
        """Make a call whose failure does not matter. False: this server lacks the method."""
        try:
            await self._api.call(method, params, read_timeout=_BRIEF)
        except Rejected as error:
            return error.status != 404
        except TelegramError:
            return True
        return True

    async def fetch(self, attachment: Attachment) -> bytes:
        """Fetch the file by a fresh link, since Telegram's links expire after an hour."""
        too_big = "the file is larger than the 20 MB that Telegram gives to bots"
        if attachment.size is not None and attachment.size > FILE_LIMIT:
            raise AttachmentUnavailable(too_big)
        try:
            found = await self._api.call("getFile", {"file_id": attachment.ref})
            path = string(found, "file_path") if isinstance(found, dict) else ""
            if not path:
                raise AttachmentUnavailable("Telegram gave no link to the file")
            return await self._api.download(path)
        except Rejected as error:
            big = "file is too big" in error.description.lower()
            raise AttachmentUnavailable(
                too_big if big else "Telegram does not have the file (any more)"
            ) from error
        except TelegramError as error:
            raise AttachmentUnavailable("the file could not be fetched from Telegram") from error


def _place(address: Address) -> dict[str, object]:
    """The chat and topic as parameters. The general topic is addressed by leaving the topic out."""
    where: dict[str, object] = {"chat_id": _number(address.chat)}
    if address.topic and address.topic != _GENERAL_TOPIC:
        where["message_thread_id"] = _number(address.topic)
    return where


def _number(name: str) -> int | str:
    digits = name.removeprefix("-")
    return int(name) if digits.isascii() and digits.isdigit() else name
