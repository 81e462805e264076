"""Where Twilio sends what people write: the webhook of one WhatsApp sender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.errors import ConfigurationError
from channels.whatsapp.api import Resource, TwilioApi
from channels.whatsapp.settings import TwilioConfig

RETRIES = "#rc=5&rp=all&ct=1500&rt=4000&tt=15000"
"""Connection overrides: by itself Twilio tries a webhook once more, and only when it could
not connect. All tries fit in 15 seconds, so this bridges a restart and not an outage."""


@dataclass(frozen=True, slots=True)
class WebhookInfo:
    """A sender as Twilio has it. `retried` says that our connection overrides are on its URL."""

    sender: str
    status: str
    callback_url: str
    fallback_url: str
    status_callback_url: str

    @property
    def retried(self) -> bool:
        return "rc=" in self.callback_url.partition("#")[2]


async def webhook_info(api: TwilioApi, config: TwilioConfig) -> WebhookInfo:
    """What Twilio has for our sender. Raises `http.CallFailed`, and ConfigurationError when
    the account has no such sender."""
    row = await _sender(api, config)
    found = row.get("webhook")
    webhook: Resource = found if isinstance(found, Mapping) else {}
    return WebhookInfo(
        sender=config.sender,
        status=str(row.get("status") or ""),
        callback_url=str(webhook.get("callback_url") or ""),
        fallback_url=str(webhook.get("fallback_url") or ""),
        status_callback_url=str(webhook.get("status_callback_url") or ""),
    )


async def webhook_set(
    api: TwilioApi, config: TwilioConfig, url: str, fallback: str, status: str
) -> None:
    """Point our sender at `url`; the overrides are added unless it brings its own.

    An empty URL takes the old one away. Raises as `webhook_info`.
    """
    row = await _sender(api, config)
    webhook = {
        "callback_url": _with_retries(url),
        "callback_method": "POST",
        "fallback_url": _with_retries(fallback),
        "fallback_method": "POST",
        "status_callback_url": _with_retries(status),
        "status_callback_method": "POST",
    }
    await api.update_webhook(str(row.get("sid") or ""), webhook)


def _with_retries(url: str) -> str:
    return url + RETRIES if url and "#" not in url else url


async def _sender(api: TwilioApi, config: TwilioConfig) -> Resource:
    if config.sandbox:
        raise ConfigurationError(
            "the sandbox has no webhook that can be set from here: in Twilio's console, under "
            "Messaging, Try it out, Sandbox settings, enter the URL of /whatsapp/webhook"
        )
    for row in await api.senders():
        if row.get("sender_id") == config.sender:
            return row
    raise ConfigurationError("TWILIO_WHATSAPP_FROM is not a WhatsApp sender of this account")
