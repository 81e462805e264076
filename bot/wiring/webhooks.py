"""The webhooks at the platforms: how they are, setting and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.checks import Finding, fine, problem, warning
from bot.domain.errors import (
    ConfigurationError,
    PollConflict,
    PollRefused,
    PollUnavailable,
    RecordsUnavailable,
)
from bot.operations.stuck import Stuck, Trouble
from bot.settings import Settings, TelegramMode
from bot.wiring.session import OperatorSession

if TYPE_CHECKING:
    from channels.telegram.channel import TelegramChannel
    from channels.whatsapp.channel import WhatsAppChannel

REFUSALS = (PollConflict, PollRefused, PollUnavailable, RecordsUnavailable, ConfigurationError)
"""What asking a platform about our account may raise."""

FRESH_ERROR = 3600.0
"""Seconds for which a webhook's last error matters; the platform keeps it for ever."""

_MANY_PENDING = 50


@dataclass(frozen=True, slots=True)
class HookState:
    """A webhook as its platform has it. `error_age` in seconds; `trouble` says that the
    platform could not be asked, and `by_hand` what must be done at the platform itself."""

    channel: str
    url: str = ""
    wanted: str = ""
    pending: int | None = None
    error: str = ""
    error_age: float | None = None
    trouble: str = ""
    by_hand: str = ""


def telegram_url(settings: Settings) -> str:
    """Where Telegram should deliver; empty while updates are polled."""
    from bot.wiring.telegram import TELEGRAM_PATH  # noqa: PLC0415 - loaded where configured

    if settings.mode is TelegramMode.POLLING:
        return ""
    return settings.public_url + TELEGRAM_PATH


def whatsapp_urls(settings: Settings) -> tuple[str, str, str]:
    """Where Twilio should deliver messages, those that failed there, and statuses."""
    from bot.wiring.whatsapp import (  # noqa: PLC0415 - loaded where configured
        WHATSAPP_FALLBACK_PATH,
        WHATSAPP_PATH,
        WHATSAPP_STATUS_PATH,
    )

    base, other = settings.public_url, settings.twilio_fallback_url or settings.public_url
    return base + WHATSAPP_PATH, other + WHATSAPP_FALLBACK_PATH, base + WHATSAPP_STATUS_PATH


async def hook_states(ctx: OperatorSession) -> Sequence[HookState]:
    """Every configured platform's webhook. A platform that can't be asked is a state too."""
    states = []
    if ctx.channels.telegram is not None:
        states.append(await _telegram(ctx, ctx.channels.telegram))
    if ctx.channels.whatsapp is not None:
        states.append(await _whatsapp(ctx.settings, ctx.channels.whatsapp))
    return states


async def _telegram(ctx: OperatorSession, channel: TelegramChannel) -> HookState:
    from channels.telegram.errors import (  # noqa: PLC0415 - loaded where configured
        TelegramMethodUnknown,
    )

    wanted = telegram_url(ctx.settings)
    try:
        info = await channel.webhook_info()
    except TelegramMethodUnknown as error:
        return HookState("telegram", wanted=wanted, by_hand=str(error))
    except REFUSALS as error:
        return HookState("telegram", wanted=wanted, trouble=str(error))
    age = None if info.last_error_at is None else ctx.rt.clock.wall() - info.last_error_at
    return HookState("telegram", info.url, wanted, info.pending, info.last_error, age)


async def _whatsapp(settings: Settings, channel: WhatsAppChannel) -> HookState:
    wanted = whatsapp_urls(settings)[0]
    try:
        info = await channel.webhook_info()
    except ConfigurationError as error:
        return HookState("whatsapp", wanted=wanted, by_hand=str(error))
    except REFUSALS as error:
        return HookState("whatsapp", wanted=wanted, trouble=str(error))
    retried = "" if info.retried or not info.callback_url else "Twilio does not try it again"
    return HookState("whatsapp", info.callback_url.partition("#")[0], wanted, error=retried)


