"""The account itself: its records, its sender's webhook, its credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from bot.domain.delivery import DeliveryStatus
from bot.domain.errors import ConfigurationError
from bot.domain.message import Inbound, shortened
from bot.domain.plugin import Known
from bot.domain.ports import Clock
from channels.http import CallFailed, ErrorAnswer
from channels.raw import Raw, obj, string
from channels.whatsapp import records
from channels.whatsapp.api import TwilioApi, TwilioHttp
from channels.whatsapp.parse import TwilioMessage, delivery_status_of
from channels.whatsapp.records import TwilioUnavailable
from channels.whatsapp.settings import SANDBOX_SENDER, TwilioSettings

RETRIES = "#rc=5&rp=all&ct=1500&rt=4000&tt=15000"
"""Connection overrides: by itself Twilio tries a webhook once more, and only when it could
not connect. All tries fit in 15 seconds, so this bridges a restart and not an outage."""


@dataclass(frozen=True, slots=True)
class WebhookInfo:
    """A sender as Twilio has it. `retried` says that our connection overrides are on its URL."""

    status: str
    callback_url: str

    @property
    def retried(self) -> bool:
        return "rc=" in self.callback_url.partition("#")[2]


class TwilioAccount:
    """One sender and the account that it belongs to."""

    def __init__(self, settings: TwilioSettings, sender: str, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self.account = sender
        self._http = TwilioHttp(settings.twilio_timeout)
        self._api = TwilioApi(settings, self._http)

    @property
    def sandbox(self) -> bool:
        """Tell whether this is Twilio's shared number."""
        return self.account == SANDBOX_SENDER

    async def status(self, receipt: str) -> DeliveryStatus | None:
        """Ask where a part of ours stands by Twilio's records; None when they can't be read."""
        try:
            return delivery_status_of(TwilioMessage.of(await self._api.message(receipt)))
        except CallFailed:
            return None

    def inbound_since(self, since: datetime, known: Known) -> AsyncIterator[Inbound]:
        """The messages since `since` that are not known; see `records.inbound_since`."""
        return records.inbound_since(self._api, self.account, since, known)

    async def webhook_info(self) -> WebhookInfo:
        """Our sender's webhook as Twilio has it. Raises TwilioUnavailable, and
        ConfigurationError when the account has no such sender."""
        row = await self._sender()
        return WebhookInfo(string(row, "status"), string(obj(row, "webhook"), "callback_url"))

    async def webhook_set(self, url: str, fallback: str = "", status: str = "") -> None:
        """Point our sender at these URLs, an empty one at nothing; the overrides are added to
        a URL that brings none of its own. Raises as `webhook_info`."""
        row = await self._sender()
        webhook = {
            "callback_url": _with_retries(url),
            "callback_method": "POST",
            "fallback_url": _with_retries(fallback),
            "fallback_method": "POST",
            "status_callback_url": _with_retries(status),
            "status_callback_method": "POST",
        }
        try:
            await self._api.update_webhook(string(row, "sid"), webhook)
        except CallFailed as failure:
            raise TwilioUnavailable(f"the webhook is not set: {failure}", failure) from None

    async def _sender(self) -> Raw:
        if self.sandbox:
            raise ConfigurationError(
                "the sandbox has no webhook that can be set from here: in Twilio's console, under "
                "Messaging, Try it out, Sandbox settings, enter the URL of /whatsapp/webhook"
            )
        try:
            rows = await self._api.senders()
        except CallFailed as failure:
            said = f"the senders can't be read: {failure}"
            if isinstance(failure, ErrorAnswer) and failure.status == 404:
                raise ConfigurationError(f"{said}; see the webhook in the console") from None
            raise TwilioUnavailable(said, failure) from None
        for row in rows:
            if row.get("sender_id") == self.account:
                return row
        raise ConfigurationError(
            f"{shortened(self.account)} of TWILIO_WHATSAPP_FROM is not a WhatsApp sender of this "
            "account"
        )

    async def clock_ahead(self) -> float | None:
        """Seconds by which our clock is ahead of Twilio's, as its answer to our credentials
        tells; None when it tells no time. Raises TwilioUnavailable."""
        try:
            theirs = await self._api.now(self.account)
        except CallFailed as failure:
            raise TwilioUnavailable(f"Twilio refuses the account: {failure}", failure) from None
        return None if theirs is None else self._clock.wall() - theirs


def _with_retries(url: str) -> str:
    return url + RETRIES if url and "#" not in url else url
