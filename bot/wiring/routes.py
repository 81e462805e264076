"""The HTTP routes of a process: its webhooks, and what it says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from bot.http import Doorway, Hook, StatusHook
from bot.wiring.process import Process, Role


def doorway(process: Process) -> Doorway:
    """What the application of this process is made of."""
    web = process.role is not Role.WORKER
    return Doorway(
        intake=process.intake if web else None,
        hooks=[*_telegram(process), *_whatsapp(process)] if web else [],
        statuses=_statuses(process) if web else [],
        readiness=process.readiness,
        observer=process.rt.observer,
        clock=process.rt.clock,
        prefix=urlsplit(process.settings.public_url).path,
    )


def _telegram(process: Process) -> Sequence[Hook]:
    if process.updates is None:
        return []
    # Without a secret nothing is authentic: the route is there and refuses everybody.
    secret = process.settings.telegram_webhook_secret
    from bot.wiring.telegram import TelegramHook  # noqa: PLC0415 - loaded where configured

    return [TelegramHook(process.ids["telegram"], process.updates, secret)]


def _whatsapp(process: Process) -> Sequence[Hook]:
    sender, public_url = process.channels.whatsapp, process.settings.public_url
    if sender is None:
        return []
    from bot.wiring import whatsapp  # noqa: PLC0415 - loaded where configured

    account = process.ids["whatsapp"]
    bases = {
        whatsapp.WHATSAPP_PATH: public_url,
        whatsapp.WHATSAPP_FALLBACK_PATH: process.settings.twilio_fallback_url or public_url,
    }
    return [
        whatsapp.WhatsAppHook(sender, base, path, account=account) for path, base in bases.items()
    ]


def _statuses(process: Process) -> Sequence[StatusHook]:
    sender = process.channels.whatsapp
    if sender is None:
        return []
    from bot.wiring import whatsapp  # noqa: PLC0415 - loaded where configured

    return [
        whatsapp.WhatsAppStatusHook(
            sender,
            process.settings.public_url,
            whatsapp.WHATSAPP_STATUS_PATH,
            rt=process.rt,
            account=process.ids["whatsapp"],
        )
    ]
