"""A number at Meta as a channel: one message a send, every failure an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bot.domain.delivery import (
    DeliveryStatus,
    Lookup,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Sent,
    Unknown,
)
from bot.domain.message import Attachment, ChatKind, Inbound
from bot.domain.ports import Clock, Recipient, SendRef
from bot.domain.reply import PartBody, Reply
from channels.http import CallFailed, NothingReached
from channels.whatsapp_cloud import NAME, compose, media
from channels.whatsapp_cloud.account import CloudNumber
from channels.whatsapp_cloud.api import GraphError
from channels.whatsapp_cloud.compose import Wire
from channels.whatsapp_cloud.errors import TABLE, outcome_of
from channels.whatsapp_cloud.parse import tag
from channels.whatsapp_cloud.settings import MetaSettings, Number
from channels.whatsapp_common import choices
from channels.whatsapp_common.errors import retry_after_seconds
from channels.whatsapp_common.traits import TRAITS

_WITNESS_WAIT = 120.0
_TYPING_EVERY = 20.0
"""Seconds; WhatsApp shows it for 25."""
_OF_THE_FORM = frozenset({"100", "131008", "131009", "131051", "131052", "131053"})
"""Codes of a refusal that may be the file's or the choices': their words may pass."""


class WhatsAppCloudChannel(CloudNumber):
    """One number, sending and fetching."""

    name = NAME
    leaves_outside = staticmethod(compose.is_template)
    fallback_of = staticmethod(compose.fallback_of)
    offered = staticmethod(choices.offered)
    choice_of = staticmethod(choices.choice_of)
    reaction = staticmethod(TABLE.reaction)
    resend_after = staticmethod(TABLE.resend_after)
    explain = staticmethod(TABLE.explain)

    def __init__(self, settings: MetaSettings, number: Number, clock: Clock) -> None:
        super().__init__(settings, number.id, number.token, clock)
        self.traits = replace(
            TRAITS,
            has_buttons=True,
            edits_overtake=True,
            typing_every=_TYPING_EVERY,
            witness_wait=_WITNESS_WAIT,
            outside_window=compose.outside_window(settings),
            pace=replace(TRAITS.pace, per_chat=1 / 6, chat_burst=45),
        )

    async def open(self) -> None:
        """Nothing is connected before the first call."""

    async def close(self) -> None:
        await self._api.close()

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        return compose.compose(reply)

    def outside_window(self, text: str) -> PartBody | None:
        """A part for a closed window; None when no template is configured."""
        return compose.compose_template(text, self.settings)

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        """Buttons come back with their own data, and words for a choice by `choice_of`."""
        return message

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        """One message; a second one, in words, only where Meta's answer to the first proves that
        its file or its choices were refused."""
        try:
            wire = Wire.loads(body.wire)
        except ValueError:
            return Refused(Scope.PAYLOAD, "the stored part can't be read")
        outcome = await self._post(to, wire, ref)
        if wire.fallback and isinstance(outcome, Refused) and outcome.code in _OF_THE_FORM:
            return await self._post(to, compose.words(wire.fallback), ref)
        return outcome

    async def _post(self, to: Recipient, wire: Wire, ref: SendRef) -> Outcome:
        content = dict(wire.content)
        if wire.upload:
            try:
                name, text = str(content["filename"]), wire.upload.encode()
                content["id"] = await self._api.upload(text, "text/plain", name)
            except CallFailed as failure:
                return _kept_out(self._failed(failure, ref))
        message: dict[str, object] = {
            **_whom(to),
            "type": wire.type,
            wire.type: content,
            "biz_opaque_callback_data": tag(ref),
        }
        try:
            receipt = await self._api.send(message)
        except CallFailed as failure:
            return self._failed(failure, ref)
        return Sent(receipt) if receipt else Unknown("Meta's answer names no message")

    def _failed(self, failure: CallFailed, ref: SendRef) -> Outcome:
        match failure:
            case NothingReached():
                return NotSent(f"no connection to Meta: {failure}")
            case GraphError(status=status, code=code):
                asked = retry_after_seconds(failure.retry_after, self.clock.wall())
                wait = failure.regain if asked is None else asked
                return outcome_of(status, code, wait, ref.attempt, self.clock.jitter())
            case _:
                return Unknown(f"no answer from Meta: {failure}")

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | Lookup:
        """Meta can't be asked for a message without its id: only a status tells."""
        return Lookup.CANNOT_TELL

    async def status(self, receipt: str) -> DeliveryStatus | None:
        """Meta reports by itself, again and again until it is heard: nothing is asked."""
        return None

    async def typing(self, to: Recipient) -> None:
        """Mark what is answered as read, and show the indicator."""
        if not self.settings.meta_typing or not to.reply_to:
            return
        try:
            await self._api.read(to.reply_to, typing=True)
        except CallFailed:
            return

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        """A button press on WhatsApp is a message like any other: nothing spins."""

    async def fetch(self, attachment: Attachment) -> bytes:
        base = self.settings.meta_api_url
        return await media.fetch(attachment.ref, base, self._api, self.clock.sleep)


def _whom(to: Recipient) -> Mapping[str, str]:
    """A person by number where that is known, else by id; a group by its id."""
    address = to.address.chat
    if to.kind is ChatKind.GROUP:
        return {"recipient_type": "group", "to": address}
    return {
        "recipient_type": "individual",
        "to" if address.startswith("+") else "recipient": address,
    }


def _kept_out(outcome: Outcome) -> Outcome:
    """The outcome of a message whose file Meta did not get: it was never sent."""
    if isinstance(outcome, Unknown):
        return NotSent(f"the file could not be handed over: {outcome.reason}", outcome.code)
    return outcome
