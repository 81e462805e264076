"""Serving: start, listen, and leave well when told to."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette

from bot.domain.errors import ConfigurationError
from bot.flows.handover import hand_over
from bot.webhooks import build_app
from bot.wiring import Role, Settings, running
from bot.wiring.doors import doorway
from bot.wiring.signals import stop_signals

_log = logging.getLogger("answerback")


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: we decide what a signal means."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: Settings, role: Role) -> None:
    """Run until SIGTERM or SIGINT, then hand over. Raises ConfigurationError."""
    if role is not Role.WORKER and not settings.has_platform:
        raise ConfigurationError(
            "no platform is configured: set TELEGRAM_BOT_TOKEN, or TWILIO_ACCOUNT_SID and its "
            "companions; `answerback chat` needs none"
        )
    listener = _listen(settings, role)
    async with running(settings, role) as process:
        app = build_app(doorway(process))
        async with listening(app, listener):
            if listener is not None:
                host, port = listener.getsockname()[:2]
                _log.info("%s listens on http://%s:%s", process.lease.name, host, port)
            with stop_signals(process) as stop:
                await stop.wait()
                _log.info("handing over within %.0f s", settings.shutdown_grace)
                await hand_over(process.desk, process.worker, settings.shutdown_grace)
        await process.intake.close()


def _listen(settings: Settings, role: Role) -> socket.socket | None:
    """The socket to serve on. A worker does without when the port is taken: it serves only
    health and metrics there. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named, because asyncio only then sets TCP_NODELAY; without it an answer takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


@asynccontextmanager
async def listening(app: Starlette, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serve the app on the socket while the body runs."""
    if listener is None:
        yield
        return
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        yield
    finally:
        server.should_exit = True
        await serving
