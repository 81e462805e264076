"""The routes of the web: each asks the desk about the chat that the request's session opens."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.clients.desk import Accepted, Conflict, Desk
from bot.domain.errors import DatabaseUnavailable
from channels.web.access.door import Door, network_of
from channels.web.access.limits import Places
from channels.web.access.session import Sessions
from channels.web.access.tokens import NotKnown
from channels.web.answers import Wrong, error, read, retry_after
from channels.web.channel import WebChannel
from channels.web.demo import demo_page
from channels.web.files import file_of_chat
from channels.web.names import CLIENT_ID, request_id
from channels.web.stream import EventStream
from channels.web.submission import submitted
from channels.web.widget import WIDGET, Widget
from channels.web.wire import API, PATH, accepted_json, page_json, turn_json

LONGEST_WAIT = 25.0
"""Seconds for which a question about a turn may be held."""
_PAGE = 50
_LARGEST_PAGE = 200
_MAX_BODY = 256_000
"""Bytes of a message's body without files."""
_SMALL_BODY = 1_000
"""Bytes of a body that says a number, or nothing."""
_LARGE_AT_ONCE = 16, 4
"""Bodies with files that are read at the same time, and of them from one address: each is held in
memory."""
_HELD_AT_ONCE = 5_000, 20
"""Questions that are held, and of them by one visitor: one more is answered at once."""
_STREAMS_AT_ONCE = 10_000
"""Streams of a process. One visitor, and one address, has as many as it may send messages a
minute."""
_NEXT_STREAM = 5.0
"""Seconds after which somebody with too many streams asks for another."""
_MOST_DIGITS = 19
"""Digits of a number that still fits into 64 bits."""

_TOO_MANY_STREAMS = "too many streams are open; all tabs of a browser can share one"
_STREAM = "GET", f"{API}/events"

_log = logging.getLogger("answerback.web")
_Answer = Callable[[Request], Awaitable[Response | EventStream]]


