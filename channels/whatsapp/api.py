"""The calls that we make of Twilio, each with its answer as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from twilio.rest import Client

from channels.whatsapp.config import TwilioConfig
from channels.whatsapp.http import NoAnswer, TwilioHttp
from channels.whatsapp.wire import Wire

Resource = Mapping[str, object]

_NOT_FROM_ENVIRONMENT = {"TWILIO_REGION": "", "TWILIO_EDGE": ""}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list, and where the next page is (empty at the end)."""

    rows: Sequence[Resource]
    next_url: str = ""


class TwilioApi:
    """One account. Everything raises `http.CallFailed` and nothing is tried twice."""

    def __init__(self, config: TwilioConfig, http: TwilioHttp) -> None:
        self._config = config
        self._client = Client(
            config.account_sid,
            config.auth_token,
            http_client=http,
            environment=_NOT_FROM_ENVIRONMENT,
        )
        self._account = f"/2010-04-01/Accounts/{quote(config.account_sid)}"
        self._messages = f"{config.api_url}{self._account}/Messages"

    async def create(self, to: str, wire: Wire, status_callback: str) -> str:
        """Send one message; its SID, empty when a good answer names none."""
        asked: dict[str, object] = {"To": to, "From": self._config.sender}
        if wire.content:
            asked["ContentSid"] = wire.content
            if wire.variables:
                asked["ContentVariables"] = json.dumps(dict(wire.variables), ensure_ascii=False)
        elif wire.media:
            asked["MediaUrl"] = [wire.media]
        if wire.body and not wire.content:
            asked["Body"] = wire.body
        if status_callback:
            asked["StatusCallback"] = status_callback
        created = await self._post(f"{self._messages}.json", asked)
        sid = created.get("sid")
        return sid if isinstance(sid, str) else ""

    async def messages(self, asked: Mapping[str, str]) -> Page:
        """The first page of the messages that fit, newest first."""
        return await self._page(f"{self._messages}.json", "messages", asked)

    async def more(self, page: Page) -> Page:
        """The page after `page`."""
        return await self._page(page.next_url, "messages", None)

    async def message(self, sid: str) -> Resource:
        """One message's resource."""
        return await self._get(f"{self._messages}/{quote(sid)}.json")

    async def media_of(self, sid: str) -> Sequence[Resource]:
        """The files of one message."""
        url = f"{self._messages}/{quote(sid)}/Media.json"
        return (await self._page(url, "media_list", {"PageSize": "50"})).rows

    def media_url(self, message: str, media: str) -> str:
        """Where a file's bytes are, as an inbound form names it."""
        return f"{self._messages}/{quote(message)}/Media/{quote(media)}"

    async def typing(self, message: str, timeout: float) -> None:
        """Show the typing indicator, and mark the message read."""
        url = f"{self._config.messaging_base}/v2/Indicators/Typing.json"
        await self._post(url, {"channel": "whatsapp", "messageId": message}, timeout)

    async def senders(self) -> Sequence[Resource]:
        """The account's WhatsApp senders."""
        url = f"{self._config.messaging_base}/v2/Channels/Senders"
        return (await self._page(url, "senders", {"Channel": "whatsapp", "PageSize": "1000"})).rows

    async def update_webhook(self, sender: str, webhook: Mapping[str, str]) -> None:
        """Set the webhook fields of one sender (`XE...`)."""
        await self._client.request_async(
            "POST",
            f"{self._config.messaging_base}/v2/Channels/Senders/{quote(sender)}",
            data={"webhook": dict(webhook)},
            headers={"Content-Type": "application/json"},
        )

    async def alerts(self, start: str) -> Sequence[Resource]:
        """Errors that Twilio met since `start` (ISO 8601, UTC), newest first, one page."""
        asked = {"LogLevel": "error", "StartDate": start, "PageSize": "100"}
        return (await self._page(f"{self._config.monitor_base}/v1/Alerts", "alerts", asked)).rows

    async def _page(self, url: str, rows: str, asked: Mapping[str, str] | None) -> Page:
        answer = await self._get(url, asked)
        found = answer.get(rows)
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise NoAnswer(f"the list has no {rows}")
        return Page(found, self._next(answer))

    def _next(self, answer: Resource) -> str:
        """The next page's URL, which must stay in our account: our token goes with it."""
        uri = answer.get("next_page_uri")
        if not isinstance(uri, str) or not uri:
            return ""
        parts = urlsplit(uri)
        if parts.netloc or not parts.path.startswith(self._account + "/"):
            raise NoAnswer("the next page is not in this account")
        return self._config.api_url + uri

    async def _post(
        self, url: str, form: Mapping[str, object], timeout: float | None = None
    ) -> Resource:
        """The answer to a form; an empty answer is an empty resource."""
        answer = await self._client.request_async("POST", url, data=dict(form), timeout=timeout)
        return _object(answer.text) if answer.text else {}

    async def _get(self, url: str, asked: Mapping[str, str] | None = None) -> Resource:
        answer = await self._client.request_async("GET", url, params=asked)
        return _object(answer.text)


def _object(text: str) -> Resource:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise NoAnswer("the answer is not what the API gives")
    return value
