"""The HTTP application: verify a request, hand it to intake, answer fast.

A platform is told 2xx only after the commit. What is not signed is refused before anything
is stored; what is signed and can't be parsed is kept as a dead letter and acknowledged, since
a platform would deliver it for ever and hold back what comes behind it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route as HttpRoute
from starlette.types import Receive, Scope, Send

from bot.delivery.status import record_status
from bot.domain.clients.desk import App
from bot.domain.delivery import DeliveryStatus
from bot.domain.errors import DatabaseUnavailable
from bot.domain.findings import Check
from bot.domain.message import LONGEST_TITLE, Ignored, one_line, shortened
from bot.domain.plugin import NotAuthentic, NotReadable, Payload, Posted, Route
from bot.intake.accept import Intake, in_time
from bot.intake.arrival import Arrival
from bot.leases.runtime import Runtime
from bot.version import our_version

BODY_WITHIN = 20.0
"""Seconds within which the whole body of a request must arrive. No platform waits longer."""
_AT_ONCE = 16
"""Payloads of one body that are committed at the same time: they share transactions."""
_STRAYS = 20
"""Requests without a route that are logged each minute, and the characters of their paths."""
_PATH_TOLD = 100
_TELL_AGAIN = 60.0
_ABSOLUTE = re.compile(rb"https?://[^/#]+(/.*)?", re.IGNORECASE)

_log = logging.getLogger("answerback.webhooks")
_Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of a process's application. `routes` are the platforms', each with the
    row of its account, `pages` the channels' own applications, each with its path; none in a
    process that takes nothing in.

    `prefix` is the path of PUBLIC_URL, which a proxy may leave on or take off.
    """

    rt: Runtime
    intake: Intake
    readiness: Callable[[], Awaitable[Sequence[Check]]]
    routes: Sequence[tuple[int, Route]] = ()
    pages: Mapping[str, App] = field(default_factory=dict)
    prefix: str = ""

    def account_of(self, payload: Payload, receiver: int) -> int | None:
        """The row of the account that a payload is about; None if it is not configured.
        `receiver` is the row of the account that has the route."""
        if not payload.account:
            return receiver
        channels = self.rt.channels
        name = channels[receiver].name
        rows = (r for r, c in channels.items() if (c.name, c.account) == (name, payload.account))
        return next(rows, None)

    async def ready(self, _request: Request) -> Response:
        """The checks of everything that could keep this process from its job."""
        checks = await self.readiness()
        well = all(check.well for check in checks)
        body = {
            "ready": well,
            "checks": {c.name: {"ok": c.well, "says": c.says} for c in checks},
        }
        return JSONResponse(body, status_code=200 if well else 503)

    async def metrics(self, _request: Request) -> Response:
        text = generate_latest(self.rt.observer.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)


def build_app(site: Site) -> App:
    """The application of this process. A channel's pages are asked before anything else is put
    around a request: some answer for hours."""
    ours = _our_app(site)
    pages = {
        prefix + path: (len(prefix), page)
        for path, page in site.pages.items()
        for prefix in dict.fromkeys(("", site.prefix))
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope = _in_origin_form(scope)
        path = scope.get("path", "")
        for start, (prefix, page) in pages.items():
            if path == start or path.startswith(f"{start}/"):
                await page({**scope, "path": path[prefix:]}, receive, send)
                return
        await ours(scope, receive, send)

    return app


def _in_origin_form(scope: Scope) -> Scope:
    """The request as if its target had come without scheme and host: a server takes both forms
    (RFC 9112, 3.2.2), and some gateways send the absolute one.

    What the target calls us decides nothing. Whoever judges by a name reads the Host header, which
    is what a gateway has judged: with `http://localhost/` in a target one could get past it.
    """
    # Of the bytes as they came: a %2F is no end of the host.
    absolute = _ABSOLUTE.fullmatch(scope.get("raw_path") or b"")
    if absolute is None:
        return scope
    path = absolute[1] or b"/"
    return {**scope, "raw_path": path, "path": unquote(path.decode("ascii"))}


def _our_app(site: Site) -> Starlette:
    strays = _Strays(site)
    app = Starlette(
        exception_handlers={404: strays.refuse, 405: strays.refuse},
        routes=[
            HttpRoute("/healthz", _alive),
            HttpRoute("/readyz", site.ready),
            HttpRoute("/metrics", site.metrics),
            *(
                HttpRoute(
                    prefix + route.path,
                    _receive(site, account, route),
                    methods=["POST"] if route.challenge is None else ["POST", "GET"],
                )
                for account, route in site.routes
                for prefix in dict.fromkeys(("", site.prefix))
            ),
        ],
    )
    # A redirect would lead to whatever the Host header says, and platforms follow none.
    app.router.redirect_slashes = False
    return app


class _Strays:
    """Answers requests that match no route. One that is close to a platform's route is logged,
    each kind once a minute: a wrong URL or method was entered, and the bot gets no messages."""

    def __init__(self, site: Site) -> None:
        self._clock = site.rt.clock
        self._near = {
            word for _, route in site.routes for word in (route.path.split("/")[1], "webhook")
        }
        self._told: set[tuple[str, str]] = set()
        self._since = self._clock.monotonic()

    async def refuse(self, request: Request, error: Exception) -> Response:
        """404 or 405, as the router found."""
        assert isinstance(error, HTTPException)
        path = str(request.scope["path"])[:_PATH_TOLD]
        # A path may hold anything, line ends too, once its percent signs are read.
        told = request.method, path.encode("unicode_escape").decode()
        without_path = told[0] == "POST" and not path.strip("/")
        near = any(word in path.casefold() for word in self._near)
        if (without_path or near) and self._is_new(told):
            fix = "compare the URL and the method at the platform: answerback webhook info"
            _log.warning("%s %s meets no route (%d); %s", *told, error.status_code, fix)
        return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)

    def _is_new(self, told: tuple[str, str]) -> bool:
        now = self._clock.monotonic()
        if now - self._since > _TELL_AGAIN:
            self._told.clear()
            self._since = now
        if told in self._told or len(self._told) >= _STRAYS:
            return False
        self._told.add(told)
        return True


