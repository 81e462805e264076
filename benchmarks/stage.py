"""The stage of a benchmark: servers and fakes as processes of their own, all on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.e2e.forking import ROOT
from tests.e2e.processes import PROGRAM
from tests.fakes.meta.courier import SIGNATURE, signature
from tests.fakes.meta.server import SECRET as META_SECRET
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.fakes.twilio.signing import signed_headers
from tests.limits import PATIENCE
from tests.ports import own_port
from tests.servers import Postgres, Valkey
from tests.world import META, PUBLIC, SECRET, SECRET_HEADER

META_PATH = "/whatsapp-cloud/webhook"
_databases = count(1)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Servers:
    """Both servers, each with its processes; PostgreSQL waits for the disk."""

    postgres: Postgres
    valkey: Valkey
    pids: Sequence[int]


@contextmanager
def servers() -> Iterator[Servers]:
    """Servers of their own for one run of benchmarks."""
    with Postgres(durable=True) as postgres, Valkey() as valkey:
        yield Servers(postgres, valkey, (postgres.pid, valkey.pid))


async def spawn(*command: str | Path, **options: Any) -> Process:
    """Start a program that is killed when we end, however we end."""
    return await asyncio.create_subprocess_exec(*command, preexec_fn=_end_with_us, **options)


def _end_with_us() -> None:
    _PROCESS_CONTROL(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


_PROCESS_CONTROL = ctypes.CDLL(None).prctl
_PARENT_DEATH_SIGNAL = 1


@dataclass
class Worker:
    """One process of ours on a port that stays its own across restarts."""

    url: str
    process: Process

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    async def end(self, how: signal.Signals) -> None:
        """Send the signal and wait for the end."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        await self.process.wait()


