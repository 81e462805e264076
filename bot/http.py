"""The HTTP doorway: verify, hand to intake, answer fast.

A platform is told 2xx only after the commit. What is not signed is refused before anything
is stored; what is signed and can't be parsed is kept as a dead letter and acknowledged, since
a platform would deliver it for ever and hold back what comes behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.checks import Check
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Event, PayloadError
from bot.domain.ports import Clock
from bot.intake.accept import Intake
from bot.intake.record import Arrival
from bot.observability.metrics import Observer

MAX_BODY = 1_000_000
"""Bytes. Telegram's largest update has 64 KiB, Twilio's forms far less."""

_log = logging.getLogger("answerback.webhooks")


class NotReadable(Exception):
    """The body is not in the form that the platform sends."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A request as the hooks see it. `target` is path and query as they came."""

    target: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Hook(Protocol):
    """One route of one account: who may post there, and what a post means."""

    @property
    def path(self) -> str: ...

    @property
    def channel(self) -> str: ...

    @property
    def account(self) -> int: ...

    @property
    def content_type(self) -> str:
        """Of the acknowledgement."""
        ...

    @property
    def acknowledgement(self) -> str:
        """The body that the platform takes for "received" and shows to nobody."""
        ...

    def authentic(self, posted: Posted) -> bool:
        """Whether the platform sent this. Never raises."""
        ...

    def text(self, posted: Posted) -> str:
        """The payload as it is stored. Raises NotReadable."""
        ...

    def events(self, posted: Posted) -> tuple[Event, ...]:
        """What the payload says. Raises PayloadError."""
        ...


class StatusHook(Protocol):
    """A route for a platform's word on what we sent."""

    @property
    def path(self) -> str: ...

    @property
    def content_type(self) -> str: ...

    @property
    def acknowledgement(self) -> str: ...

    def authentic(self, posted: Posted) -> bool: ...

    async def take(self, posted: Posted) -> None:
        """Write it down. Raises NotReadable, PayloadError, DatabaseUnavailable."""
        ...


Readiness = Callable[[], Awaitable[Sequence[Check]]]


@dataclass(frozen=True, slots=True)
class Doorway:
    """What the application is made of. `intake` is None in a process without webhooks.

    `prefix` is the path of PUBLIC_URL, which a proxy may leave on or take off.
    """

    intake: Intake | None
    hooks: Sequence[Hook]
    statuses: Sequence[StatusHook]
    readiness: Readiness
    observer: Observer
    clock: Clock
    prefix: str = ""


def build_app(door: Doorway) -> Starlette:
    """The routes of this process."""
    routes = [
        Route("/healthz", _alive),
        Route("/readyz", _ready(door.readiness)),
        Route("/metrics", _metrics(door.observer)),
    ]
    if door.intake is not None:
        posts = [(hook.path, _receive(door, hook, door.intake)) for hook in door.hooks]
        posts += [(hook.path, _witness(hook)) for hook in door.statuses]
        routes += [
            Route(prefix + path, receive, methods=["POST"])
            for path, receive in posts
            for prefix in dict.fromkeys(("", door.prefix))
        ]
    return Starlette(routes=routes)


def build_waiting_app() -> Starlette:
    """The routes while the process starts: it is alive, and not ready for anything."""
    return Starlette(
        routes=[
            Route("/healthz", _alive),
            Route("/{path:path}", _starting, methods=["GET", "POST"]),
        ]
    )


async def _starting(_request: Request) -> Response:
    return PlainTextResponse("starting\n", status_code=503, headers={"Retry-After": "1"})


async def _alive(_request: Request) -> Response:
    return PlainTextResponse("alive\n")


def _ready(readiness: Readiness) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_request: Request) -> Response:
        checks = await readiness()
        well = all(check.well for check in checks)
        body = {
            "ready": well,
            "checks": {c.name: {"ok": c.well, "says": c.says} for c in checks},
        }
        return JSONResponse(body, status_code=200 if well else 503)

    return ready


def _metrics(observer: Observer) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(observer.registry), media_type=CONTENT_TYPE_LATEST)

    return metrics


def _receive(door: Doorway, hook: Hook, intake: Intake) -> Callable[[Request], Awaitable[Response]]:
    async def receive(request: Request) -> Response:
        began = door.clock.monotonic()
        posted = await _posted(request, hook.path)
        if isinstance(posted, Response):
            return posted
        if not hook.authentic(posted):
            return _refused(hook.path)
        try:
            await _take(hook, intake, posted)
        except NotReadable as error:
            return PlainTextResponse(f"{error}\n", status_code=400)
        except DatabaseUnavailable as error:
            return _later(error)
        door.observer.webhook_seconds.labels(hook.channel).observe(door.clock.monotonic() - began)
        return Response(hook.acknowledgement, media_type=hook.content_type)

    return receive


async def _take(hook: Hook, intake: Intake, posted: Posted) -> None:
    arrival = Arrival(hook.account, hook.text(posted))
    try:
        events = hook.events(posted)
    except PayloadError as error:
        await intake.take_dead_letter(arrival, str(error))
    else:
        await intake.take(arrival, events)


def _witness(hook: StatusHook) -> Callable[[Request], Awaitable[Response]]:
    async def witness(request: Request) -> Response:
        posted = await _posted(request, hook.path)
        if isinstance(posted, Response):
            return posted
        if not hook.authentic(posted):
            return _refused(hook.path)
        try:
            await hook.take(posted)
        except (NotReadable, PayloadError) as error:
            return PlainTextResponse(f"{error}\n", status_code=400)
        except DatabaseUnavailable as error:
            return _later(error)
        return Response(hook.acknowledgement, media_type=hook.content_type)

    return witness


def _refused(path: str) -> Response:
    _log.warning("%s: a request without the right secret or signature was refused", path)
    return PlainTextResponse("the secret or signature is missing or wrong\n", status_code=403)


def _later(error: DatabaseUnavailable) -> Response:
    _log.warning("not stored, the platform must deliver it again: %s", error)
    return PlainTextResponse(
        "not stored; deliver it again\n",
        status_code=503,
        headers={"Retry-After": str(max(1, round(error.retry_after)))},
    )


async def _posted(request: Request, path: str) -> Posted | Response:
    """The request with its whole body, or the answer to one that is too large. `path` is the
    route's, behind PUBLIC_URL's prefix, whether or not a proxy left that on."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return PlainTextResponse(f"a body has at most {MAX_BODY} bytes\n", status_code=413)
    except ClientDisconnect:
        return PlainTextResponse("the body did not arrive whole\n", status_code=400)
    query = request.scope["query_string"].decode("latin-1")
    return Posted(
        target=path + (f"?{query}" if query else ""),
        query=dict(request.query_params),
        headers=request.headers,
        body=bytes(body),
    )