def build_waiting_app() -> App:
    """The application while the process starts: it is alive, but not ready."""
    waiting = Starlette(
        routes=[
            HttpRoute("/healthz", _alive),
            HttpRoute("/{path:path}", _starting, methods=["GET", "POST"]),
        ]
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await waiting(_in_origin_form(scope), receive, send)

    return app


async def _starting(_request: Request) -> Response:
    return PlainTextResponse("starting\n", status_code=503, headers={"Retry-After": "1"})


async def _alive(_request: Request) -> Response:
    return PlainTextResponse(f"alive, Answerback {our_version()}\n")


def _receive(site: Site, account: int, route: Route) -> _Answer:
    rt = site.rt

    async def receive(request: Request) -> Response:
        began = rt.clock.monotonic()
        try:
            if route.challenge is not None and request.method != "POST":
                return PlainTextResponse(route.challenge(request.query_params))
            posted = await _posted(request, route)
            if isinstance(posted, Response):
                return posted
            payloads = route.read(posted)
            await _take_all(site, account, payloads)
        except NotAuthentic:
            _log.warning(
                "%s: a request without the right secret or signature was refused", route.path
            )
            return PlainTextResponse("the secret or signature is missing or wrong\n", 403)
        except NotReadable as error:
            return PlainTextResponse(f"{error}\n", 400)
        except DatabaseUnavailable as error:
            _log.warning("not stored, the platform must deliver it again: %s", error)
            wait = {"Retry-After": str(max(1, round(error.retry_after)))}
            return PlainTextResponse("not stored; deliver it again\n", 503, wait)
        if any(payload.status is None for payload in payloads):
            channel = rt.channels[account].name
            rt.observer.webhook_seconds.labels(channel).observe(rt.clock.monotonic() - began)
        return Response(route.acknowledgement, media_type=route.content_type)

    return receive


async def _take_all(site: Site, account: int, payloads: Sequence[Payload]) -> None:
    """Commit all payloads of a body, a few at a time, begun in their order so that chats keep it.
    Raises DatabaseUnavailable if one was not stored; the others are then known as duplicates."""
    if len(payloads) == 1:
        await _take(site, account, payloads[0])
        return
    waiting, failed = iter(payloads), list[DatabaseUnavailable]()

    async def take_next() -> None:
        for payload in waiting:
            try:
                await _take(site, account, payload)
            except DatabaseUnavailable as error:
                failed.append(error)
            if failed:
                return

    async with asyncio.TaskGroup() as group:
        for _ in payloads[:_AT_ONCE]:
            group.create_task(take_next())
    if failed:
        raise failed[0]


async def _take(site: Site, receiver: int, payload: Payload) -> None:
    """Commit what the payload says. Raises DatabaseUnavailable."""
    account = site.account_of(payload, receiver)
    if account is None:
        whose = one_line(shortened(payload.account), LONGEST_TITLE)
        _log.error("a message for %s, which is not configured: it is kept as a dead letter", whose)
        payload = Payload(payload.text, error=f"for {whose}, which is not configured")
        account = receiver
    elif payload.status is not None:
        payload = await _take_status(site.rt, account, payload, payload.status)
    arrival = Arrival(account, payload.text)
    if payload.error:
        await site.intake.take_dead_letter(arrival, payload.error)
    elif payload.events:
        await site.intake.take(arrival, payload.events)


async def _take_status(
    rt: Runtime, account: int, payload: Payload, status: DeliveryStatus
) -> Payload:
    """Record the status, and return the payload with what is left of it to keep. Raises
    DatabaseUnavailable."""
    try:
        async with in_time():
            known = await record_status(rt, account, status)
    except DatabaseUnavailable:
        raise
    except Exception as broke:
        if not payload.text:
            raise
        _log.exception("a status for account %s was not recorded", account)
        return replace(payload, error=f"could not be recorded: {type(broke).__name__}")
    if known is None and payload.text and not payload.events:
        return replace(payload, events=(Ignored("a status of nobody's message"),))
    return payload


async def _posted(request: Request, route: Route) -> Posted | Response:
    """The request with its whole body, or the answer to one that can't be read. Its target is the
    route's, behind PUBLIC_URL's prefix, whether or not a proxy left that on."""
    coding = request.headers.get("Content-Encoding", "identity").strip().casefold()
    if coding not in ("", "identity"):
        # What was signed is not told: acknowledged unread, it would be lost.
        _log.warning("%s: a compressed body was refused; no platform sends any", route.path)
        return PlainTextResponse("send the body as it is, not compressed\n", 415)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN):
            async for chunk in request.stream():
                body += chunk
                if len(body) > route.largest:
                    return PlainTextResponse(f"a body has at most {route.largest} bytes\n", 413)
    except ClientDisconnect:
        return PlainTextResponse("the body did not arrive whole\n", 400)
    except TimeoutError:
        _log.warning("%s: a body did not arrive within %.0f s", route.path, BODY_WITHIN)
        return PlainTextResponse("the body took too long\n", 408, {"Connection": "close"})
    query = request.scope["query_string"].decode("latin-1")
    return Posted(
        target=route.path + (f"?{query}" if query else ""),
        query=dict(request.query_params),
        headers=request.headers,
        body=bytes(body),
    )
