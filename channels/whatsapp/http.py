"""How twilio's Client reaches the network: once, within real time limits, without a trace.

The client that comes with the package waits for ever and can repeat a POST. This one
stands on httpx's transport, below its client, because that client logs whole URLs and
these carry telephone numbers. It follows no redirect and reads no environment.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from twilio.http.response import Response

from bot.domain.errors import AnswerbackError
from channels.http import certificates

_STARTED = ".send_request_headers.started"


class CallFailed(AnswerbackError):
    """A call to Twilio had no good answer."""


class NothingReached(CallFailed):
    """The connection failed before the first byte of the request: nothing was asked."""


class NoAnswer(CallFailed):
    """The request may have been read and carried out; the answer is missing or broken."""


class ErrorAnswer(CallFailed):
    """Twilio answered outside 2xx. `code` is its own code, `retry_after` the raw header."""

    def __init__(self, status: int, code: int | None, retry_after: str) -> None:
        super().__init__(f"status {status}, code {code or 'none'}")
        self.status = status
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for a connection, and for a whole call with its answer."""

    connect: float
    total: float


class _Wire:
    """Notices, through httpcore's trace, whether the request was begun to be written."""

    def __init__(self) -> None:
        self.written = False

    async def __call__(self, event: str, info: Mapping[str, object]) -> None:
        self.written = self.written or event.endswith(_STARTED)


class TwilioHttp:
    """The `http_client` of twilio's Client, and the door for media.

    Raises NothingReached, NoAnswer or ErrorAnswer; their texts name kinds of errors only.
    """

    is_async = True

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._transport = httpx.AsyncHTTPTransport(
            verify=certificates(),
            trust_env=False,
            limits=httpx.Limits(max_connections=100, keepalive_expiry=4.0),
        )

    async def close(self) -> None:
        await self._transport.aclose()

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
        async with self.exchange(request, timeout or self._limits.total) as answer:
            text = (await answer.aread()).decode("utf-8", "replace")
        if not answer.is_success:
            wait = answer.headers.get("retry-after", "")
            raise ErrorAnswer(answer.status_code, _code(text), wait)
        return Response(answer.status_code, text, answer.headers)

    @asynccontextmanager
    async def exchange(self, request: httpx.Request, total: float) -> AsyncIterator[httpx.Response]:
        """Send `request`; the answer's body is read inside the block, within the same limit."""
        wire = _Wire()
        connect = min(self._limits.connect, total)
        request.extensions = {
            "timeout": {"connect": connect, "pool": connect, "read": total, "write": total},
            "trace": wire,
        }
        try:
            async with asyncio.timeout(total):
                answer = await self._transport.handle_async_request(request)
                try:
                    yield answer
                finally:
                    await answer.aclose()
        except (httpx.RequestError, TimeoutError) as error:
            failure = NoAnswer if wire.written else NothingReached
            raise failure(type(error).__name__) from None


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


def _code(text: str) -> int | None:
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return None
    code = payload.get("code") if isinstance(payload, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None