def hook_finding(state: HookState) -> Finding:
    """A webhook's state as a line of an examination."""
    name = f"{state.channel} webhook"
    put_right = "answerback webhook set"
    if state.trouble:
        return problem(name, state.trouble, "check the token, the account and the network")
    if state.by_hand:
        return warning(name, state.by_hand, f"it should be {state.wanted or 'none'}")
    if state.url and not state.wanted:
        fix = "answerback webhook delete, or set PUBLIC_URL and TELEGRAM_MODE=webhook"
        return problem(name, f"set to {state.url} while updates are polled", fix)
    if state.url != state.wanted:
        return problem(name, f"is {state.url or 'not set'}, not {state.wanted}", put_right)
    if state.error_age is not None and state.error_age < FRESH_ERROR:
        said = f"failed {state.error_age:.0f} s ago: {state.error}; {state.pending} pending"
        fix = _FIXES.get(_status(state.error), "is PUBLIC_URL reachable and this service running?")
        return problem(name, said, fix)
    if state.error and state.error_age is None:
        return warning(name, state.error, put_right)
    if (state.pending or 0) > _MANY_PENDING:
        return warning(name, f"{state.pending} updates are pending", "is the service running?")
    pending = "" if state.pending is None else f", {state.pending} pending"
    return fine(name, f"{state.url or 'none, updates are polled'}{pending}")


def _status(error: str) -> str:
    """The HTTP status in words such as "Wrong response from the webhook: 403 Forbidden"."""
    return next((word for word in error.split() if word.isdecimal() and len(word) == 3), "")


_FIXES = {
    "401": "the secret differs: answerback webhook set",
    "403": "the secret differs: answerback webhook set",
    "404": "the path differs: answerback webhook set",
    "502": "the proxy does not reach this service",
    "503": "the database was away: answerback doctor",
}


async def stuck_hooks(ctx: OperatorSession) -> Sequence[Stuck]:
    """Webhooks that fail now, as what is stuck."""
    found = []
    for state in await hook_states(ctx):
        finding = hook_finding(state)
        if finding.level == "problem":
            since = state.error_age or 0.0
            act = "answerback doctor  # examines the account and says the fix"
            found.append(Stuck(Trouble.WEBHOOK, state.channel, since, finding.says, act))
    return found


async def set_hooks(ctx: OperatorSession, *, drop_pending: bool) -> Sequence[str]:
    """Point every configured platform at PUBLIC_URL; returns what was done, line by line.

    Raises one of REFUSALS.
    """
    settings = ctx.settings
    if not settings.public_url:
        raise ConfigurationError("PUBLIC_URL is empty: set it to https://<where we are reached>")
    said = []
    if (telegram := ctx.channels.telegram) is not None:
        if not settings.telegram_webhook_secret:
            raise ConfigurationError("TELEGRAM_WEBHOOK_SECRET is empty: set a long random word")
        url = telegram_url(settings)
        if not url:
            raise ConfigurationError("TELEGRAM_MODE is polling: a webhook would stop it")
        await telegram.set_webhook(url, settings.telegram_webhook_secret, drop_pending=drop_pending)
        said.append(f"telegram delivers to {url}")
    if (whatsapp := ctx.channels.whatsapp) is not None:
        said += await _set_whatsapp(settings, whatsapp)
    return said


async def _set_whatsapp(settings: Settings, channel: WhatsAppChannel) -> Sequence[str]:
    url, fallback, status = whatsapp_urls(settings)
    try:
        await channel.webhook_set(url, fallback, status)
    except ConfigurationError as error:
        return [f"whatsapp: {error}", *by_hand(settings)]
    return [f"whatsapp delivers to {url}, after a failure to {fallback}"]


def by_hand(settings: Settings) -> Sequence[str]:
    """What to enter in Twilio's console where its API can't."""
    from channels.whatsapp.senders import RETRIES  # noqa: PLC0415 - loaded where configured

    url, fallback, status = whatsapp_urls(settings)
    return [
        f"  when a message comes in (POST): {url}{RETRIES}",
        f"  fallback, where there is a field (POST): {fallback}{RETRIES}",
        f"  status callback (POST): {status}{RETRIES}",
    ]


async def delete_hooks(ctx: OperatorSession) -> Sequence[str]:
    """Take our webhooks away from every configured platform. Raises one of REFUSALS."""
    said = []
    if (telegram := ctx.channels.telegram) is not None:
        await telegram.delete_webhook()
        said.append("telegram delivers nothing any more; what waits there stays for polling")
    if (whatsapp := ctx.channels.whatsapp) is not None:
        try:
            await whatsapp.webhook_set("")
            said.append("whatsapp: the sender has no webhook any more")
        except ConfigurationError as error:
            said.append(f"whatsapp: {error}")
    return said
