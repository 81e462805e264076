"""Every route of a whole process on a real database: the platforms', the pages', the operators'.

The routes are those of the application itself, so that a new one is asked without being named here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from urllib.parse import parse_qsl, quote, quote_from_bytes

from bot.http import build_app
from bot.wiring import Role, site
from tests.fakes.meta.courier import SIGNATURE as META_SIGNATURE
from tests.fakes.meta.server import SECRET as META_SECRET
from tests.fakes.twilio.server import AUTH_TOKEN
from tests.fakes.twilio.signing import SIGNATURE as TWILIO_SIGNATURE
from tests.fakes.twilio.signing import signature as twilio_signature
from tests.fuzz import corpus
from tests.fuzz.doors import Answer, App, NotAsAnAnswer, Request, ask
from tests.fuzz.engine import Target
from tests.fuzz.mutations import (
    as_form,
    damaged_bytes,
    damaged_document,
    damaged_json,
    damaged_pairs,
    dumped,
    strange_text,
    strange_value,
)
from tests.fuzz.targets.parsers import signed
from tests.kit.web import API, IDENTITY_SECRET
from tests.world import META, PUBLIC, SECRET, SECRET_HEADER, Running, World, open_world

WEB_SECRET = "a secret for tokens that nobody guesses of 32 bytes"
_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW")
_LARGEST = 1_000_000
_REFUSED = (400, 403, 404, 405, 408, 411, 413, 415, 422, 429)

Header = tuple[bytes, bytes]


@dataclass
class Stage:
    """A process that takes in and works on nothing, with some visitors who have a past."""

    world: World
    running: Running
    app: App
    tokens: list[str] = field(default_factory=list)
    refs: list[str] = field(default_factory=list)

    def taken_in(self, channel: str) -> float:
        """The events of a channel that were recorded, whatever they became."""
        [metric] = self.running.process.rt.observer.inbound.collect()
        return sum(
            sample.value
            for sample in metric.samples
            if sample.name.endswith("_total") and sample.labels["channel"] == channel
        )


@asynccontextmanager
async def staged(database_url: str) -> AsyncIterator[Stage]:
    """A process on this database, which is migrated and empty, with every channel."""
    changes: dict[str, Any] = {
        **META,
        "web": True,
        "web_secret": WEB_SECRET,
        "web_identity_secret": IDENTITY_SECRET,
        "web_visitor_per_minute": 10**9,
        "web_address_per_minute": 10**9,
        "chat_messages_per_minute": 10**9,
    }
    async with open_world(database_url) as world:
        running = await world.start(role=Role.WEB, **changes)
        stage = Stage(world, running, build_app(site(running.process)))
        for number in range(6):
            await _visit(stage, number)
        yield stage


async def _visit(stage: Stage, number: int) -> None:
    """Begin a session, and write something with a file."""
    told = await _as_json(stage, "POST", "/session", {})
    stage.tokens.append(told["token"])
    file = {"name": "a.png", "type": "image/png", "data": "iVBORw0="}
    body = {"request_id": f"first-{number}", "text": "hello", "files": [file]}
    await _as_json(stage, "POST", "/messages", body, told["token"])
    page = await _as_json(stage, "GET", "/messages", None, told["token"])
    stage.refs += [f["ref"] for message in page["messages"] for f in message["files"]]


async def _as_json(stage: Stage, method: str, path: str, body: object, token: str = "") -> Any:
    known = [(b"authorization", f"Bearer {token}".encode())] if token else []
    answer = await ask(
        stage.app, Request(method, API + path, known, (json.dumps(body or {}).encode(),))
    )
    assert answer.status in (200, 202), (answer.status, bytes(answer.body))
    return json.loads(answer.body)


def _pieces(chance: Random, body: bytes) -> Sequence[bytes]:
    """A body as it comes, whole or in pieces."""
    if chance.random() < 0.9 or len(body) < 2:
        return (body,)
    cut = chance.randrange(len(body))
    return body[:cut], b"", body[cut:]


_HEADERS = (
    "content-type", "content-length", "content-encoding", "accept", "accept-language", "origin",
    "host", "x-forwarded-for", "x-forwarded-host", "forwarded", "authorization", "cookie",
    "last-event-id", "if-none-match", "range", "x-hub-signature-256", "x-twilio-signature",
    "x-twilio-webhooks-signature-settings", "x-telegram-bot-api-secret-token", "referer",
    "user-agent", "transfer-encoding", "expect", "upgrade", "te",
)  # fmt: skip
_VALUES = (
    "", "*", "0", "-1", "9" * 30, "gzip", "identity", "br, gzip", "null", "https://evil.example",
    "http://[::1", "127.0.0.1, 10.0.0.1", "Bearer", "Bearer x", "Basic Og==", "a=b; c", "bytes=0-",
    "de-DE,de;q=0.9", "\u00b2", "key=1,algorithm=HMAC_SHA256", "algorithm=NONE", "sha256=", "[::",
    "text/html", "application/json; charset=utf-16", "chunked", "100-continue", "\xff\xfe",
    "x" * 9_000,
)  # fmt: skip


def _headers(chance: Random) -> list[Header]:
    """Headers as a server lets them through: names in small letters, values without line ends."""
    found = []
    for _ in range(chance.choice((0, 0, 1, 3, 8))):
        value = chance.choice((chance.choice(_VALUES), strange_text(chance)))
        raw = value.encode("latin-1", "replace").translate(None, b"\r\n\x00")
        found.append((chance.choice(_HEADERS).encode(), raw.strip()))
    return found


def _escaped(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="/")


def _query(chance: Random, names: Sequence[str]) -> str:
    if chance.random() < 0.5:
        return ""

    def pair() -> str:
        name = chance.choice((*names, strange_text(chance)))
        return f"{_escaped(name)}={_escaped(strange_text(chance))}"

    pairs = [pair() for _ in range(chance.choice((1, 2, 5)))]
    return "?" + chance.choice(("&", "&&", ";")).join(pairs)


@dataclass
class Posts:
    """The posts of a platform to one of its routes. `sign` makes the headers that prove it, or with
    another secret do not."""

    stage: Stage
    channel: str
    path: str
    body: Callable[[Random], bytes]
    sign: Callable[[bytes, str, bool], list[Header]]
    counted: bool = True

    def made(self, chance: Random) -> tuple[Request, bool]:
        """A request, and whether it is signed as it must be."""
        body = self.body(chance)
        target = self.path + _query(chance, ("r", "a", "t", "bodySHA256"))
        well = chance.random() < 0.85
        headers = [
            *(_headers(chance) if chance.random() < 0.2 else ()),
            *self.sign(body, target, well),
        ]
        if well:
            headers = [h for h in headers if h[0] != b"content-encoding"]
        return Request("POST", target, headers, _pieces(chance, body), chance.random() < 0.01), well

    async def take(self, given: tuple[Request, bool]) -> str:
        """Send it: a signed one is recorded or refused as nobody's message, the rest is refused."""
        request, well = given
        before = self.stage.taken_in(self.channel)
        answer = await ask(self.stage.app, request)
        after = self.stage.taken_in(self.channel)
        if request.cut:
            return "cut off"
        if not well:
            assert answer.status in (403, 413, 415), answer.status
            assert after == before
            return f"{answer.status} unsigned"
        if answer.status == 200 and self.counted and not _tells_statuses(request):
            assert after > before, "acknowledged, and nothing was recorded"
        assert answer.status == 200 or answer.status in (400, 403, 413), answer.status
        return str(answer.status)


