"""The number itself at Meta: its state, its token, and how Meta's webhooks reach us.

What is delivered is decided in three places: the app says which fields it wants and where they
go, the business account which apps hear of it, and a number may have an address of its own, which
wins over the app's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from bot.domain.errors import RecordsUnavailable
from bot.domain.message import clean
from bot.domain.ports import Clock
from channels.http import CallFailed, ErrorAnswer
from channels.raw import Raw, obj, objs, string, timestamp
from channels.whatsapp_cloud import NAME
from channels.whatsapp_cloud.api import GraphApi
from channels.whatsapp_cloud.errors import TABLE
from channels.whatsapp_cloud.settings import MetaSettings

MESSAGES = "messages"
FIELDS = frozenset({
    MESSAGES, "account_alerts", "account_update", "phone_number_quality_update",
    "smb_message_echoes", "standby",
})  # fmt: skip
"""The fields that our app wants, at least: what people write and what becomes of answers, what
another bot took from us or a person of ours answered, and what restricts the number or the
account."""

_OBJECT = "whatsapp_business_account"
_NUMBER_FIELDS = (
    "id,status,quality_rating,name_status,throughput,webhook_configuration,"
    "whatsapp_business_manager_messaging_limit,health_status"
)
CONNECTED, BLOCKED = "CONNECTED", "BLOCKED"
REST_IN_TROUBLE = 115.0
"""Seconds after which a number is asked again that Meta refused, or did not answer for."""
_DEAD_TOKEN = frozenset({0, 190})
_OF_THE_TOKEN = frozenset({*map(str, _DEAD_TOKEN), "401"})
_T = TypeVar("_T")


class MetaUnavailable(RecordsUnavailable):
    """Meta does not answer a question about a number. `refused` only where the token is dead: one
    that may send may lack the right to ask."""

    def __init__(self, number: str, failure: CallFailed) -> None:
        code = failure.code if isinstance(failure, ErrorAnswer) else None
        said = "" if code is None else str(code)
        self.refused = code in _DEAD_TOKEN
        verb = "refuses" if isinstance(failure, ErrorAnswer) else "does not answer for"
        why = TABLE.explain(said) if said else str(failure)
        super().__init__(f"Meta {verb} {NAME} {number}: {why}")


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The addresses to which Meta delivers what a number hears: the first that is there wins."""

    number: str = ""
    business: str = ""
    app: str = ""

    @property
    def wins(self) -> str:
        return self.number or self.business or self.app


