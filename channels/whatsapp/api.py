"""The calls that we make of Twilio, by the client of its package, which alone waits for ever and
can repeat a POST.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

import httpx
from twilio.http.response import Response
from twilio.rest import Client

from channels.http import ErrorAnswer, NoAnswer, NothingReached, OneExchange, parsed, text_of
from channels.raw import Raw, integer, string
from channels.whatsapp.compose import Wire
from channels.whatsapp.settings import TwilioSettings


class TwilioHttp(OneExchange):
    """The `http_client` of twilio's Client, and the door for media.

    `timeout` are the seconds for a call with its answer, where it names no others. Raises
    NothingReached, NoAnswer or ErrorAnswer; their texts name kinds of errors only.
    """

    is_async = True

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self._timeout = timeout

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, object] | None = None,
        data: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        timeout: float | None = None,
        allow_redirects: bool = False,
    ) -> Response:
        """One exchange with an answer in 2xx; never more than one."""
        request = _request(method, url, params, data, dict(headers or {}), auth)
        async with self.exchange(request, timeout or self._timeout) as answer:
            text = await text_of(answer)
        if not answer.is_success:
            wait = answer.headers.get("retry-after", "")
            raise ErrorAnswer(answer.status_code, integer(parsed(text), "code"), wait)
        return Response(answer.status_code, text, answer.headers)


def _request(
    method: str,
    url: str,
    params: Mapping[str, object] | None,
    data: Mapping[str, object] | None,
    headers: dict[str, str],
    auth: tuple[str, str] | None,
) -> httpx.Request:
    if auth is not None:
        headers["Authorization"] = basic(*auth)
    query = {name: str(value) for name, value in params.items()} if params else None
    try:
        if headers.get("Content-Type") == "application/json":
            return httpx.Request(method, url, params=query, headers=headers, json=data)
        form = dict(data) if data else None
        return httpx.Request(method, url, params=query, headers=headers, data=form)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise NothingReached(type(error).__name__) from None


def basic(user: str, password: str) -> str:
    """The value of an `Authorization` header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


_LONGEST_SID = 64
"""Characters; Twilio's have 34."""
_NOT_FROM_ENVIRONMENT = {"TWILIO_REGION": "", "TWILIO_EDGE": ""}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list, and where the next page is (empty at the end)."""

    rows: Sequence[Raw]
    next_url: str = ""


class TwilioApi:
    """One account. Everything raises `CallFailed` and nothing is tried twice."""

    def __init__(self, settings: TwilioSettings, http: TwilioHttp) -> None:
        self._settings = settings
        self._client = Client(
            settings.twilio_account_sid,
            settings.twilio_auth_token,
            http_client=http,
            environment=_NOT_FROM_ENVIRONMENT,
        )
        self._account = f"/2010-04-01/Accounts/{quote(settings.twilio_account_sid)}"
        self._messages = f"{settings.twilio_api_url}{self._account}/Messages"

    async def create(self, sender: str, to: str, wire: Wire, status_callback: str) -> str:
        """Send one message; its SID, empty when a good answer names none that can be one."""
        asked: dict[str, object] = {"To": to, "From": sender}
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
        sid = string(await self._post(f"{self._messages}.json", asked), "sid")
        return sid if len(sid) <= _LONGEST_SID else ""

    async def now(self, sender: str) -> float | None:
        """Twilio's clock in epoch seconds, by the answer to a question about one message; None
        when the answer has no date."""
        asked = {"To": sender, "PageSize": "1"}
        answer = await self._client.request_async("GET", f"{self._messages}.json", params=asked)
        try:
            return parsedate_to_datetime((answer.headers or {}).get("date", "")).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None

    async def messages(self, asked: Mapping[str, str]) -> Page:
        """The first page of the messages that fit, newest first."""
        return await self._page(f"{self._messages}.json", "messages", asked)

    async def more(self, page: Page) -> Page:
        """The page after `page`."""
        return await self._page(page.next_url, "messages", None)

    async def message(self, sid: str) -> Raw:
        """One message's resource."""
        return await self._get(f"{self._messages}/{quote(sid)}.json")

    async def media_of(self, sid: str) -> Sequence[Raw]:
        """The files of one message."""
        url = f"{self._messages}/{quote(sid)}/Media.json"
        return (await self._page(url, "media_list", {"PageSize": "50"})).rows

    def media_url(self, message: str, media: str) -> str:
        """The address of a file's bytes, as an inbound form names it."""
        return f"{self._messages}/{quote(message)}/Media/{quote(media)}"

    async def typing(self, message: str, timeout: float) -> None:
        """Show the typing indicator, and mark the message read."""
        url = f"{self._settings.twilio_messaging_base}/v2/Indicators/Typing.json"
        await self._post(url, {"channel": "whatsapp", "messageId": message}, timeout)

    async def senders(self) -> Sequence[Raw]:
        """The account's WhatsApp senders."""
        url = f"{self._settings.twilio_messaging_base}/v2/Channels/Senders"
        return (await self._page(url, "senders", {"Channel": "whatsapp", "PageSize": "1000"})).rows

    async def update_webhook(self, sender: str, webhook: Mapping[str, str]) -> None:
        """Set the webhook fields of one sender (`XE...`)."""
        await self._client.request_async(
            "POST",
            f"{self._settings.twilio_messaging_base}/v2/Channels/Senders/{quote(sender)}",
            data={"webhook": dict(webhook)},
            headers={"Content-Type": "application/json"},
        )

    async def _page(self, url: str, rows: str, asked: Mapping[str, str] | None) -> Page:
        answer = await self._get(url, asked)
        found = answer.get(rows)
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise NoAnswer(f"the list has no {rows}")
        return Page(found, self._next(answer))

    def _next(self, answer: Raw) -> str:
        """The next page's URL, which must stay in our account: our token goes with it."""
        uri = answer.get("next_page_uri")
        if not isinstance(uri, str) or not uri:
            return ""
        try:
            parts = urlsplit(uri)
        except ValueError:
            raise NoAnswer("the next page has no usable address") from None
        if parts.netloc or not parts.path.startswith(self._account + "/"):
            raise NoAnswer("the next page is not in this account")
        return self._settings.twilio_api_url + uri

    async def _post(
        self, url: str, form: Mapping[str, object], timeout: float | None = None
    ) -> Raw:
        """The answer to a form; an empty answer is an empty resource."""
        answer = await self._client.request_async("POST", url, data=dict(form), timeout=timeout)
        return _resource(answer.text) if answer.text else {}

    async def _get(self, url: str, asked: Mapping[str, str] | None = None) -> Raw:
        answer = await self._client.request_async("GET", url, params=asked)
        return _resource(answer.text)


def _resource(text: str) -> Raw:
    found = parsed(text)
    if not found:
        raise NoAnswer("the answer is not what the API gives")
    return found
