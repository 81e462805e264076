"""The operator's page as an application: all views are behind the door."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import FormData, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.decisions.network import Network
from bot.domain.errors import DatabaseUnavailable
from bot.domain.operators import ALONE, OperatorAccount
from bot.leases.runtime import Runtime
from bot.operator import acts
from bot.operator.door import PATH, SECURITY, Access, Door, is_ours
from bot.operator.live import Streams
from bot.operator.look import Look
from bot.operator.pages import chat, files, inbox, now, run, search
from bot.operator.sessions import Sessions, same_token
from bot.operator.sign_in import COOKIE, SignIn, address, wanted, way_in
from bot.operator.view import FORM, Asked, Tools, View

VIEWS: Sequence[View] = (
    *now.VIEWS,
    *inbox.VIEWS,
    *chat.VIEWS,
    *files.VIEWS,
    *run.VIEWS,
    *search.VIEWS,
    *acts.VIEWS,
)
MENU = (("", "Now"), (inbox.PATH, "Inbox"), ("/search", "Search"))
_ACCESS = "answerback_access"
_FORM_WITHIN = 60.0
"""Seconds within which a whole form must arrive: it may have a photograph and come from a phone."""
_FIELDS = 40
_LONGEST_PATH = 200
"""Characters of a path. All routes of ours are shorter."""
_log = logging.getLogger("answerback.operator")


@dataclass(frozen=True, slots=True)
class PageTerms:
    """The settings of the operator's page. `open_`: it is served to other machines too, not to this
    one alone."""

    operators: Sequence[OperatorAccount]
    public_url: str
    open_: bool
    proxies: Sequence[Network]
    lease_seconds: float
    heartbeat: float
    canned: Path | None = None


@cache
def _look() -> Look:
    """The one look of this process, cached because compiling its templates takes 0.2 s of CPU."""
    return Look(MENU)


class OperatorPage:
    """The operator's page of one process, as an ASGI application under `path`."""

    path = PATH

    def __init__(self, rt: Runtime, terms: PageTerms) -> None:
        look = _look()
        self._door = Door(terms.public_url, terms.open_, terms.proxies)
        self._sessions = Sessions(rt.db, rt.clock, terms.operators)
        self._streams = Streams(self._sessions, rt.clock)
        alone = [one.name for one in terms.operators] == [ALONE]
        self._sign_in = SignIn(rt, look, self._sessions, alone)
        self._tools = Tools(
            rt,
            look,
            self._streams,
            terms.lease_seconds,
            terms.heartbeat,
            canned=terms.canned,
            public_url=terms.public_url,
        )
        self.routes = [
            Route(f"{PATH}/static/{{name}}", look.serve, methods=["GET"]),
            Route(f"{PATH}/sign-in", self._ask, methods=["GET"]),
            Route(f"{PATH}/sign-in", self._take, methods=["POST"]),
            *(self._route(view) for view in (*VIEWS, _LEAVES)),
        ]
        self._app = Starlette(
            routes=self.routes,
            exception_handlers={HTTPException: _no_route, DatabaseUnavailable: _come_again},
        )
        self._app.router.redirect_slashes = False

    def leave(self) -> None:
        """End all streams: the browsers reconnect, to another process."""
        self._streams.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        access = self._door.access(scope)
        if access is None:
            await PlainTextResponse("Not Found\n", 404)(scope, receive, send)
            return
        if len(scope["path"]) > _LONGEST_PATH:
            await PlainTextResponse("Not Found\n", 404)(scope, receive, _secured(send))
            return
        scope[_ACCESS] = access
        await self._app(scope, receive, _secured(send))

    async def _ask(self, request: Request) -> Response:
        return await self._sign_in.ask(request, _access(request))

    async def _take(self, request: Request) -> Response:
        access = _access(request)
        if not is_ours(access, request.headers):
            return _refused("the form came from another page")
        return await self._sign_in.take(request, access, await _form(request, FORM, 0))

    def _route(self, view: View) -> Route:
        route = Route(PATH + view.path, self._behind(view), methods=[view.method])
        route.methods = {view.method}  # no HEAD: on a stream it would never end
        return route

    def _behind(self, view: View) -> Callable[[Request], Awaitable[Any]]:
        """The view, guarded: only for operators who are signed in, have its role, and send forms of
        ours."""

        async def answer(request: Request) -> Response | ASGIApp:
            access = _access(request)
            session = await self._sessions.find(request.cookies.get(COOKIE, ""))
            if session is None:
                return self._outside(view, request, access)
            if not session.role.may(view.role):
                return _refused(f"{session.name} may read, and not act")
            asked = Asked(request, self._tools, session, access)
            if view.method != "GET":
                if not is_ours(access, request.headers):
                    return _refused("the form came from another page")
                asked.form = await _form(request, view.largest, view.files)
                if not same_token(asked.said("form_token"), session.form_token):
                    return _refused("the form is of another session; load the page again")
            if view is _LEAVES:
                return await self._sign_in.leave(session, access)
            try:
                return await view.answer(asked)
            finally:
                await asked.form.close()

        return answer

    def _outside(self, view: View, request: Request, access: Access) -> Response:
        """The answer to a request without a session, perhaps only because its browser kept the
        cookie back."""
        if view.method != "GET":
            return _refused("you are not signed in any more; nothing was done", 401)
        if "text/event-stream" in request.headers.get("accept", ""):
            return _refused("you are not signed in any more", 401)
        if (
            request.headers.get("sec-fetch-site") == "cross-site"
            and request.cookies.get(COOKIE) is None
        ):
            # After a click on a link elsewhere, as in a mail, a browser does not send the cookie:
            # this page asks for the address once more, from our own site.
            values = {"root": access.root, "again": wanted(access, address(access, request))}
            return self._tools.look.page("from_elsewhere.html", values)
        return way_in(access, request)


async def _leave(_asked: Asked) -> Response:
    raise AssertionError("the page itself ends sessions")


_LEAVES = View("/sign-out", _leave, method="POST")


def _access(request: Request) -> Access:
    access: Access = request.scope[_ACCESS]
    return access


async def _form(request: Request, largest: int, files: int) -> FormData:
    """The form of a request. Raises HTTPException."""
    seen = 0
    receive = request._receive  # noqa: SLF001 - the request's own, counted on its way

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > largest:
            raise HTTPException(413, f"a form has at most {largest} bytes")
        return message

    try:
        async with asyncio.timeout(_FORM_WITHIN):
            whole = Request(request.scope, counted)
            return await whole.form(max_files=files, max_fields=_FIELDS, max_part_size=largest)
    except ClientDisconnect:
        raise HTTPException(400, "the form did not arrive whole") from None
    except TimeoutError:
        raise HTTPException(408, "the form took too long") from None
    except MultiPartException as error:
        raise HTTPException(400, error.message) from None
    except UnicodeError:
        raise HTTPException(400, "the form is in no character set that we read") from None


def _secured(send: Send) -> Send:
    """`send`, with the headers that every answer has. A header that the answer sets itself stays,
    such as the policy of a file."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


def _refused(why: str, status: int = 403) -> Response:
    return PlainTextResponse(f"{why}\n", status)


async def _no_route(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


async def _come_again(_request: Request, error: Exception) -> Response:
    _log.warning("an operator was told to come again: %s", error)
    return PlainTextResponse(
        "the database does not answer; load it again\n", 503, {"Retry-After": "2"}
    )
