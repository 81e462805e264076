"""A number's webhook at Meta: reading it, and setting as much of it as Meta's API can set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.errors import RecordsUnavailable
from bot.domain.plugin import WebhookState
from channels.whatsapp_cloud import NAME
from channels.whatsapp_cloud.account import (
    FIELDS,
    MESSAGES,
    REST_IN_TROUBLE,
    CloudNumber,
    MetaUnavailable,
    NumberInfo,
)
from channels.whatsapp_cloud.settings import PATH

REST = 55.0
"""Seconds for which an answer about a number is good: Meta allows 200 questions an hour to an app
that sends little, and a process that looks every 20 s so asks once a minute."""
SUBSCRIPTIONS_EVERY = 600.0
"""Seconds for which it is believed that our app hears of the business account."""


@dataclass(slots=True)
class NumberWebhook:
    """The webhook of one number, which should lead to us."""

    number: CloudNumber
    _state: WebhookState | None = field(default=None, init=False)
    _asked_at: float = field(default=0.0, init=False)
    _heard_at: float | None = field(default=None, init=False)
    """The last time at which our app was found to hear of the account, by the monotonic clock."""

    @property
    def url(self) -> str:
        return self.number.settings.public_url + PATH

    @property
    def name(self) -> str:
        return f"{NAME} {self.number.account}"

    async def state(self) -> WebhookState:
        now, known = self.number.clock.monotonic(), self._state
        rest = REST_IN_TROUBLE if known is not None and known.trouble else REST
        if known is None or now - self._asked_at >= rest:
            self._state = known = await self._ask()
            self._asked_at = now
        return known

    async def _ask(self) -> WebhookState:
        try:
            info = await self.number.info()
            missing = () if await self._heard(info) else (MESSAGES,)
        except MetaUnavailable as error:
            said, refused = str(error), error.refused
            return WebhookState(self.name, wanted=self.url, trouble=said, refused=refused)
        return WebhookState(self.name, info.callbacks.wins, self.url, missing=missing)

    async def _heard(self, info: NumberInfo) -> bool:
        """Tell whether our app hears of the number's account; true where Meta names neither."""
        if not info.app or not info.business:
            return True
        now = self.number.clock.monotonic()
        if self._heard_at is None or now - self._heard_at >= SUBSCRIPTIONS_EVERY:
            heard = info.app in await self.number.subscribed_apps(info.business)
            self._heard_at = now if heard else None
        return self._heard_at is not None

    async def set(self, *, drop_pending: bool) -> Sequence[str]:
        """Let the app hear of the account, and have the number's messages delivered here: by the
        app's own address where that is free or ours, else by one of the number's. Meta asks the
        address at once, so we must be running. It keeps nothing that could be dropped."""
        self._state = None
        info = await self.number.info()
        said = await self._set_app(info.app)
        if info.business:
            await self.number.subscribe(info.business)
        else:
            said.append(f"  Meta does not name the account of {self.name}: see that the app")
            said.append("  is subscribed to it (POST /<account id>/subscribed_apps)")
        if (await self.number.info()).callbacks.wins != self.url:
            await self._deliver_here()
        return [f"{self.name} delivers to {self.url}", *said]

    async def _deliver_here(self) -> None:
        try:
            await self.number.deliver_to(self.url)
        except MetaUnavailable as error:
            asked = "Meta asks that address for the verify token before it agrees"
            said = f"{error}; {asked}: is this service running and reached there?"
            raise RecordsUnavailable(said) from None

    async def _set_app(self, app: str) -> list[str]:
        """Have our fields delivered here, unless the app delivers elsewhere: others may rely on
        that. Returns the steps that are left to a person."""
        try:
            if not app:
                return self._by_hand("Meta does not name the app")
            found = await self.number.app_subscription(app)
            if found.callback in ("", self.url):
                await self.number.subscribe_app(app, self.url, found.fields | FIELDS)
            elif MESSAGES not in found.fields:
                return self._by_hand(f"it delivers to {found.callback}, and no {MESSAGES}")
        except MetaUnavailable as error:
            return self._by_hand(str(error))
        return []

    def _by_hand(self, why: str) -> list[str]:
        return [
            f"  the app could not be set up: {why}; in the App Dashboard, under WhatsApp,",
            "  Configuration, enter:",
            f"    callback URL: {self.url}",
            "    verify token: the value of META_VERIFY_TOKEN",
            f"    webhook fields: {', '.join(sorted(FIELDS))}",
        ]

    async def delete(self) -> Sequence[str]:
        """Take away the addresses that are ours. The account stays subscribed: other numbers of
        it may be delivered elsewhere."""
        self._state = None
        info = await self.number.info()
        found = info.callbacks
        if found.number == self.url:
            await self.number.deliver_to("")
        if found.business == self.url and info.business:
            await self.number.subscribe(info.business)
        if found.app == self.url and info.app:
            await self.number.unsubscribe_app(info.app)
        left = (await self.number.info()).callbacks.wins
        return [f"{self.name} delivers to {left or 'nobody'}"]
