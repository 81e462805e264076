"""A call to a provider: once, within real time limits, without a trace.

It stands on httpx's transport, below its client, because that client logs whole URLs and these
carry telephone numbers. It follows no redirect, repeats nothing and reads no environment.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache

import httpx

from bot.domain.errors import AnswerbackError, AttachmentUnavailable
from bot.domain.ports import STILL_OURS
from channels.raw import Raw

_WRITING = ".send_request_headers.started"
"""The end of the event in which httpcore's trace tells that a request begins to leave."""
_CONNECT_TIMEOUT = 5.0
_MOST_DIGITS = 20
LARGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer that is held in memory, once it is unpacked: more than any should have."""


class CallFailed(AnswerbackError):
    """A call to a provider had no good answer."""


class NothingReached(CallFailed):
    """The connection failed before the first byte of the request: nothing was asked."""


class NoAnswer(CallFailed):
    """The request may have been read and carried out; the answer is missing or broken."""


class ErrorAnswer(CallFailed):
    """The provider answered outside 2xx. `code` is its own code, `retry_after` the raw header."""

    def __init__(self, status: int, code: int | None, retry_after: str) -> None:
        super().__init__(f"status {status}, code {code or 'none'}")
        self.status = status
        self.code = code
        self.retry_after = retry_after


@cache
def certificates() -> ssl.SSLContext:
    """One context for all connections of a process: loading it costs 30 ms and 1 MB."""
    return httpx.create_ssl_context(trust_env=False)


async def leave_in_time(event: str, _info: Mapping[str, object]) -> None:
    """A trace for httpcore that keeps a request from leaving after its sender's lease. Raises
    ConnectTimeout: the wait for the connection was too long, and nothing left."""
    if event.endswith(_WRITING) and not STILL_OURS.get()():
        raise httpx.ConnectTimeout("the lease ended before the request could leave")


class _WriteTrace:
    """Notices, through httpcore's trace, whether the request was begun to be written."""

    def __init__(self) -> None:
        self.written = False

    async def __call__(self, event: str, info: Mapping[str, object]) -> None:
        await leave_in_time(event, info)
        self.written = self.written or event.endswith(_WRITING)


class OneExchange:
    """The connections to a provider; each call is made once."""

    def __init__(self) -> None:
        self._transport = httpx.AsyncHTTPTransport(
            verify=certificates(),
            trust_env=False,
            limits=httpx.Limits(max_connections=100, keepalive_expiry=4.0),
        )

    async def close(self) -> None:
        await self._transport.aclose()

    @asynccontextmanager
    async def exchange(self, request: httpx.Request, total: float) -> AsyncIterator[httpx.Response]:
        """Send `request`; the answer's body is read inside the block, within the same limit of
        seconds. Raises NothingReached or NoAnswer, whose texts name kinds of errors only."""
        trace = _WriteTrace()
        # Less than `total`: a handshake that is cancelled from outside leaks its socket.
        connect = min(_CONNECT_TIMEOUT, total / 2)
        request.extensions = {
            "timeout": {"connect": connect, "pool": connect, "read": total, "write": total},
            "trace": trace,
        }
        try:
            async with asyncio.timeout(total):
                answer = await self._transport.handle_async_request(request)
                try:
                    yield answer
                finally:
                    await answer.aclose()
        except (httpx.RequestError, TimeoutError) as error:
            failure = NoAnswer if trace.written else NothingReached
            raise failure(_words(error)) from None


_KINDS: Sequence[tuple[type[BaseException], str]] = (
    (socket.gaierror, "its name is not known to the DNS"),
    (ConnectionRefusedError, "the connection was refused"),
    (ssl.SSLError, "no connection by TLS"),
    (httpx.ConnectTimeout, "no connection in time"),
    (TimeoutError, "no answer in time"),
    (httpx.TimeoutException, "no answer in time"),
)


def _words(error: BaseException) -> str:
    """The kind of an error in words: its own text may name an address."""
    for kind, words in _KINDS:
        if any(isinstance(cause, kind) for cause in _causes(error)):
            return f"{words} ({type(error).__name__})"
    return type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that it came from."""
    yield error
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _causes(part)
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield from _causes(cause)


async def text_of(answer: httpx.Response) -> str:
    """The text of an answer, of a size that one may have. Raises NoAnswer."""
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise NoAnswer("the answer is too large")
    return body.decode("utf-8", "replace")


def parsed(text: str) -> Raw:
    """The object in an answer; an empty one for what is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def too_large(largest: int) -> AttachmentUnavailable:
    """The refusal of a file of more than so many bytes."""
    return AttachmentUnavailable(f"the file is larger than {largest // (1024 * 1024)} MB")


async def bounded(answer: httpx.Response, largest: int) -> bytes:
    """A file's bytes, at most so many. Raises AttachmentUnavailable."""
    told = answer.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and int(told[:_MOST_DIGITS]) > largest:
        raise too_large(largest)
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > largest:
            raise too_large(largest)
    return bytes(body)
