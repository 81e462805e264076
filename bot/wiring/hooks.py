"""The webhook routes of the platforms, made of their pure functions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from bot.domain.message import Event, PayloadError, clean
from bot.flows.runtime import Runtime
from bot.flows.witnesses import testify
from bot.webhooks import NotReadable, Posted
from bot.wiring.telegram import TelegramUpdates
from channels.telegram.verify import secret_matches
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.parse import parse, parse_status
from channels.whatsapp.verify import signature_matches
from storage.wakeup import READY, part_topic

TELEGRAM_PATH = "/telegram/webhook"
WHATSAPP_PATH = "/whatsapp/webhook"
WHATSAPP_FALLBACK_PATH = "/whatsapp/fallback"
WHATSAPP_STATUS_PATH = "/whatsapp/status"
_SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - a header's name
_EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'


@dataclass(frozen=True, slots=True)
class TelegramHook:
    """Where Telegram posts updates."""

    account: int
    updates: TelegramUpdates
    secret: str = field(repr=False)
    path: str = TELEGRAM_PATH
    channel: str = "telegram"
    content_type: str = "text/plain"
    acknowledgement: str = ""

    def authentic(self, posted: Posted) -> bool:
        return secret_matches(posted.headers.get(_SECRET_HEADER), self.secret)

    def text(self, posted: Posted) -> str:
        """The body as it came. Raises NotReadable when it is not JSON: Telegram sends
        nothing else, so something between it and us broke it."""
        _json(posted.body)
        return clean(posted.body.decode("utf-8", "replace"))

    def events(self, posted: Posted) -> tuple[Event, ...]:
        update = _json(posted.body)
        if not isinstance(update, dict):
            raise PayloadError("an update is an object")
        return self.updates.parse(update)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotReadable("the body is not JSON") from error


@dataclass(frozen=True, slots=True)
class Signed:
    """What Twilio's webhooks have in common: forms, signed for our public address."""

    sender: WhatsAppChannel
    public_url: str
    path: str
    content_type: str = "text/xml"
    acknowledgement: str = _EMPTY_TWIML

    def authentic(self, posted: Posted) -> bool:
        url = self.public_url + posted.target
        try:
            pairs = form_pairs(posted.body)
        except NotReadable:
            return False
        return signature_matches(url, pairs, posted.headers, self.sender.config)

    def form(self, posted: Posted) -> dict[str, str]:
        """The fields; of a name that comes twice the first value counts."""
        return dict(reversed(form_pairs(posted.body)))


def form_pairs(body: bytes) -> list[tuple[str, str]]:
    """Every field as it came, blank ones included. Raises NotReadable."""
    try:
        return parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="replace",
            max_num_fields=1000,
        )
    except ValueError as error:
        raise NotReadable("the body is not a form") from error


@dataclass(frozen=True, slots=True)
class WhatsAppHook(Signed):
    """Where Twilio posts messages; the fallback path takes the same."""

    account: int = 0
    channel: str = "whatsapp"

    def text(self, posted: Posted) -> str:
        form_pairs(posted.body)
        return posted.body.decode("ascii")

    def events(self, posted: Posted) -> tuple[Event, ...]:
        return parse(self.form(posted), self.sender.account)


@dataclass(frozen=True, slots=True)
class WhatsAppStatusHook(Signed):
    """Where Twilio posts what became of a message of ours."""

    rt: Runtime | None = None
    account: int = 0

    async def take(self, posted: Posted) -> None:
        witness = parse_status(self.form(posted), posted.query)
        assert self.rt is not None
        part = await self.rt.db.write(testify, self.account, witness, self.sender)
        if part is not None:
            self.rt.wakeups.tell(part_topic(part))
            self.rt.wakeups.tell(READY)
