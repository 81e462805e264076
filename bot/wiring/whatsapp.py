"""A WhatsApp sender of ours: its channel and its webhooks, made of their pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from bot.delivery.status import hear
from bot.domain.message import Event
from bot.domain.ports import Clock
from bot.http import NotReadable, Posted
from bot.intake.accept import in_time
from bot.leases.runtime import Runtime
from bot.settings import Settings
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.config import TwilioConfig, sender_address
from channels.whatsapp.parse import parse, parse_status
from channels.whatsapp.verify import signature_matches

WHATSAPP_PATH = "/whatsapp/webhook"
WHATSAPP_FALLBACK_PATH = "/whatsapp/fallback"
WHATSAPP_STATUS_PATH = "/whatsapp/status"
_EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'


def whatsapp_channel(settings: Settings, clock: Clock) -> WhatsAppChannel:
    """The sender's channel, not yet open."""
    config = TwilioConfig(
        account_sid=settings.twilio_account_sid,
        auth_token=settings.twilio_auth_token,
        sender=sender_address(settings.twilio_whatsapp_from),
        api_url=settings.twilio_api_url,
        status_callback=settings.public_url + WHATSAPP_STATUS_PATH,
        second_auth_token=settings.twilio_second_auth_token,
        shared_key=settings.twilio_shared_key,
        template_sid=settings.twilio_template_sid,
        template_variables=settings.twilio_template_variables,
        choice_templates=settings.twilio_choice_templates,
        typing=settings.twilio_typing,
        total_timeout=settings.twilio_timeout,
    )
    return WhatsAppChannel(config, clock)


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
        async with in_time():
            await hear(self.rt, self.account, witness)
