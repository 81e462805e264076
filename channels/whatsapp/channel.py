"""WhatsApp through Twilio as a channel: one call a send, every failure an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.domain.delivery import Lookup, NotSent, Outcome, Refused, Scope, Sent, Unknown
from bot.domain.message import Attachment, Inbound
from bot.domain.ports import Clock, Recipient, SendRef
from bot.domain.reply import PartBody, Reply
from channels.http import CallFailed, ErrorAnswer, NothingReached
from channels.whatsapp import NAME, compose, media
from channels.whatsapp.account import TwilioAccount
from channels.whatsapp.compose import Wire
from channels.whatsapp.errors import TABLE, outcome_of_code
from channels.whatsapp.parse import TwilioMessage, callback_url
from channels.whatsapp.records import DOUBTED, find
from channels.whatsapp.settings import TwilioSettings
from channels.whatsapp_common import choices
from channels.whatsapp_common.errors import retry_after_seconds
from channels.whatsapp_common.traits import TRAITS

TYPING_LIMIT = 5.0
_LOOK_PAGES = 5
_CLOSED_WINDOW = "63016"

_LOOKS = (2.0, 10.0, 30.0, 60.0, 120.0)


class WhatsAppChannel(TwilioAccount):
    """One sender, sending and fetching."""

    name = NAME
    leaves_outside = staticmethod(compose.is_template)
    fallback_of = staticmethod(compose.fallback_of)
    offered = staticmethod(choices.offered)
    choice_of = staticmethod(choices.choice_of)
    reaction = staticmethod(TABLE.reaction)
    resend_after = staticmethod(TABLE.resend_after)
    explain = staticmethod(TABLE.explain)

    def __init__(self, settings: TwilioSettings, sender: str, clock: Clock) -> None:
        super().__init__(settings, sender, clock)
        self.traits = replace(TRAITS, looks=_LOOKS, outside_window=compose.outside_window(settings))

    async def open(self) -> None:
        """Nothing is connected before the first call."""

    async def close(self) -> None:
        await self._http.close()

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        return compose.compose(reply, self.settings)

    def outside_window(self, text: str) -> PartBody | None:
        """A part for a closed window; None when no template is configured."""
        return compose.compose_template(text, self.settings)

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        """Buttons come back with their own data, and words for a choice by `choice_of`."""
        return message

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        """One create; a second one, with words and a link, only where Twilio's answer to the
        first proves that its file or content was refused."""
        try:
            wire = Wire.loads(body.wire)
        except ValueError:
            return Refused(Scope.PAYLOAD, "the stored part can't be read")
        outcome = await self._create(to, wire, ref)
        if not wire.fallback or not isinstance(outcome, Refused):
            return outcome
        if outcome.scope in (Scope.CHAT, Scope.CONSENT) or outcome.code == _CLOSED_WINDOW:
            return outcome
        return await self._create(to, Wire(body=wire.fallback), ref)

    async def _create(self, to: Recipient, wire: Wire, ref: SendRef) -> Outcome:
        base = self.settings.twilio_status_callback
        callback = callback_url(base, ref) if base else ""
        try:
            sid = await self._api.create(self.account, to.address.chat, wire, callback)
        except NothingReached as failure:
            return NotSent(f"no connection to Twilio: {failure}")
        except ErrorAnswer as answer:
            wait = retry_after_seconds(answer.retry_after, self._clock.wall())
            return outcome_of_code(answer.status, answer.code, wait)
        except CallFailed as failure:
            return Unknown(f"no answer from Twilio: {failure}")
        return Sent(sid) if sid else Unknown("Twilio's answer names no message")

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | Lookup:
        try:
            wire = Wire.loads(body.wire)
            rows = await self._sent_since(to, ref.started_at - DOUBTED)
        except (ValueError, CallFailed):
            return Lookup.CANNOT_TELL
        if rows is None:
            return Lookup.CANNOT_TELL
        return find(rows, wire, ref, owned)

    async def _sent_since(self, to: Recipient, since: float) -> list[TwilioMessage] | None:
        """The messages to this person since `since`; None when they are too much to read."""
        asked = {"To": to.address.chat, "From": self.account, "PageSize": "50"}
        page = await self._api.messages(asked)
        rows: list[TwilioMessage] = []
        for _ in range(_LOOK_PAGES):
            shown = [TwilioMessage.of(row) for row in page.rows]
            rows += shown
            if not page.next_url or any(row.created and row.created < since for row in shown):
                return rows
            page = await self._api.more(page)
        return None

    async def typing(self, to: Recipient) -> None:
        if not self.settings.twilio_typing or not to.reply_to.startswith(("SM", "MM")):
            return
        try:
            await self._api.typing(to.reply_to, TYPING_LIMIT)
        except CallFailed:
            return

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        """A button press on WhatsApp is a message like any other: nothing spins."""

    async def fetch(self, attachment: Attachment) -> bytes:
        return await media.fetch(attachment.ref, self.settings, self._http, self._clock.sleep)
