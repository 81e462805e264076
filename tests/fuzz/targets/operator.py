"""The operator's page: every route of it, asked by whoever acts, whoever reads and whoever may not.

The routes are those of the page itself, and its views say who may ask them: a new view is asked,
and refused to others, without being named here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote
from uuid import UUID

from bot.domain.concern import Concern
from bot.domain.ending import Ending
from bot.domain.operators import Role
from bot.domain.run import RunState
from bot.operator.acts import ACTS
from bot.operator.app import VIEWS, OperatorPage
from bot.operator.door import PATH, SECURITY
from bot.operator.sign_in import COOKIE
from tests.fuzz.doors import Answer, NotAsAnAnswer, Request, ask
from tests.fuzz.engine import Target
from tests.fuzz.mutations import Pairs, as_form, damaged_bytes, damaged_pairs, strange_text
from tests.fuzz.targets.routes import (
    METHODS,
    OPERATORS,
    Stage,
    damaged_headers,
    in_pieces,
    query_of,
)

HOST = "127.0.0.1:8080"
_NUMBERS = (
    *("0", "1", "-1", "007", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("9" * 30, "9" * 5_000, "1.5", "1_0", "\u0663", "nan", "inf", "-inf", "1e999", "1e308"),
)
_SCRIPT = b"<script>alert(1)</script>"
_CHARSETS = (b"utf-8", b"latin-1", b"unicode_escape", b"undefined", b"idna", b"utf-7", b"x")
_LONG = 20_000
_KINDS = ("image/png", "text/html", "text/plain; charset=x", "image/svg+xml", "a/b" * 50, "", "x")
_OPEN = (f"{PATH}/sign-in", f"{PATH}/static/")
_FOR_ACTING = [
    (view.method, re.compile(re.sub(r"\\{\w+(:\w+)?\\}", "[^/]+", re.escape(PATH + view.path))))
    for view in VIEWS
    if view.role is Role.ACTING
]


@dataclass(frozen=True, slots=True)
class Pass:
    """A session: who has it, its cookie, and the token of its forms."""

    role: Role | None
    cookie: str
    form_token: str


@dataclass(frozen=True, slots=True)
class Visit:
    """A request, whose it is, and whether its form may be taken."""

    request: Request
    role: Role | None
    well: bool


async def _begin(page: OperatorPage, name: str) -> Pass:
    who = page._sessions.named(name)
    assert who is not None
    cookie = await page._sessions.begin(who)
    session = await page._sessions.find(cookie)
    assert session is not None
    return Pass(who.role, cookie, session.form_token)


class OperatorPages:
    """The routes of the page, with a session of each role."""

    def __init__(self, stage: Stage, page: OperatorPage, passes: Mapping[str, Pass]) -> None:
        self.stage, self.page = stage, page
        self.passes = dict(passes)
        self._routes = [(m, r.path) for r in page.routes for m in sorted(r.methods or ())]
        self._assets = list(page._tools.look._contents)

    def made(self, chance: Random) -> Visit:
        """A request to one of the routes, or near one."""
        method, path = chance.choice(self._routes)
        posted = method == "POST"
        if chance.random() < 0.03:
            method = chance.choice(METHODS)
        own = self._pass(chance)
        target = self._filled(chance, path) + _query(chance)
        headers = damaged_headers(chance) if chance.random() < 0.1 else []
        here = chance.random() < 0.97
        if here:
            headers = [h for h in headers if h[0] not in _OF_THE_DOOR]
            headers.append((b"host", HOST.encode()))
        headers.append((b"cookie", f"{COOKIE}={own.cookie}".encode("latin-1", "replace")))
        if not posted:
            if chance.random() < 0.2:
                headers.append((b"accept", b"text/event-stream"))
            return Visit(Request(method, target, headers), own.role if here else None, True)
        well = chance.random() < 0.9
        token = own.form_token if well else strange_text(chance)
        origin = b"http://" + HOST.encode()
        if here and chance.random() < 0.03:
            well, origin = False, b"https://evil.example"
        headers = [h for h in headers if h[0] != b"origin"] + [(b"origin", origin)]
        kind, body, whole = _form(chance, path, token)
        headers = [h for h in headers if h[0] not in (b"content-type", b"content-length")]
        headers.append((b"content-type", kind))
        cut = chance.random() < 0.01
        request = Request(method, target, headers, in_pieces(chance, body), cut)
        return Visit(request, own.role if here else None, well and whole)

    def _pass(self, chance: Random) -> Pass:
        """A session of somebody; now and then one that is none."""
        roll = chance.random()
        own = self.passes["ada" if roll < 0.7 else "bob"]
        if roll < 0.85:
            return own
        # Of a signature the last letter has bits that nobody reads: what is signed is damaged.
        hurt = damaged_bytes(chance, own.cookie[:60].encode()).decode("latin-1") + own.cookie[60:]
        cookie = chance.choice(("", "x", "a.b.c", hurt, hurt, strange_text(chance)))
        cookie = re.sub("[^!-~\xa1-\xff]", "", cookie)
        return own if cookie == own.cookie else Pass(None, cookie, own.form_token)

    def _filled(self, chance: Random, path: str) -> str:
        if chance.random() < 0.01:
            raw = damaged_bytes(chance, path.encode())[:3_000]
            return "/" + quote(raw.lstrip(b"/"), safe="/%")
        return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: self._value(chance, found[1]), path)

    def _value(self, chance: Random, name: str) -> str:
        known: Mapping[str, Sequence[str]] = {
            "name": self._assets,
            "of": [of for of, _ in ACTS],
            "act": [act for _, act in ACTS],
        }
        roll = chance.random()
        if roll < 0.8:
            found = chance.choice(known.get(name) or [str(chance.randrange(1, 60))])
        else:
            found = chance.choice(_NUMBERS) if roll < 0.92 else strange_text(chance)
        return quote(found.encode("utf-8", "surrogatepass"), safe="")

    async def take(self, visit: Visit) -> str:
        """An answer that is no fault of ours, and nothing of the page to whoever may not."""
        inside = visit.request.target.startswith(f"{PATH}/")
        answer = await ask(self.stage.app if inside else self.page, visit.request)
        if visit.request.cut:
            return "cut off"
        self._look_at(visit, answer)
        if visit.request.target.startswith(f"{PATH}/sign-out") and answer.status == 303:
            for name in self.passes:
                self.passes[name] = await _begin(self.page, name)
        return f"{answer.status}"

    def _look_at(self, visit: Visit, answer: Answer) -> None:
        if visit.role is None:
            path = visit.request.target.partition("?")[0]
            if answer.status == 200 and not path.startswith(_OPEN):
                assert b"On to the page" in answer.body, bytes(answer.body[:300])
        if visit.request.method == "POST" and not _is_way_in(visit):
            acts = any(
                method == "POST" and path.fullmatch(visit.request.target.partition("?")[0])
                for method, path in _FOR_ACTING
            )
            if visit.role is None or not visit.well or (acts and visit.role is Role.READING):
                assert answer.status in _REFUSED, answer.status
        if answer.status == 404 and answer.body == b"Not Found\n":
            return  # The door itself: there is no such page here.
        for name, value in SECURITY.items():
            assert answer.headers.get(name.lower().encode()) == value.encode(), name
        if b"html" in answer.headers.get(b"content-type", b"") and _SCRIPT in answer.body:
            raise NotAsAnAnswer("words of a person are part of the page")


def _is_way_in(visit: Visit) -> bool:
    return visit.request.target.startswith(f"{PATH}/sign-in")


_REFUSED = (400, 401, 403, 404, 405, 413)
_OF_THE_DOOR = (
    *(b"host", b"x-forwarded-for", b"forwarded", b"x-forwarded-host", b"x-real-ip", b"via"),
    *(b"origin", b"cookie"),
)


def _cursor(chance: Random) -> str:
    """A place in a list as an address tells it, good or damaged."""
    first = chance.choice((*(c.value for c in Concern), "1800003600.5", *_NUMBERS))
    rest = [
        chance.choice(("5", "1800003600.0", *_NUMBERS)) for _ in range(chance.choice((0, 2, 2, 3)))
    ]
    return "-".join((first, *rest))


def _query(chance: Random) -> str:
    if chance.random() < 0.4:
        return ""
    known: Mapping[str, Sequence[str]] = {
        "before": (_cursor(chance), chance.choice(_NUMBERS)),
        "after": (_cursor(chance),),
        "reason": [one.value for one in Concern],
        "state": [one.value for one in RunState],
        "ending": [one.value for one in Ending],
        "q": ("1", "tg-700100201-41", "700100201", "+15550100022", chance.choice(_NUMBERS)),
        "all": ("1",),
        "words": ("1",),
        "page": ("p" * 32,),
        "canned": ("hello",),
        "next": (f"{PATH}/chats/1", "//evil.example", f"{PATH}/../x", "javascript:alert(1)"),
    }
    return query_of(chance, known)


_FIELDS: Mapping[str, Sequence[str]] = {
    "reason": ("", "because"),
    "text": ("hello", "<script>alert(1)</script>", "x" * _LONG, "x" * (_LONG + 1)),
    "seen": ("0", "45", "9223372036854775807", "9" * 30, "-1"),
    "act": [act for _, act in ACTS],
    "part": ("1", "45", *_NUMBERS),
    "name": ("ada", "bob", "nobody"),
    "password": ("wrong",),
    "next": ("", f"{PATH}/chats", "//evil.example"),
}


def _form(chance: Random, path: str, token: str) -> tuple[bytes, bytes, bool]:
    """A form: its type, its bytes, and whether its token is whole."""
    key = chance.choice((*[UUID(int=chance.getrandbits(128)).hex] * 4, strange_text(chance)))
    pairs: Pairs = [("form_token", token), ("key", key)]
    pairs += [
        (name, chance.choice((*values, strange_text(chance))))
        for name, values in _FIELDS.items()
        if chance.random() < 0.8
    ]
    damaged = damaged_pairs(chance, pairs) if chance.random() < 0.3 else pairs
    whole = [value for name, value in damaged if name == "form_token"][-1:] == [token]
    if chance.random() < 0.3 or path.endswith("/reply"):
        body = _multipart(chance, damaged)
        kind = b"multipart/form-data; boundary=" + chance.choice((*[b"x"] * 8, b"", b"y"))
        if chance.random() < 0.2:
            kind += b"; charset=" + chance.choice(_CHARSETS)
    else:
        body, kind = as_form(chance, damaged), b"application/x-www-form-urlencoded"
    if chance.random() < 0.1:
        hurt = damaged_bytes(chance, body)
        return kind, hurt, whole and token.encode("utf-8", "surrogatepass") in hurt
    if chance.random() < 0.003:
        return kind, body + b"&text=" + b"x" * 70_000, whole
    return kind, body, whole


def _multipart(chance: Random, pairs: Pairs) -> bytes:
    def raw(text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass")

    made = [
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (raw(name), raw(value))
        for name, value in pairs
    ]
    for _ in range(chance.choice((0, 0, 1, 2, 12))):
        name = chance.choice(("a.png", "a.pdf", "x" * 300, strange_text(chance))).replace('"', "")
        line = raw(name).translate(None, b"\r\n")
        kind = raw(chance.choice((*_KINDS, strange_text(chance)))).translate(None, b"\r\n")
        content = chance.choice((b"", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4", chance.randbytes(500)))
        made.append(
            b'--x\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n'
            b"Content-Type: %s\r\n\r\n%s\r\n" % (line, kind, content)
        )
    return b"".join(made) + b"--x--\r\n"


async def targets(stage: Stage) -> Sequence[Target]:
    """The page of this process."""
    page: Any = stage.running.process.operator_page
    assert isinstance(page, OperatorPage)
    passes = {name: await _begin(page, name) for name in OPERATORS}
    pages = OperatorPages(stage, page, passes)
    return [Target("route: operator", 120, pages.take, pages.made, most_seconds=6.0)]
