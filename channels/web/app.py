"""The routes of the web: each asks the desk about the chat that the request's token proves."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bot.domain.clients import Accepted, Conflict, Desk
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address, ChatKind, Inbound, InboundKind, Sender, clean
from bot.domain.ports import Clock
from channels.text import is_blank
from channels.web.channel import WebChannel
from channels.web.names import CLIENT_ID, request_id
from channels.web.stream import EventStream
from channels.web.tokens import NotKnown, Tokens
from channels.web.wire import API, accepted_json, page_json, turn_json

LONGEST_TEXT = 16_000
"""Characters of a message."""
LONGEST_WAIT = 25.0
"""Seconds for which a question about a turn may be held."""
_PAGE = 50
_LARGEST_PAGE = 200
_MAX_BODY = 256_000

_log = logging.getLogger("answerback.web")
_Answer = Callable[[Request], Awaitable[Response | EventStream]]


class Wrong(Exception):
    """A request that can't be served, with the status and a sentence for whoever wrote it."""

    def __init__(self, status: int, says: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(says)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Site:
    """The pages of one account."""

    channel: WebChannel
    tokens: Tokens
    clock: Clock

    @property
    def desk(self) -> Desk:
        """The process's desk."""
        return self.channel.desk

    def app(self) -> ASGIApp:
        """Everything under `/web`."""
        app = Starlette(
            routes=[
                Route(f"{API}/session", self._answered(self.session), methods=["POST"]),
                Route(f"{API}/messages", self._answered(self.submit), methods=["POST"]),
                Route(f"{API}/messages", self._answered(self.history), methods=["GET"]),
                Route(f"{API}/turns/{{id}}", self._answered(self.turn), methods=["GET"]),
                Route(f"{API}/events", self._answered(self.events), methods=["GET"]),
                Route(f"{API}/seen", self._answered(self.seen), methods=["POST"]),
                Route(f"{API}/stop", self._answered(self.stop), methods=["POST"]),
            ]
        )
        app.router.redirect_slashes = False
        return app

    def _answered(self, answer: _Answer) -> _Answer:
        async def answered(request: Request) -> Response | EventStream:
            try:
                return await answer(request)
            except NotKnown:
                return _error(401, "the token is missing, damaged or over; ask for a session")
            except Wrong as wrong:
                return _error(wrong.status, str(wrong), wrong.headers)
            except DatabaseUnavailable as error:
                _log.warning("a client was told to come again: %s", error)
                wait = {"Retry-After": str(max(1, round(error.retry_after)))}
                return _error(503, "nothing was stored; send it again", wait)

        return answered

    async def who(self, request: Request) -> Address:
        """The address that the request has proven. Raises NotKnown."""
        if "token" in request.query_params:
            raise NotKnown
        return await self.tokens.who(request.headers)

    async def session(self, request: Request) -> Response:
        """A token for a guest."""
        token, who, over = self.tokens.mint_guest()
        return JSONResponse({"token": token, "chat": who.chat, "expires_at": round(over)})

    async def submit(self, request: Request) -> Response:
        """Record a message: 202 when it is new, 200 when it is known."""
        who = await self.who(request)
        body = await read(request)
        message = _message(who, body, request)
        taken = await self.desk.take(message, partial(request_id, minted=body["request_id"]), "")
        match taken:
            case Conflict():
                raise Wrong(409, "another message was sent under this request_id; mint a new one")
            case Accepted(again=again):
                return JSONResponse(accepted_json(taken), status_code=200 if again else 202)

    async def turn(self, request: Request) -> Response:
        """What became of a message."""
        who = await self.who(request)
        minted = request.path_params["id"]
        if not CLIENT_ID.fullmatch(minted):
            raise Wrong(422, "a request_id is 1 to 59 of A-Z a-z 0-9 _ -")
        wait = min(LONGEST_WAIT, _number(request, "wait", 0))
        answer = await self.desk.turn(who, partial(request_id, minted=minted), wait)
        return JSONResponse(turn_json(answer), headers=_FRESH)

    async def history(self, request: Request) -> Response:
        """A page of the conversation."""
        who = await self.who(request)
        before = _number(request, "before", 0) or None
        limit = min(_LARGEST_PAGE, _number(request, "limit", _PAGE) or _PAGE)
        page = await self.desk.history(who, before, limit)
        return JSONResponse(page_json(page), headers=_FRESH)

    async def events(self, request: Request) -> EventStream:
        """Follow the chat."""
        who = await self.who(request)
        said = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(said) if said.isascii() and said.isdecimal() and len(said) < 19 else None
        return EventStream(self.desk.follow(who, after), {})

    async def seen(self, request: Request) -> Response:
        """What was said up to this event was shown."""
        who = await self.who(request)
        n = (await read(request)).get("n")
        if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n < 1 << 62:
            raise Wrong(422, "n is the number of an event")
        return JSONResponse({"unread": await self.desk.seen(who, n)})

    async def stop(self, request: Request) -> Response:
        """Withdraw what is not answered yet."""
        who = await self.who(request)
        return JSONResponse({"stopped": await self.desk.stop(who)})


_FRESH = {"Cache-Control": "no-store"}


async def read(request: Request) -> dict[str, Any]:
    """The body, a JSON object. Raises Wrong."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_BODY:
                raise Wrong(413, f"a body has at most {_MAX_BODY} bytes")
        read = json.loads(body)
    except ClientDisconnect as gone:
        raise Wrong(400, "the body did not arrive whole") from gone
    except (ValueError, RecursionError) as error:
        raise Wrong(400, "the body is no JSON") from error
    if not isinstance(read, dict):
        raise Wrong(422, "the body is a JSON object")
    return read


def _message(who: Address, body: Mapping[str, Any], request: Request) -> Inbound:
    """The message that a client hands in. Raises Wrong. White space at the end says nothing, and
    is no other content."""
    minted, text, button = body.get("request_id"), body.get("text", ""), body.get("button", "")
    if not isinstance(minted, str) or not CLIENT_ID.fullmatch(minted):
        raise Wrong(422, "request_id must be 1 to 59 of A-Z a-z 0-9 _ -, a new one for a message")
    if not isinstance(text, str) or not isinstance(button, str):
        raise Wrong(422, "text and button are strings")
    text = clean(text).rstrip()
    if len(text) > LONGEST_TEXT or len(button) > LONGEST_TEXT:
        raise Wrong(413, f"a text has at most {LONGEST_TEXT} characters")
    if bool(button) == (not is_blank(text)):
        raise Wrong(422, "a message has either a text that can be read or a button")
    named = request_id(who, minted)
    return Inbound(
        request_id=named,
        address=who,
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.BUTTON if button else InboundKind.TEXT,
        text=clean(button) if button else text,
        sender=Sender(who.chat, language=_language(request)),
        provider_id=named,
        button=clean(button),
    )


def _language(request: Request) -> str:
    """The first language that the browser asks for."""
    first = request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
    return first[:2].lower() if first[:2].isalpha() and first[:2].isascii() else ""


def _number(request: Request, name: str, default: int) -> int:
    said = request.query_params.get(name, "")
    if not said:
        return default
    if not (said.isascii() and said.isdecimal() and len(said) < 19):
        raise Wrong(422, f"{name} is a whole number")
    return int(said)


def _error(status: int, says: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": says}, status, {**_FRESH, **(headers or {})})
