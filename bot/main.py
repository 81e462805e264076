"""Serving: start, listen, and shut down gracefully when told to."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Level
from bot.http import build_app, build_waiting_app
from bot.runs.shutdown import shut_down
from bot.wiring import Process, Role, Settings, configured, remarks_on, running, site
from bot.wiring.about import about
from bot.wiring.channels import ways_to_configure
from bot.wiring.signals import stop_signals

_log = logging.getLogger("answerback")
_KEEP_ALIVE = 75
"""Seconds for which an idle connection stays open. Platforms reuse theirs, and one that we close
just as a webhook arrives costs a redelivery."""
_UNREAD = 65_536
"""Bytes that the kernel buffers for a client that does not read (Linux doubles the number). Its
default is megabytes, so that nobody would notice such a client for long."""
_UNSENT = 8_192
"""Bytes that we buffer for such a client in addition, before a sender has to wait."""
_UNTAKEN = 60
"""Seconds after which a connection ends whose other side acknowledges nothing."""
_LAST_REQUESTS = 5
"""Seconds that requests under way may still take at a shutdown."""
_LAST_ACKNOWLEDGEMENTS = 2.0
"""Seconds that acknowledgements of button presses may still take at a shutdown."""


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: we decide what a signal means."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """A connection on which little is buffered for a client that does not read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(_UNSENT)
        super().connection_made(transport)


class _Front:
    """The application on the socket. It answers the liveness check from the first moment on, and
    everything else once the process works."""

    def __init__(self) -> None:
        self._app: ASGIApp = build_waiting_app()

    def open(self, app: ASGIApp) -> None:
        """Let requests in to the application of a process that works."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _leave_no_dump() -> None:
    """Forbid core dumps of this process: people's words and every token would be in them."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


async def serve(settings: Settings, role: Role) -> None:
    """Run until SIGTERM or SIGINT, then hand over.

    Raises ConfigurationError, DatabaseUnavailable.
    """
    _leave_no_dump()
    for found in remarks_on(settings):
        if found.level is Level.OK:
            _log.info("%s: %s", found.name, found.says)
        else:
            _log.warning("%s: %s; %s", found.name, found.says, found.fix)
    if not configured(settings):
        raise ConfigurationError(
            f"no platform is configured: set {ways_to_configure(settings)}; "
            "`answerback chat` needs none"
        )
    listener = _listen(settings, role)
    front = _Front()
    with stop_signals() as stop:
        async with listening(front, listener) as server, running(settings, role) as process:
            stop.works(process)
            front.open(build_app(site(process)))
            _announce(process, listener)
            server.on_end(stop.tell)
            await stop.told.wait()
            _log.info("handing over within %.0f s", settings.shutdown_grace)
            process.send_followers_away()
            await shut_down(process.ctx, process.worker, settings.shutdown_grace)
            await server.close()
            await process.tasks.finish(_LAST_ACKNOWLEDGEMENTS)
            _log.info("handed over")
            if server.broken:
                raise RuntimeError("the HTTP server ended by itself")


def _announce(process: Process, listener: socket.socket | None) -> None:
    _log.info("%s", about(process))
    if listener is not None:
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        _log.info("%s listens on http://%s:%s", process.lease.name, shown, port)
    else:
        _log.info("%s works", process.lease.name)


def _listen(settings: Settings, role: Role) -> socket.socket | None:
    """The socket to serve on. None: the port is taken, and a worker does without, since it would
    only serve health and metrics there. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = listening_socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(1024)
        return listener
    except OSError as error:
        listener.close()
        said = f"HOST and PORT: can't listen on {settings.host}:{settings.port}: {error.strerror}"
        if role is Role.WORKER:
            _log.warning("%s; this worker serves no health or metrics", said)
            return None
        raise ConfigurationError(f"{said}; choose another PORT or stop what uses it") from error


def listen_on_loopback(port: int) -> socket.socket:
    """A socket that only this machine reaches, at this port or, if that is taken, at any.
    Raises OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError:
        listener.close()
        if port == 0:
            raise
        return listen_on_loopback(0)
    return listener


def listening_socket(family: socket.AddressFamily) -> socket.socket:
    """An unbound socket whose options its connections inherit."""
    # The protocol is given since asyncio sets TCP_NODELAY only then: an answer would take 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN * 1000)
    return listener


class Serving:
    """A server on a socket of ours, until it is closed."""

    def __init__(self, app: ASGIApp, listener: socket.socket | None) -> None:
        config = uvicorn.Config(
            app,
            http=_Connection,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_LAST_REQUESTS,
        )
        self._server = _Server(config)
        self._closing = False
        self.broken = False
        """True if it ended without being closed."""
        self._task: asyncio.Task[None] | None = None
        if listener is not None:
            serving = self._server.serve(sockets=[listener])
            self._task = asyncio.create_task(serving, name="http")

    def on_end(self, tell: Callable[[], None]) -> None:
        """Call `tell` if the server ends by itself: a process that hears nothing has to stop."""

        def ended(task: asyncio.Task[None]) -> None:
            if not self._closing:
                self.broken = True
                error = None if task.cancelled() else task.exception()
                _log.error("the HTTP server ended by itself: this process stops", exc_info=error)
                tell()

        if self._task is not None:
            self._task.add_done_callback(ended)

    async def close(self) -> None:
        """Accept no more requests, and wait for those under way."""
        self._closing = self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait((self._task,))


@asynccontextmanager
async def listening(app: ASGIApp, listener: socket.socket | None) -> AsyncIterator[Serving]:
    """Serve the app on the socket (None: not at all) until it is closed or the body ends."""
    serving = Serving(app, listener)
    try:
        yield serving
    finally:
        await serving.close()
        if listener is not None:
            listener.close()  # which a server that broke has not done
