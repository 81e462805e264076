"""Calls of the Bot API, and their answers before anybody interprets them.

python-telegram-bot's own request class stands on httpx's client, which logs every URL, and
a Bot API URL contains the token; it also forgets the HTTP status. This one stands on the
transport below, reads no environment, never repeats anything, and keeps the status.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

import httpx
from telegram import Bot, InputFile
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData

from channels.http import LARGEST_ANSWER, certificates, leave_in_time
from channels.raw import integer, obj, string
from channels.telegram.settings import TelegramSettings

_CONNECT_TIMEOUT = 5.0
_POOL_TIMEOUT = 10.0
_WRITE_TIMEOUT = 20.0
_UPLOAD_TIMEOUT = 120.0
_LONGEST_WAIT = 10**9
"""Seconds; a longer wait is not believed."""


class Rejected(TelegramError):
    """An answer outside 2xx. `retry_after` in seconds, `moved_to` a chat id, None if unnamed.

    A 4xx was not carried out; what a 5xx did is not known.
    """

    def __init__(
        self,
        status: int,
        description: str,
        retry_after: float | None = None,
        moved_to: int | None = None,
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.retry_after = retry_after
        self.moved_to = moved_to


class Unreadable(TelegramError):
    """A 2xx without a result. `carried_out` when it is recognisably the Bot API's success."""

    def __init__(self, *, carried_out: bool) -> None:
        super().__init__("an answer without a result")
        self.carried_out = carried_out


class BotHttp(BaseRequest):
    """A pool of connections. Raises Rejected, Unreadable, or NetworkError (TimedOut among
    them) whose `__cause__` is httpx's error; the texts name kinds of errors only."""

    def __init__(self, connections: int, read_timeout: float) -> None:
        self._connections = connections
        self._read_timeout = read_timeout
        self._transport: httpx.AsyncHTTPTransport | None = None

    @property
    def read_timeout(self) -> float:
        return self._read_timeout

    async def initialize(self) -> None:
        self._ready()

    def _ready(self) -> httpx.AsyncHTTPTransport:
        if self._transport is None:
            limits = httpx.Limits(max_connections=self._connections, keepalive_expiry=4.0)
            self._transport = httpx.AsyncHTTPTransport(
                verify=certificates(), trust_env=False, limits=limits
            )
        return self._transport

    async def shutdown(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def do_request(  # noqa: PLR0917 the base class names the parameters
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = BaseRequest.DEFAULT_NONE,
        write_timeout: object = BaseRequest.DEFAULT_NONE,
        connect_timeout: object = BaseRequest.DEFAULT_NONE,
        pool_timeout: object = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """One exchange that ended in 2xx; for a POST the body has a result."""
        files = request_data is not None and request_data.contains_files
        limits = {
            "connect": _seconds(connect_timeout, _CONNECT_TIMEOUT),
            "pool": _seconds(pool_timeout, _POOL_TIMEOUT),
            "write": _seconds(write_timeout, _UPLOAD_TIMEOUT if files else _WRITE_TIMEOUT),
            "read": _seconds(read_timeout, self._read_timeout),
        }
        answer = await self._exchange(url, method, request_data, limits)
        if not answer.is_success:
            raise _rejection(answer)
        if method == "POST":
            _require_result(answer)
        return answer.status_code, answer.content

    async def _exchange(
        self, url: str, method: str, data: RequestData | None, limits: dict[str, float]
    ) -> _Answer:
        try:
            request = httpx.Request(
                method,
                url,
                data=data.json_parameters if data else None,
                files=data.multipart_data if data and data.contains_files else None,
                extensions={"timeout": limits, "trace": leave_in_time},
            )
            async with asyncio.timeout(sum(limits.values())):
                answer = await self._ready().handle_async_request(request)
                try:
                    content = await _content(answer)
                finally:
                    await answer.aclose()
        except httpx.TimeoutException as error:
            raise TimedOut(type(error).__name__) from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise NetworkError(type(error).__name__) from error
        except TimeoutError as error:
            raise TimedOut("the answer came too slowly") from error
        return _Answer(answer.status_code, answer.headers, content)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, read whole."""

    status_code: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code < 300


async def _content(answer: httpx.Response) -> bytes:
    """The body, of a size that one may have. Raises NetworkError."""
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise NetworkError("the answer is too large")
    return bytes(body)


def _seconds(given: object, otherwise: float) -> float:
    return float(given) if isinstance(given, int | float) else otherwise


def _object(body: bytes) -> Mapping[str, object] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rejection(answer: _Answer, status: int | None = None) -> Rejected:
    body = _object(answer.content) or {}
    named = obj(body, "parameters")
    header = answer.headers.get("retry-after", "")
    wait = _wait(named.get("retry_after"))
    if wait is None and header.isascii() and header.isdigit():
        wait = float(header[:9])
    return Rejected(
        status or answer.status_code,
        string(body, "description"),
        wait,
        integer(named, "migrate_to_chat_id"),
    )


def _wait(told: object) -> float | None:
    """Seconds that can be waited for, of a value that may be anything: a number of any size too,
    and none at all."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < _LONGEST_WAIT:
        return None
    return float(told)


def _require_result(answer: _Answer) -> None:
    body = _object(answer.content)
    if body is None:
        raise Unreadable(carried_out=answer.content.lstrip().startswith(b'{"ok":true'))
    if body.get("ok") is False:
        raise _rejection(answer, integer(body, "error_code") or 400)
    if "result" not in body:
        raise Unreadable(carried_out=body.get("ok") is True)


_CONNECTIONS = 256
_POLLING_CONNECTIONS = 8
"""More than one: a call that hangs must not keep the next one from starting."""


class BotApi(Bot):
    """A Bot whose calls take and give JSON, so that what goes out is exactly what was stored
    and an odd answer is never an error. Raises what `BotHttp` raises."""

    @property
    def pools(self) -> tuple[BaseRequest, BaseRequest]:
        return self._request

    async def call(
        self,
        method: str,
        params: Mapping[str, object],
        files: Mapping[str, InputFile] | None = None,
        read_timeout: float | None = None,
    ) -> object:
        """The `result` of one call."""
        data = {**params, **(files or {})}
        limit = self.request.read_timeout if read_timeout is None else read_timeout
        result: object = await self._post(method, data, read_timeout=limit)
        return result

    async def download(self, path: str) -> bytes:
        """The bytes behind a `file_path` of getFile."""
        return await self.request.retrieve(f"{self.base_file_url}/{quote(path)}")


def bot_api(settings: TelegramSettings) -> BotApi:
    """The client for one bot: one pool for sending, another for getUpdates."""
    base, limit = settings.telegram_api_url, settings.telegram_read_timeout
    return BotApi(
        settings.telegram_bot_token,
        base_url=f"{base}/bot",
        base_file_url=f"{base}/file/bot",
        request=BotHttp(_CONNECTIONS, limit),
        get_updates_request=BotHttp(_POLLING_CONNECTIONS, limit),
    )