@dataclass
class Stage:
    """One database, the fakes, and the processes of ours that were started on it. `meta_url` is
    empty where nobody writes through Meta."""

    database_url: str
    telegram_url: str
    twilio_url: str
    meta_url: str
    client: httpx.AsyncClient
    folder: Path
    workers: list[Worker] = field(default_factory=list)

    async def start(self, role: str = "all", **changes: str) -> Worker:
        """Start `answerback serve` in this role; returns when it is ready."""
        worker = await self.begin(role, own_port(), **changes)
        await self.ready(worker)
        return worker

    async def begin(self, role: str, port: int, **changes: str) -> Worker:
        """Start it on this port, and don't wait."""
        process = await spawn(
            PROGRAM,
            *("serve", "--role", role),
            cwd=self.folder,
            env=self._environment(port) | changes,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=(self.folder / "log").open("ab"),
        )
        worker = Worker(f"http://127.0.0.1:{port}", process)
        self.workers.append(worker)
        return worker

    async def ready(self, worker: Worker) -> None:
        """Wait until it is ready. Raises TimeoutError, RuntimeError when it ended."""
        async with asyncio.timeout(3 * PATIENCE):
            while worker.running:
                with contextlib.suppress(httpx.TransportError):
                    if (await self.client.get(f"{worker.url}/readyz")).status_code == 200:
                        return
                await asyncio.sleep(0.05)
        log = (self.folder / "log").read_text().splitlines()
        raise RuntimeError("\n".join(["a process ended before it was ready:", *log[-20:]]))

    def _environment(self, port: int) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": self.database_url,
            "PORT": str(port),
            "PUBLIC_URL": PUBLIC,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_MODE": "webhook",
            "TELEGRAM_WEBHOOK_SECRET": SECRET,
            "TELEGRAM_API_URL": self.telegram_url,
            "TWILIO_ACCOUNT_SID": ACCOUNT,
            "TWILIO_AUTH_TOKEN": AUTH_TOKEN,
            "TWILIO_WHATSAPP_FROM": SENDER,
            "TWILIO_API_URL": self.twilio_url,
            "TWILIO_TYPING": "false",
            "LOG_LEVEL": "WARNING",
        } | self._meta()

    def _meta(self) -> dict[str, str]:
        if not self.meta_url:
            return {}
        named = {name.upper(): value for name, value in META.items()}
        return named | {"META_API_URL": self.meta_url, "META_TYPING": "false"}

    async def post_update(self, url: str, update: dict[str, Any]) -> int:
        """Deliver a Telegram update to a process; 0 when nobody took it."""
        try:
            answer = await self.client.post(
                f"{url}/telegram/webhook", json=update, headers={SECRET_HEADER: SECRET}
            )
        except httpx.TransportError:
            return 0
        return answer.status_code

    async def post_form(self, url: str, form: list[tuple[str, str]]) -> int:
        """Deliver a Twilio form to a process; 0 when nobody took it."""
        path = "/whatsapp/webhook"
        headers = signed_headers(PUBLIC + path, form, AUTH_TOKEN, None)
        try:
            answer = await self.client.post(url + path, data=dict(form), headers=headers)
        except httpx.TransportError:
            return 0
        return answer.status_code

    async def post_meta(self, url: str, body: bytes) -> int:
        """Deliver a body of Meta's to a process; 0 when nobody took it."""
        headers = {SIGNATURE: signature(body, META_SECRET)}
        try:
            answer = await self.client.post(f"{url}{META_PATH}", content=body, headers=headers)
        except httpx.TransportError:
            return 0
        return answer.status_code

    async def reports_to(self, url: str) -> None:
        """Let Meta's statuses go to this process, again and again until it takes them."""
        asked = {"webhook_url": PUBLIC + META_PATH, "reach": {PUBLIC: url}, "first_repeat": 0.2}
        await self.client.post(f"{self.meta_url}/_fake/do/configure", json=asked)

    async def shown(self, fake_url: str) -> list[dict[str, Any]]:
        """Everything that people see at a fake, in order."""
        answer = await self.client.get(f"{fake_url}/_fake/messages", timeout=60.0)
        found: list[dict[str, Any]] = answer.json()
        return found

    async def calls(self, fake_url: str, method: str) -> list[dict[str, Any]]:
        """The calls of one method that a fake was sent, in order."""
        answer = await self.client.get(f"{fake_url}/_fake/calls?method={method}", timeout=60.0)
        found: list[dict[str, Any]] = answer.json()
        return found

    async def texts(self, chat: int) -> list[str]:
        """Everything that a person sees in a Telegram chat."""
        return [m["text"] for m in await self.shown(self.telegram_url) if m["chat"] == chat]

    def rows(self, sql: str) -> list[Row]:
        """The rows of a query on PostgreSQL."""
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(sql).fetchall()

    async def close(self) -> None:
        for worker in self.workers:
            await worker.end(signal.SIGKILL)


@asynccontextmanager
async def open_stage(
    postgres: Postgres, telegram: str = "tests.fakes.telegram", meta: str = ""
) -> AsyncIterator[Stage]:
    """A stage on a new database of this server. `telegram` is the program that plays the Bot
    API, `meta` the one that plays the Graph API; empty for none."""
    async with AsyncExitStack() as stack:
        telegram_url, twilio_url, meta_url = [
            await stack.enter_async_context(_fake(program)) if program else ""
            for program in (telegram, "tests.fakes.twilio", meta)
        ]
        client = await stack.enter_async_context(
            httpx.AsyncClient(
                trust_env=False, timeout=30.0, limits=httpx.Limits(max_connections=None)
            )
        )
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="answerback-bench-"))
        database = new_database(postgres)
        stage = Stage(database, telegram_url, twilio_url, meta_url, client, Path(folder))
        stack.push_async_callback(stage.close)
        yield stage


def new_database(postgres: Postgres) -> str:
    """The URL of an empty database."""
    name = f"bench_{next(_databases)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.url(name)


@asynccontextmanager
async def _fake(module: str) -> AsyncIterator[str]:
    """A fake provider's URL while it runs."""
    process = await spawn(
        *(sys.executable, "-m", module, "--port", "0"),
        cwd=ROOT,
        stdout=PIPE,
        stderr=DEVNULL,  # it tells of every caller that was killed
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()
