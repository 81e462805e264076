"""The examination of a number for `doctor`: its token, its state, and what Meta delivers of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.domain.findings import Finding, fine, problem, warning
from channels.whatsapp_cloud import NAME
from channels.whatsapp_cloud.account import (
    BLOCKED,
    CONNECTED,
    MESSAGES,
    AppSubscription,
    CloudNumber,
    MetaUnavailable,
    NumberInfo,
    TokenInfo,
)

EXPIRES_SOON = 7 * 86_400.0
_PERMISSIONS = frozenset({"whatsapp_business_messaging", "whatsapp_business_management"})
_NEW_TOKEN = "make a token of a system user that never expires, set META_ACCESS_TOKEN, restart"  # noqa: S105 - advice
_SUBSCRIBE = "answerback webhook set"


async def examine(number: CloudNumber) -> Sequence[Finding]:
    """Every finding about a number. Never raises."""
    name = f"{NAME} {number.account}"
    try:
        found = [of_token(name, await number.token_info(), number.clock.wall())]
        info = await number.info()
        found += of_number(name, info)
    except MetaUnavailable as error:
        return [
            problem(name, str(error), "put that right; `answerback webhook set` tries it again")
        ]
    return [*found, *await _subscriptions(name, number, info)]


def of_token(name: str, token: TokenInfo, now: float) -> Finding:
    """The token by its own word; `now` in epoch seconds."""
    name, left = f"{name} token", token.expires_at - now
    if not token.valid or (token.expires_at and left <= 0):
        return problem(name, "it is not valid any more", _NEW_TOKEN)
    if lacking := _PERMISSIONS - token.permissions:
        fix = "give them to the system user, and make a new token"
        return problem(name, f"it lacks {' and '.join(sorted(lacking))}", fix)
    if not token.expires_at:
        return fine(name, "it is valid and does not expire")
    days = f"it is valid for {left / 86_400:.0f} more day(s)"
    return warning(name, days, _NEW_TOKEN) if left < EXPIRES_SOON else fine(name, days)


def of_number(name: str, info: NumberInfo) -> Iterator[Finding]:
    """Tell whether the number may send, how well it is thought of, and how much it may send."""
    if info.status not in (CONNECTED, ""):
        fix = "register it (POST /<number id>/register), or look at it in WhatsApp Manager"
        yield problem(name, f"its status is {info.status}", fix)
    elif info.health == BLOCKED:
        yield problem(name, "it can't send", "see WhatsApp Manager, Overview")
    else:
        level = f", throughput {info.throughput}" if info.throughput else ""
        limit = f", {info.limit} to new people a day" if info.limit else ""
        yield fine(name, f"connected, quality {info.quality or 'unknown'}{limit}{level}")
    for trouble in info.troubles:
        yield warning(name, trouble[:300], "see WhatsApp Manager, Overview")
    if info.quality in ("YELLOW", "RED"):
        fix = "people block or report it: see WhatsApp Manager, Phone numbers"
        yield warning(f"{name} quality", f"it is {info.quality}", fix)
    if info.name_status in ("DECLINED", "EXPIRED"):
        fix = "see WhatsApp Manager, Phone numbers"
        yield warning(f"{name} name", f"its display name is {info.name_status}", fix)


async def _subscriptions(name: str, number: CloudNumber, info: NumberInfo) -> Sequence[Finding]:
    found: list[Finding] = []
    try:
        if info.business:
            found += of_apps(name, info.app, await number.subscribed_apps(info.business))
        if info.app:
            found.append(of_fields(name, await number.app_subscription(info.app)))
    except MetaUnavailable as error:
        fix = "is META_APP_SECRET this app's? See the App Dashboard: WhatsApp, Configuration"
        found.append(warning(f"{name} fields", f"they can't be read: {error}", fix))
    return found


def of_apps(name: str, app: str, apps: Sequence[str]) -> Iterator[Finding]:
    """Tell whether our app hears of the business account, and who else does."""
    name = f"{name} account"
    if not apps or (app and app not in apps):
        yield problem(name, "our app does not hear of it", _SUBSCRIBE)
    elif others := [other for other in apps if other != app]:
        fix = "take away the others if two bots answer: DELETE /<account id>/subscribed_apps"
        yield warning(name, f"further apps hear of it: {', '.join(others)}", fix)
    else:
        yield fine(name, "our app hears of it")


def of_fields(name: str, subscription: AppSubscription) -> Finding:
    """Tell whether the app wants what people write."""
    name = f"{name} fields"
    if MESSAGES not in subscription.fields:
        fix = f"{_SUBSCRIBE}, or subscribe to it in the App Dashboard: WhatsApp, Configuration"
        return problem(name, f"the app does not want the field {MESSAGES}", fix)
    return fine(name, f"the app wants {', '.join(sorted(subscription.fields))}")
