"""Answers of other servers to our calls: to sends and questions, for files and pages."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, get_args

import httpx

from bot.agents.assistant.web_page import PageUnreadable, WebReader, _page
from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.domain.delivery import Lookup, Outcome
from bot.domain.errors import (
    AgentFailed,
    AnswerbackError,
    AttachmentUnavailable,
    GiveUp,
    Retry,
)
from bot.domain.message import Attachment
from bot.domain.ports import SendRef
from bot.domain.reply import Reply
from channels.telegram.api import BotHttp
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp_cloud.channel import WhatsAppCloudChannel
from tests.agents.turns import FakeTurn, message
from tests.channels.telegram import kit as telegram_kit
from tests.channels.whatsapp import kit as whatsapp_kit
from tests.channels.whatsapp_cloud import kit as whatsapp_cloud_kit
from tests.fuzz import corpus
from tests.fuzz.engine import Target
from tests.fuzz.mutations import damaged_bytes, damaged_document, strange_text
from tests.fuzz.targets.parsers import LARGEST, _date, storable

_OUTCOMES = get_args(Outcome)
_PAGES = (
    (
        b"<html><head><title>T</title><style>p{}</style></head><body><p>Hello &amp; <b>you</b>"
        b"<br><script>x()</script><!-- c --><a href='/x'>y</a></body></html>"
    ),
    b"<!DOCTYPE html><![CDATA[x]]><?php x ?><div><ul><li>a<li>b</ul></div>&#128512;&#xD800;",
    "<p>ä€😀</p>".encode(),
    b"plain text\n\n\nwith lines",
)
_NO_LINES = {0: None, 10: None, 13: None}
"""No server hands on a header with these."""
_MIMES = (
    "text/html",
    "text/html; charset=utf-16",
    "text/html; charset=punycode",
    "text/plain; charset=idna",
    "application/json",
)


@dataclass(frozen=True)
class Said:
    """One answer of a server; `headers` in Latin-1. The body comes in pieces."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def response(self) -> httpx.Response:
        """As a transport hands it on: headers, and a body to be read."""
        raw = [(n.encode(), v.encode("latin-1", "replace")) for n, v in self.headers.items()]
        return httpx.Response(self.status, headers=raw, stream=_Pieces(self.body))


@dataclass
class _Pieces(httpx.AsyncByteStream):
    body: bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self.body), 65_536):
            yield self.body[at : at + 65_536]


class Stub(httpx.AsyncBaseTransport):
    """A way to no server: answers what it is told to."""

    said: Sequence[Said] = ()
    _next = 0

    def say(self, said: Sequence[Said]) -> None:
        """Answer so from now on, the last one again and again."""
        self.said, self._next = said, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        said = self.said[min(self._next, len(self.said) - 1)]
        self._next += 1
        response = said.response()
        response.request = request
        return response


_UNPACKED = 100 * 1024 * 1024
"""Bytes: a piece of a packed answer is a thousand times as long at most before it is counted."""
_CODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda raw: raw,
    "gzip, gzip": lambda raw: gzip.compress(gzip.compress(raw)),
}
_STATUSES = (200, 200, 200, 200, 201, 204, 302, 400, 401, 403, 404, 409, 413, 429, 500, 502, 503)


def _headers(chance: Random) -> dict[str, str]:
    found: dict[str, str] = {}
    if chance.random() < 0.4:
        found["retry-after"] = "".join(c for c in _date(chance) if c not in "\r\n\x00")[:200]
    if chance.random() < 0.2:
        found["date"] = "".join(c for c in _date(chance) if c not in "\r\n\x00")[:200]
    if chance.random() < 0.1:
        usage = damaged_document(chance, [{"1": [{"estimated_time_to_regain_access": 5}]}], 4_000)
        found["x-business-use-case-usage"] = usage.decode("latin-1").replace("\n", "")[:4_000]
    if chance.random() < 0.1:
        found["content-length"] = chance.choice(("0", "-1", "9" * 30, "abc", "²"))
    if chance.random() < 0.3:
        found["location"] = _address(chance)
    return found


_ADDRESSES = (
    "https://media.twiliocdn.com/x",
    "https://api.twilio.com/2010-04-01/Accounts/AC/Messages/MM/Media/ME",
    "https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1",
    "http://169.254.169.254/latest/meta-data",
    "http://127.0.0.1:8080/metrics",
    "https://xn--a/",
    "https://xn--/",
    "https://\u2488/",
    "http://[::1]/",
    "http://[::1",
    "https://a:99999/",
    "https://a:b/",
    "https://user:pw@media.twiliocdn.com/",
    "//other.example/x",
    "/relative",
    "?",
    "#",
    "file:///etc/passwd",
    "gopher://x/",
    "https://media.twiliocdn.com.evil.example/",
    "https://" + "a" * 70 + ".example/",
    "https://" + "a." * 200 + "example/",
    "x" * 70_000,
)