@dataclass(frozen=True, slots=True)
class NumberInfo:
    """A number as Meta has it, in Meta's words; empty is what was not told. `app` and `business`
    are the ids of our app and of the number's account, `troubles` what keeps it from sending."""

    status: str
    quality: str
    name_status: str
    throughput: str
    limit: str
    health: str
    troubles: Sequence[str]
    app: str
    business: str
    callbacks: Callbacks

    @property
    def well(self) -> bool:
        """True where nothing that Meta tells keeps it from sending."""
        return self.status in (CONNECTED, "") and self.health != BLOCKED


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token as Meta has it. `expires_at`: when it, or its access to data, ends, in epoch seconds,
    0 for never."""

    valid: bool
    expires_at: float
    permissions: frozenset[str]


@dataclass(frozen=True, slots=True)
class AppSubscription:
    """The fields that an app wants, and where they go."""

    callback: str = ""
    fields: frozenset[str] = frozenset()


class CloudNumber:
    """One number of ours, by its id, and the token that it is used with."""

    def __init__(self, settings: MetaSettings, phone_id: str, token: str, clock: Clock) -> None:
        self.settings = settings
        self.account = phone_id
        self.clock = clock
        self._token = token
        self._bad_at = -inf
        self._was_bad = False
        self._api = GraphApi(
            settings.meta_api_url, settings.meta_api_version, phone_id, token, settings.meta_timeout
        )

    async def info(self) -> NumberInfo:
        """The number now. Raises MetaUnavailable, like all of these."""
        found = None
        try:
            found = _info(await self._told(self._api.get(self.account, fields=_NUMBER_FIELDS)))
        finally:
            well = found is not None and found.well
            self._bad_at = -inf if well else self.clock.monotonic()
        return found

    async def recovered(self, code: str) -> bool:
        """Tell whether the number, which was down with this code, can send again by Meta's own
        word. A token that is taken is not dead. Of anything else Meta's good word counts only
        after a bad one: it may have had a good one all along."""
        good = not self._bad_lately() and await self._is_well()
        self._was_bad, was_bad = not good, self._was_bad
        return good and (was_bad or code in _OF_THE_TOKEN)

    def _bad_lately(self) -> bool:
        """Tell whether whoever asked last, a short while ago, was told of trouble."""
        rested = self.clock.monotonic() - self._bad_at
        return rested < REST_IN_TROUBLE

    async def _is_well(self) -> bool:
        try:
            return (await self.info()).well
        except MetaUnavailable:
            return False

    async def token_info(self) -> TokenInfo:
        """The number's token now."""
        said = await self._told(self._api.get("debug_token", input_token=self._token))
        data = obj(said, "data")
        ends = (timestamp(data, "expires_at"), timestamp(data, "data_access_expires_at"))
        scopes = data.get("scopes")
        return TokenInfo(
            valid=data.get("is_valid") is True,
            expires_at=min((end for end in ends if end is not None), default=0.0),
            permissions=frozenset(
                clean(str(scope)) for scope in (scopes if isinstance(scopes, list) else ())
            ),
        )

    async def subscribed_apps(self, business: str) -> Sequence[str]:
        """The ids of the apps that hear of this business account."""
        said = await self._told(self._api.get(f"{business}/subscribed_apps"))
        return [
            string(obj(row, "whatsapp_business_api_data") or row, "id")
            for row in objs(said, "data")
        ]

    async def subscribe(self, business: str) -> None:
        """Let our app hear of this business account, at the app's own address."""
        await self._told(self._api.post(f"{business}/subscribed_apps", {}))

    async def deliver_to(self, url: str) -> None:
        """Give the number an address of its own, or with an empty one none. Meta asks it for the
        verify token before it agrees."""
        token = {"verify_token": self.settings.meta_verify_token} if url else {}
        hook = {"override_callback_uri": url, **token}
        await self._told(self._api.post(self.account, {"webhook_configuration": hook}))

    async def app_subscription(self, app: str) -> AppSubscription:
        """The fields that the app wants; none where it was never set up."""
        said = await self._as_app(app, lambda token: self._api.get(f"{app}/subscriptions", token))
        for row in objs(said, "data"):
            if row.get("object") == _OBJECT:
                fields = frozenset(string(field, "name") for field in objs(row, "fields"))
                return AppSubscription(string(row, "callback_url"), fields)
        return AppSubscription()

    async def subscribe_app(self, app: str, url: str, fields: frozenset[str]) -> None:
        """Have these fields delivered to `url`. Meta asks it for the verify token."""
        wanted = {
            "object": _OBJECT,
            "callback_url": url,
            "verify_token": self.settings.meta_verify_token,
            "fields": ",".join(sorted(fields)),
            "include_values": True,
        }
        await self._as_app(app, lambda t: self._api.post(f"{app}/subscriptions", wanted, t))

    async def unsubscribe_app(self, app: str) -> None:
        """Have nothing delivered to the app's address any more."""
        path = f"{app}/subscriptions"
        await self._as_app(app, lambda t: self._api.delete(path, t, object=_OBJECT))

    async def _as_app(self, app: str, call: Callable[[str], Awaitable[Raw]]) -> Raw:
        """Call with the app's own token, by whichever of our secrets Meta takes."""
        *others, last = self.settings.meta_app_secrets
        for secret in others:
            try:
                return await call(f"{app}|{secret}")
            except ErrorAnswer:
                continue
        return await self._told(call(f"{app}|{last}"))

    async def _told(self, answer: Awaitable[_T]) -> _T:
        try:
            return await answer
        except CallFailed as failure:
            raise MetaUnavailable(self.account, failure) from None


def _info(said: Raw) -> NumberInfo:
    health = obj(said, "health_status")
    hook = obj(said, "webhook_configuration")
    parts = objs(health, "entities")
    ids = {string(part, "entity_type"): string(part, "id") for part in parts}
    return NumberInfo(
        status=string(said, "status"),
        quality=string(said, "quality_rating"),
        name_status=string(said, "name_status"),
        throughput=string(obj(said, "throughput"), "level"),
        limit=string(said, "whatsapp_business_manager_messaging_limit"),
        health=string(health, "can_send_message"),
        troubles=[trouble for part in parts for trouble in _troubles(part)],
        app=ids.get("APP", ""),
        business=ids.get("WABA", ""),
        callbacks=Callbacks(
            string(hook, "phone_number"),
            string(hook, "whatsapp_business_account"),
            string(hook, "application"),
        ),
    )


def _troubles(part: Raw) -> Iterator[str]:
    """Meta's words on what keeps a part of the way from sending, and what it would do."""
    for error in objs(part, "errors"):
        said = (string(error, "error_description"), string(error, "possible_solution"))
        code = clean(str(error.get("error_code")))
        yield f"{string(part, 'entity_type')} {code}: {' '.join(said)}".strip()
