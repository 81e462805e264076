"""One exchange, within real limits, on connections that behave badly."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from channels.http import ErrorAnswer, NoAnswer, NothingReached
from channels.whatsapp.api import TwilioHttp
from tests.limits import PATIENCE

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SHORT = 0.4


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[str]:
    """A raw server; its connections are broken at the end."""
    writers: list[asyncio.StreamWriter] = []

    async def each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(each, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


@asynccontextmanager
async def client(timeout: float = SHORT) -> AsyncIterator[TwilioHttp]:
    http = TwilioHttp(timeout)
    try:
        yield http
    finally:
        await http.close()


def answering(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    return serve


async def test_a_server_that_never_answers_ends_within_the_limit() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async with served(silent) as url, client() as http, asyncio.timeout(PATIENCE):
        with pytest.raises(NoAnswer):
            await http.request("POST", url, data={"Body": "x"})


async def test_an_answer_that_trickles_ends_within_the_limit_as_a_whole() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 1000000\r\n\r\n")
        gone = False
        while not gone:
            writer.write(b"x")
            try:
                gone = not await asyncio.wait_for(reader.read(1), 0.05)
            except TimeoutError:
                continue

    async with served(trickle) as url, client() as http, asyncio.timeout(PATIENCE):
        with pytest.raises(NoAnswer):
            await http.request("POST", url, data={"Body": "x"})


async def test_nobody_listening_proves_that_nothing_was_asked() -> None:
    async with served(answering(b"")) as url:
        pass
    async with client() as http:
        with pytest.raises(NothingReached):
            await http.request("POST", url)


async def test_a_tls_handshake_that_fails_proves_that_nothing_was_asked() -> None:
    seen: list[bytes] = []

    async def not_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(5))
        writer.write(b"this is not TLS\r\n")
        writer.close()

    async with served(not_tls) as url, client() as http:
        with pytest.raises(NothingReached):
            await http.request("POST", url.replace("http", "https"), data={"Body": "x"})
    assert seen[0][:1] == b"\x16"


async def test_a_handshake_that_hangs_proves_that_nothing_was_asked() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        await reader.read(1)

    async with served(silent) as url, client() as http:
        with pytest.raises(NothingReached):
            await http.request("POST", url.replace("http", "https"), data={"Body": "x"})


async def test_one_request_is_made_whatever_comes_back() -> None:
    requests: list[bytes] = []

    async def failing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 503 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with served(failing) as url, client() as http:
        with pytest.raises(ErrorAnswer) as failure:
            await http.request("POST", url, data={"Body": "x"})
    assert len(requests) == 1
    assert (failure.value.status, failure.value.code, failure.value.retry_after) == (503, None, "9")


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with served(answering(answer)) as url, client() as http:
        with pytest.raises(ErrorAnswer) as failure:
            await http.request("GET", url)
    assert failure.value.status == 302


@pytest.mark.parametrize(
    ("body", "code"),
    [(b'{"code": 63016}', 63016), (b'{"code": true}', None), (b"[]", None), (b"<html>", None)],
)
async def test_twilios_own_code_is_read_where_there_is_one(body: bytes, code: int | None) -> None:
    head = b"HTTP/1.1 400 Bad\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    async with served(answering(head + body)) as url, client() as http:
        with pytest.raises(ErrorAnswer) as failure:
            await http.request("GET", url)
    assert failure.value.code == code


async def test_what_is_not_a_url_proves_that_nothing_was_asked() -> None:
    async with client() as http:
        for url in ("http://[", "gopher://x", "http://x\x00y"):
            with pytest.raises(NothingReached):
                await http.request("GET", url)


async def test_failures_name_a_kind_and_never_an_address() -> None:
    async with client() as http:
        with pytest.raises(NothingReached) as failure:
            await http.request("GET", "http://127.0.0.1:1/?To=whatsapp:+15550100015")
    assert str(failure.value) == "the connection was refused (ConnectError)"
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_an_answer_that_is_larger_than_any_is_given_up(
    monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    monkeypatch.setattr("channels.http.LARGEST_ANSWER", 100_000)
    body = b"0" * 1_000_000
    sent = gzip.compress(body) if coding == "gzip" else body
    head = f"HTTP/1.1 201 X\r\nContent-Encoding: {coding}\r\nContent-Length: {len(sent)}\r\n\r\n"
    async with served(answering(head.encode() + sent)) as url, client(PATIENCE) as http:
        with pytest.raises(NoAnswer, match="too large"):
            await http.request("POST", url, data={"Body": "x"})