def _address(chance: Random) -> str:
    whole = chance.choice(_ADDRESSES)
    if chance.random() < 0.5:
        return whole
    raw = damaged_bytes(chance, whole.encode(), [a.encode() for a in _ADDRESSES])
    return raw.decode("utf-8", "replace")


def _said(chance: Random) -> Said:
    """An answer in JSON, more or less."""
    headers = _headers(chance)
    body = damaged_document(chance, corpus.provider_answers(), LARGEST)
    if chance.random() < 0.1:
        coding = chance.choice(tuple(_CODINGS))
        headers["content-encoding"] = coding
        if chance.random() < 0.2:
            body = b"\x00" * chance.choice((10**6, 3 * 10**7))
        body = _CODINGS[coding](body)
        if chance.random() < 0.3:
            body = damaged_bytes(chance, body)
    return Said(chance.choice(_STATUSES), headers, body)


def _several(chance: Random) -> Sequence[Said]:
    return [_said(chance) for _ in range(chance.choice((1, 1, 2, 3)))]


_PLACES: Sequence[Any] = (
    {"ok": True, "result": {"file_path": "photos/file_1.jpg"}},
    {"url": "https://lookaside.fbsbx.com/x", "file_size": 100},
)


def _a_file(chance: Random) -> tuple[str, Sequence[Said]]:
    """A file's address as a message names it, and what is answered for it."""
    said = _several(chance)
    if chance.random() < 0.7:
        place = chance.choice(_PLACES)
        if "url" in place and chance.random() < 0.3:
            place = {**place, "url": _address(chance)}
        roll, big = chance.random(), b"x" * 100
        if roll < 0.1:
            big = b"\xff" * 10**6
        elif roll < 0.12:
            big = b"\x00" * 25_000_000
        said = [Said(200, {}, json.dumps(place).encode()), Said(200, _headers(chance), big)]
    return chance.choice(("7", _address(chance))), said


_REF = SendRef(7, 1, whatsapp_kit.NOON)
_REPLY = Reply("hello *you*")


def _good(outcome: object) -> str:
    """An outcome that can be recorded: of a known kind, storable, with a wait that ends."""
    assert isinstance(outcome, (*_OUTCOMES, Lookup)), outcome
    assert storable(outcome), outcome
    wait = getattr(outcome, "retry_after", None)
    assert wait is None or (0 <= wait < math.inf), outcome
    assert len(repr(outcome)) < 2_000, outcome
    return type(outcome).__name__


async def _told(asking: Awaitable[object]) -> str:
    """A question to a platform is answered by a value or by one of our own errors."""
    try:
        value = await asking
    except AnswerbackError as error:
        assert storable(str(error)), error
        return type(error).__name__
    # What a platform said is kept as JSON.
    assert storable(json.dumps(value) if isinstance(value, list | dict) else value), value
    return "told"


Ask = Callable[[], Awaitable[object]]