def _tells_statuses(request: Request) -> bool:
    return b"statuses" in b"".join(request.body)


def _by_telegram(_body: bytes, _target: str, well: bool) -> list[Header]:
    return [(SECRET_HEADER.lower().encode(), (SECRET if well else "wrong").encode())]


def _by_meta(body: bytes, _target: str, well: bool) -> list[Header]:
    secret = META_SECRET if well else "wrong"
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return [(META_SIGNATURE.lower().encode(), f"sha256={signed}".encode())]


def _by_twilio(body: bytes, target: str, well: bool) -> list[Header]:
    fields = parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, errors="replace")
    secret = AUTH_TOKEN if well else "wrong"
    made = twilio_signature(PUBLIC + target, fields, secret, "sha1")
    return [(TWILIO_SIGNATURE.lower().encode(), made.encode())]


def _form_of(forms: Callable[[], Sequence[Any]]) -> Callable[[Random], bytes]:
    def made(chance: Random) -> bytes:
        if chance.random() < 0.003:
            return b"Body=" + b"x" * (_LARGEST - chance.choice((0, 6, 200)))
        body = as_form(chance, damaged_pairs(chance, chance.choice(forms())))
        return damaged_bytes(chance, body) if chance.random() < 0.2 else body

    return made


def _documents_of(values: Callable[[], Sequence[Any]], largest: int) -> Callable[[Random], bytes]:
    return lambda chance: damaged_document(chance, values(), largest)