@dataclass
class Site:
    """The pages of one account."""

    channel: WebChannel
    door: Door
    widget: Widget
    _large: Places = field(default_factory=lambda: Places(*_LARGE_AT_ONCE), init=False)
    _held: Places = field(default_factory=lambda: Places(*_HELD_AT_ONCE), init=False)
    _streams: tuple[Places, Places] = field(init=False)

    def __post_init__(self) -> None:
        settings = self.door.settings
        each = settings.web_visitor_per_minute, settings.web_address_per_minute
        self._streams = Places(_STREAMS_AT_ONCE, each[0]), Places(_STREAMS_AT_ONCE, each[1])

    @property
    def desk(self) -> Desk:
        """The process's desk."""
        return self.channel.desk

    def app(self) -> ASGIApp:
        """Everything under `/web`: the API behind its door, and what anybody may read."""
        handlers = {HTTPException: _no_route, Exception: _fault}
        api = Starlette(routes=self.api_routes(), exception_handlers=handlers)
        public = [Route(f"{API}/openapi.json", _openapi), Route(WIDGET, self.widget.serve)]
        if self.door.settings.web_shows_demo:
            public += [Route(path, demo_page) for path in (PATH, f"{PATH}/")]
        mounted = [*public, Mount(API, self.door.before(api))]
        app = Starlette(routes=mounted, exception_handlers=handlers)
        for one in (api, app):
            one.router.redirect_slashes = False
        streams = self.door.before(self._stream)

        async def pages(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and (scope["method"], scope["path"]) == _STREAM:
                await streams(scope, receive, send)
            else:
                await app(scope, receive, send)

        return pages

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer for hours, with nothing around it that is kept for as long."""
        stream = await self._answered(self.events)(Request(scope, receive))
        try:
            await stream(scope, receive, send)
        except DatabaseUnavailable as unavailable:  # Before it began.
            await _come_again(unavailable)(scope, receive, send)

    def api_routes(self) -> Sequence[Route]:
        """The routes that `openapi.json` describes."""
        sessions = Sessions(self.door)
        return [
            self._route("/session", "POST", lambda r: sessions.begin(r, self.desk)),
            self._route("/session", "DELETE", lambda r: sessions.end(r, self.desk)),
            self._route("/messages", "POST", self.submit),
            self._route("/messages", "GET", self.history),
            self._route("/turns/{id}", "GET", self.turn),
            self._route("/events", "GET", self.events),
            self._route("/seen", "POST", self.seen),
            self._route("/stop", "POST", self.stop),
            self._route("/files/{ref}", "GET", self.file),
        ]

    def _route(self, path: str, method: str, answer: _Answer) -> Route:
        route = Route(path, self._answered(answer), methods=[method], name=f"{method} {path}")
        route.methods = {method}  # No HEAD: of a stream it would have no end.
        return route

    def _answered(self, answer: _Answer) -> _Answer:
        async def answered(request: Request) -> Response | EventStream:
            try:
                return await answer(request)
            except NotKnown:
                return error(401, "the token is missing, damaged or over; ask for a new session")
            except Wrong as wrong:
                return error(wrong.status, str(wrong), wrong.headers)
            except DatabaseUnavailable as unavailable:
                return _come_again(unavailable)

        return answered

    async def submit(self, request: Request) -> Response:
        """Record a message: 202 when it is new, 200 when it is known. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        self.door.count_message(request, session)
        who, largest = session.address, self.door.settings.web_file_max
        large = self._large.place(network_of(request)) if _is_large(request) else nullcontext(True)
        with large as free:
            if not free:
                raise Wrong(503, "too many files come in at once; send it again", retry_after(2))
            body = await read(request, _MAX_BODY + largest * 4 // 3)
            given = submitted(body, largest)
            kept = tuple([await self.desk.keep_file(who, file) for file in given.files])
        message = given.message(session, _language(request), kept)
        named = partial(request_id, minted=given.minted)
        taken = await self.desk.take(message, named, given.kept(kept))
        match taken:
            case Conflict():
                raise Wrong(409, "another message was sent under this request_id; mint a new one")
            case Accepted(again=again):
                return JSONResponse(accepted_json(taken), status_code=200 if again else 202)

    async def turn(self, request: Request) -> Response:
        """The outcome of a message. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        minted = request.path_params["id"]
        if not CLIENT_ID.fullmatch(minted):
            raise Wrong(422, "a request_id is 1 to 59 of A-Z a-z 0-9 _ -")
        wait = min(LONGEST_WAIT, _number(request, "wait", 0))
        named = partial(request_id, minted=minted)
        with self._held.place(session.address.chat) as free:
            answer = await self.desk.turn(session.address, named, wait if free else 0.0)
        return JSONResponse(turn_json(answer))

    async def history(self, request: Request) -> Response:
        """A page of the conversation. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        before = _number(request, "before", 0) or None
        limit = min(_LARGEST_PAGE, _number(request, "limit", _PAGE) or _PAGE)
        return JSONResponse(page_json(await self.desk.history(session.address, before, limit)))

    async def events(self, request: Request) -> EventStream:
        """Follow the chat. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        said = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(said) if _is_number(said) else None
        who, until = session.address, session.ends_at
        place = self._place_for_stream(who.chat, network_of(request))
        return EventStream(self.desk.follow(who, after, session.id, until), place)

    def _place_for_stream(self, visitor: str, network: str) -> ExitStack:
        """A place, to be given back. Raises Wrong."""
        with ExitStack() as taken:
            for places, name in zip(self._streams, (visitor, network), strict=True):
                if places.full:
                    raise Wrong(503, "too many streams are open here", retry_after(_NEXT_STREAM))
                if not taken.enter_context(places.place(name)):
                    raise Wrong(429, _TOO_MANY_STREAMS, retry_after(_NEXT_STREAM))
            return taken.pop_all()

    async def seen(self, request: Request) -> Response:
        """Record that all up to this event was shown. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        n = (await read(request, _SMALL_BODY)).get("n")
        if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n < 1 << 62:
            raise Wrong(422, "n must be the number of an event")
        return JSONResponse({"unread": await self.desk.seen(session.address, n)})

    async def stop(self, request: Request) -> Response:
        """Withdraw what is not answered yet. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        await read(request, _SMALL_BODY)
        return JSONResponse({"stopped": await self.desk.stop(session.address)})

    async def file(self, request: Request) -> Response:
        """A file of the chat. Raises NotKnown, Wrong."""
        session = await self.door.session(request, self.desk)
        return await file_of_chat(self.desk, session.address, request.path_params["ref"])


def _come_again(unavailable: DatabaseUnavailable) -> Response:
    _log.warning("a client was told to come again: %s", unavailable)
    wait = retry_after(unavailable.retry_after)
    return error(503, "nothing was stored; send it again", wait)


async def _openapi(_request: Request) -> Response:
    """The description of the API."""
    text = (files("channels.web") / "openapi.json").read_bytes()
    return Response(text, media_type="application/json", headers=_OPEN)


_NOSNIFF = {"X-Content-Type-Options": "nosniff"}
_OPEN = {"Access-Control-Allow-Origin": "*", **_NOSNIFF}


async def _no_route(request: Request, refused: Exception) -> Response:
    """404 or 405, as the router found; 405 with all that the path takes."""
    assert isinstance(refused, HTTPException)
    if refused.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return error(refused.status_code, "there is no such route; see openapi.json", _NOSNIFF)
    met = [r for r in request.app.routes if r.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for route in met for method in route.methods or ()}))
    return error(405, f"this route takes {allowed} alone", _NOSNIFF | {"Allow": allowed})


async def _fault(_request: Request, _error: Exception) -> Response:
    """A fault of ours: the log has it."""
    return error(500, "this failed, and whoever runs the server can see why in its log")


def _is_large(request: Request) -> bool:
    """Tell whether the body may have files; of one that comes in chunks nobody knows."""
    said = request.headers.get("content-length", "")
    return not (_is_number(said) and int(said) <= _MAX_BODY)


def _language(request: Request) -> str:
    """The first language that the browser asks for."""
    first = request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
    return first[:2].lower() if first[:2].isalpha() and first[:2].isascii() else ""


def _is_number(said: str) -> bool:
    return said.isascii() and said.isdecimal() and len(said) < _MOST_DIGITS


def _number(request: Request, name: str, default: int) -> int:
    said: Any = request.query_params.get(name, "")
    if not said:
        return default
    if not _is_number(said):
        raise Wrong(422, f"{name} must be a whole number")
    return int(said)