class _Line:
    """A channel whose calls are answered by a stub."""

    def __init__(self, channel: Any, stub: Stub, sending: Ask, questions: Sequence[Ask]) -> None:
        self.channel, self.stub, self.sending, self.questions = channel, stub, sending, questions
        self._turn = 0

    async def take(self, said: Sequence[Said]) -> str:
        """A send, or the next of the questions."""
        self.stub.say(said)
        self._turn += 1
        if self._turn % 2:
            return _good(await self.sending())
        return await _told(self.questions[self._turn // 2 % len(self.questions)]())

    async def fetch(self, given: tuple[str, Sequence[Said]]) -> str:
        """A file, or the reason that there is none."""
        ref, said = given
        self.stub.say(said)
        try:
            content = await self.channel.fetch(Attachment("photo", ref))
        except AttachmentUnavailable as error:
            assert storable(str(error))
            return "unavailable"
        assert len(content) <= 101 * 1024 * 1024
        return "a file"


def _telegram() -> _Line:
    stub = Stub()
    channel = telegram_kit.channel_with(telegram_kit.StillClock(), "https://api.telegram.org")
    channel._opened = True
    for pool in channel._api.pools:
        assert isinstance(pool, BotHttp)
        pool._transport = stub  # type: ignore[assignment]  # it is asked as a transport is
    (part, *_) = channel.compose(_REPLY, telegram_kit.private())
    questions: list[Ask] = [
        channel.me,
        channel.webhook_info,
        channel.sees_all_groups,
        lambda: channel.updates(None, 1.0),
        lambda: channel.acknowledge("1", "x"),
        lambda: channel.typing(telegram_kit.private()),
    ]
    return _Line(channel, stub, lambda: channel.send(telegram_kit.private(), part, _REF), questions)


async def _known(_seen: Mapping[str, float | None]) -> frozenset[str]:
    return frozenset()


def _twilio() -> _Line:
    stub = Stub()
    settings = whatsapp_kit.settings_with()
    channel = WhatsAppChannel(settings, settings.twilio_senders[0], whatsapp_kit.StillClock())
    channel._http._transport = stub  # type: ignore[assignment]  # it is asked as a transport is
    part, to = whatsapp_kit.part("hello"), whatsapp_kit.to()

    async def came() -> object:
        since = datetime.fromtimestamp(whatsapp_kit.NOON, UTC)
        return [message async for message in channel.inbound_since(since, _known)]

    questions: list[Ask] = [
        lambda: channel.look_up(to, part, _REF, frozenset()),
        lambda: channel.status("SM" + "0" * 32),
        channel.webhook_info,
        channel.clock_ahead,
        came,
    ]
    return _Line(channel, stub, lambda: channel.send(to, part, _REF), questions)


def _meta() -> _Line:
    stub = Stub()
    settings = whatsapp_cloud_kit.settings_with()
    [number, *_] = settings.numbers
    channel = WhatsAppCloudChannel(settings, number, whatsapp_kit.StillClock())
    channel._api._transport = stub  # type: ignore[assignment]  # it is asked as a transport is
    to = whatsapp_cloud_kit.to()
    (part, *_) = channel.compose(_REPLY, to)
    questions: list[Ask] = [
        channel.info,
        channel.token_info,
        lambda: channel.subscribed_apps("1"),
        lambda: channel.app_subscription("1"),
        lambda: channel.typing(to),
        lambda: channel.recovered("190"),
    ]
    return _Line(channel, stub, lambda: channel.send(to, part, _REF), questions)


class _Agents:
    """An agent over HTTP whose server answers what it likes."""

    def __init__(self) -> None:
        self.stub = Stub()
        self.agent = HttpAgent(
            HttpAgentConfig("https://agent.example/turn"), whatsapp_kit.StillClock()
        )
        self.agent._client = httpx.AsyncClient(transport=self.stub, trust_env=False)

    async def take(self, said: Sequence[Said]) -> str:
        self.stub.say(said)
        try:
            reply = await self.agent(FakeTurn((message("hello"),)))
        except (AgentFailed, GiveUp, Retry) as told:
            assert storable(str(told))
            return type(told).__name__
        assert storable(reply)
        return "a reply"


def _a_page(chance: Random) -> Said:
    body = damaged_bytes(chance, chance.choice(_PAGES), _PAGES)
    roll = chance.random()
    if roll < 0.02:
        piece = chance.choice(
            (b"<", b"<a ", b"&#", b"<!--", b"<!", b"</", b"<p", b"<b>", b'<a x="')
        )
        body = body + piece * (chance.choice((1_000, 100_000, 2_000_000)) // len(piece))
    headers = {
        "content-type": chance.choice((*_MIMES, strange_text(chance)[:50])).translate(_NO_LINES)
    }
    if roll > 0.9:
        headers["content-encoding"] = "gzip"
    return Said(chance.choice((200, 200, 200, 404)), headers, body)


async def _read_page(said: Said) -> str:
    try:
        text = await _page(said.response())
    except PageUnreadable as error:
        assert storable(str(error))
        return "unreadable"
    assert len(text) < 20_100
    return "read"


async def _nowhere(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def _visit(address: str) -> str:
    """No address leads anywhere here; each is refused in words for the model."""
    try:
        await WebReader(_nowhere).read(address)
    except PageUnreadable as error:
        return str(error)[:40]
    raise AssertionError("it was read")


def targets() -> Sequence[Target]:
    """All that is answered to us."""
    telegram, twilio, meta, agents = _telegram(), _twilio(), _meta(), _Agents()
    return [
        Target("answers: telegram", 40, telegram.take, _several, most_memory=_UNPACKED),
        Target("answers: twilio", 40, twilio.take, _several, most_memory=_UNPACKED),
        Target("answers: meta", 40, meta.take, _several, most_memory=_UNPACKED),
        Target("answers: an agent", 20, agents.take, _several, most_memory=_UNPACKED),
        Target("files: telegram", 5, telegram.fetch, _a_file, most_memory=120 * 1024 * 1024),
        Target("files: twilio", 15, twilio.fetch, _a_file, most_memory=120 * 1024 * 1024),
        Target("files: meta", 10, meta.fetch, _a_file, most_memory=120 * 1024 * 1024),
        Target("pages: a body", 15, _read_page, _a_page),
        Target("pages: an address", 15, _visit, _address),
    ]