class Pages:
    """The routes of the pages, asked by people who may and by others."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def made(self, chance: Random) -> Request:
        """A request to one of the routes, or near one."""
        method, path = chance.choice(_WEB_ROUTES)
        if chance.random() < 0.05:
            method = chance.choice(_METHODS)
        named = {
            "{id}": chance.choice((f"first-{chance.randrange(6)}", "m1", strange_text(chance))),
            "{ref}": chance.choice(
                (*self.stage.refs, "part-1-0", "part-9-9", strange_text(chance))
            ),
        }
        for name, value in named.items():
            path = path.replace(name, quote(value.encode("utf-8", "surrogatepass"), safe=""))
        target = f"{API}{path}{_query(chance, ('wait', 'before', 'limit', 'after'))}"
        target = target.replace("wait=", "w=")  # A question that is held only waits.
        headers = _headers(chance) if chance.random() < 0.3 else []
        if chance.random() < 0.9:
            headers = [h for h in headers if h[0] != b"origin"]
            headers.append((b"authorization", self._authority(chance, path)))
        body = self._body(chance, path) if method in ("POST", "PUT") else b""
        return Request(method, target, headers, _pieces(chance, body), chance.random() < 0.01)

    def _authority(self, chance: Random, path: str) -> bytes:
        """A token; where sessions end, one that nobody misses."""
        token = chance.choice(self.stage.tokens)
        roll = chance.random()
        if roll < 0.05:
            token = damaged_bytes(chance, token.encode()).decode("latin-1")
        elif roll < 0.15 or path == "/session":
            claims = {"aud": "answerback web session", "sid": "s", "exp": 4 * 10**9, "name": ""}
            claims["sub"] = f"guest:{chance.randrange(10**6)}"
            made = damaged_json(chance, claims) if chance.random() < 0.5 else claims
            token = signed(dumped(chance, made), WEB_SECRET)
        return f"Bearer {token}".encode("latin-1").translate(None, b"\r\n\x00")

    def _body(self, chance: Random, path: str) -> bytes:
        whole = _WEB_BODIES.get(path, {})
        roll = chance.random()
        if roll < 0.5:
            name = f"m{chance.randrange(10**9)}"
            fields = {n: strange_text(chance) for n in ("text", "button") if chance.random() < 0.6}
            return dumped(chance, {**whole, "request_id": name, **fields})
        if roll < 0.6:
            identity = {"sub": "u1", "exp": self.stage.world.clock.wall() + 600, "name": "Ada"}
            claims = dumped(chance, damaged_json(chance, identity))
            return dumped(chance, {"identity": signed(claims, IDENTITY_SECRET)})
        if roll < 0.7:
            data = base64.b64encode(chance.randbytes(chance.choice((1, 50, 5_000)))).decode()
            file = {"name": strange_text(chance), "type": chance.choice(_TYPES), "data": data}
            made = {"request_id": f"f{chance.randrange(10**9)}", "files": [file, file]}
            return dumped(chance, damaged_json(chance, made) if chance.random() < 0.5 else made)
        return damaged_document(chance, [whole], 256_000)

    async def take(self, request: Request) -> str:
        """An answer that is no fault of ours, in the form that every answer has."""
        answer = await ask(self.stage.app, request)
        if request.cut:
            return "cut off"
        self._look_at(request, answer)
        return f"{answer.status}"

    def _look_at(self, request: Request, answer: Answer) -> None:
        assert answer.headers.get(b"x-content-type-options") == b"nosniff", answer.headers
        kind = answer.headers.get(b"content-type", b"")
        if answer.status in _REFUSED and request.method != "HEAD":
            assert kind == b"application/json", (answer.status, kind)
            assert list(json.loads(answer.body)) == ["error"]
        if b"html" in kind:
            raise NotAsAnAnswer("a page, where data was asked for")


_TYPES = (
    "image/png",
    "text/html",
    "text/plain; charset=x",
    "image/svg+xml",
    "\r\n",
    "a/b" * 50,
    "",
)
_WEB_ROUTES = (
    ("POST", "/session"),
    ("POST", "/session"),
    ("POST", "/messages"),
    ("POST", "/messages"),
    ("POST", "/messages"),
    ("GET", "/messages"),
    ("GET", "/turns/{id}"),
    ("GET", "/events"),
    ("POST", "/seen"),
    ("POST", "/stop"),
    ("GET", "/files/{ref}"),
    ("GET", "/{id}"),
    ("GET", "/openapi.json"),
)
_WEB_BODIES: Mapping[str, Mapping[str, Any]] = {
    "/session": {"identity": None},
    "/messages": {"request_id": "m1", "text": "hello", "button": "", "files": []},
    "/seen": {"n": 1},
    "/stop": {},
}


class Strays:
    """Every path that the application has, and those near it, by every method."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        process = stage.running.process
        posted = [route.path for _, route in site(process).routes]
        self.paths = ["/", "/healthz", "/readyz", "/metrics", "/web/", "/web/answerback.js",
                      "/operator", "/operator/", "/operator/login", *posted]  # fmt: skip

    def made(self, chance: Random) -> Request:
        path = chance.choice(self.paths)
        roll = chance.random()
        if roll < 0.3:
            raw = damaged_bytes(chance, path.encode())[:3_000]
            path = "/" + quote_from_bytes(raw.lstrip(b"/"), safe="/%")
        elif roll < 0.4:
            path += _escaped(strange_text(chance))
        query = ("hub.mode", "hub.verify_token", "hub.challenge", "next", "q", "page")
        body = chance.choice(
            (b"", b"{}", chance.randbytes(20), dumped(chance, strange_value(chance)))
        )
        return Request(
            chance.choice(_METHODS), path + _query(chance, query), _headers(chance), (body,)
        )

    async def take(self, request: Request) -> str:
        """Readiness may say no; nothing else is a 5xx."""
        if request.target.partition("?")[0] == "/readyz":
            request = replace(request, target="/healthz")
        answer = await ask(self.stage.app, request)
        return f"{answer.status}"


def targets(stage: Stage) -> Sequence[Target]:
    """The routes of this process."""
    posts = [
        Posts(stage, "telegram", "/telegram/webhook",
              _documents_of(corpus.updates, _LARGEST), _by_telegram),
        Posts(stage, "whatsapp", "/whatsapp/webhook", _form_of(corpus.forms), _by_twilio),
        Posts(stage, "whatsapp", "/whatsapp/fallback", _form_of(corpus.forms), _by_twilio,
              counted=False),
        Posts(stage, "whatsapp", "/whatsapp/status", _form_of(corpus.status_forms), _by_twilio,
              counted=False),
        Posts(stage, "whatsapp-cloud", "/whatsapp-cloud/webhook",
              _documents_of(corpus.bodies, 4 * _LARGEST), _by_meta),
    ]  # fmt: skip
    shares = (70, 60, 5, 25, 70)
    pages, strays = Pages(stage), Strays(stage)
    return [
        *(
            Target(f"route: {post.path}", share, post.take, post.made, most_seconds=6.0)
            for post, share in zip(posts, shares, strict=True)
        ),
        Target("route: pages", 120, pages.take, pages.made),
        Target("route: any other", 50, strays.take, strays.made),
    ]
