"""Real processes of ours between fake providers: started, watched, killed, frozen, stopped.

A `Ground` has the fakes and one database; `start()` begins a process with an environment of
its own. Whatever happens in the test, no process outlives it, nor the test's own process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.agent import FakeAgent
from tests.e2e.forking import ROOT, Forked
from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.limits import PATIENCE, until
from tests.world import META, PUBLIC, SECRET, SECRET_HEADER, World, open_world

PROGRAM = Path(sys.executable).with_name("answerback")


@dataclass
class Program:
    """One process of ours. `said` and `printed` are its lines on standard error and output."""

    process: Forked
    client: httpx.AsyncClient
    said: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    url: str = ""
    _readers: list[asyncio.Task[None]] = field(default_factory=list)

    def listen(self) -> None:
        """Begin to collect what it says."""
        pairs = ((self.process.stderr, self.said), (self.process.stdout, self.printed))
        for stream, lines in pairs:
            self._readers.append(asyncio.create_task(_collect(stream, lines)))

    @property
    def output(self) -> str:
        return "\n".join([*self.said, *self.printed])

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    async def listens(self) -> None:
        """Wait until it has said where it listens. Raises AssertionError when it ended."""
        await until(lambda: self._place() != "" or not self.running)
        self.url = self._place()
        assert self.url, f"it ended: {self.output}"

    async def ready(self) -> None:
        """Wait until `/readyz` is green."""
        await self.listens()
        await until(self.is_ready)

    async def is_ready(self) -> bool:
        return (await self.get("/readyz")).status_code == 200

    def _place(self) -> str:
        marked = (line.partition("listens on ")[2] for line in self.said)
        return next((place.split()[0] for place in marked if place), "")

    async def accepts(self, port: int) -> None:
        """Wait until somebody listens on this port, which it was told to take."""
        self.url = f"http://127.0.0.1:{port}"
        await until(self._reachable)

    async def _reachable(self) -> bool:
        try:
            await self.get("/healthz")
        except httpx.ConnectError:
            return False
        return True

    async def get(self, path: str) -> httpx.Response:
        return await self.client.get(self.url + path)

    async def post_update(self, update: dict[str, Any], secret: str = SECRET) -> httpx.Response:
        """Deliver a Telegram update once."""
        headers = {SECRET_HEADER: secret} if secret else {}
        return await self.client.post(f"{self.url}/telegram/webhook", json=update, headers=headers)

    async def takes(self, update: dict[str, Any]) -> None:
        """Deliver a Telegram update until it is taken, as the platform does: a slow database or
        machine is told with a 503."""
        while (answer := await self.post_update(update)).status_code != 200:
            assert answer.status_code == 503

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    async def kill(self) -> None:
        """SIGKILL, and wait until the kernel has done it."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return await self.ended()

    async def say(self, text: str, *, end: bool = False) -> None:
        """Type into its standard input; `end` closes it."""
        stdin = self.process.stdin
        stdin.write(text.encode())
        await stdin.drain()
        if end:
            stdin.close()

    async def ended(self, timeout: float = PATIENCE) -> int:
        """Wait for its end and the last of its lines; the exit code."""
        async with asyncio.timeout(timeout):
            code = await self.process.wait()
            await asyncio.gather(*self._readers)
        return code

    async def clear_away(self) -> None:
        if self.running:
            self.signal(signal.SIGKILL)
        # A clearing that is stuck is a failure too: the limit of a test does not end it.
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self.process.close()


async def _collect(stream: asyncio.StreamReader, lines: list[str]) -> None:
    async for line in stream:
        lines.append(line.decode(errors="replace").rstrip("\n"))  # noqa: PERF401 - as they come


@dataclass
class Ground:
    """The fakes, the database and the processes of one test. `code` is the folder of the packages
    that are started."""

    world: World
    agent: FakeAgent
    folder: Path
    client: httpx.AsyncClient
    programs: list[Program] = field(default_factory=list)
    code: Path = ROOT

    def running(self, code: Path) -> Ground:
        """The same ground, on which this code is started."""
        return replace(self, code=code)

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment that a process of ours gets to see; an empty value unsets a variable.
        COMMIT_WITHIN is for `tests.e2e.ancestor`."""
        values = {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": self.world.database_url,
            "DATABASE_POOL": "4",
            "AGENT": self.agent.agent_url,
            "PORT": "0",
            "PUBLIC_URL": PUBLIC,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_MODE": "webhook",
            "TELEGRAM_WEBHOOK_SECRET": SECRET,
            "TELEGRAM_API_URL": self.world.telegram.url,
            "TELEGRAM_READ_TIMEOUT": f"{PATIENCE:.0f}",
            "TWILIO_ACCOUNT_SID": ACCOUNT,
            "TWILIO_AUTH_TOKEN": AUTH_TOKEN,
            "TWILIO_WHATSAPP_FROM": SENDER,
            "TWILIO_API_URL": self.world.twilio.url,
            "TWILIO_TIMEOUT": f"{PATIENCE:.0f}",
            "TWILIO_TYPING": "false",
            "META_API_URL": self.world.meta.url,
            "META_TIMEOUT": f"{PATIENCE:.0f}",
            "META_TYPING": "false",
            "LEASE_SECONDS": f"{PATIENCE:.0f}",  # No living process may lose it.
            "HEARTBEAT_SECONDS": "1",
            "SHUTDOWN_GRACE": "10",
            **changes,
        }
        return {name: value for name, value in values.items() if value}

    async def spawn(self, *words: str, **changes: str) -> Program:
        """Start `answerback` with these words, and don't wait for anything."""
        process = await Forked.start(
            *words,
            environment=self.environment(**changes),
            folder=self.folder,
            code=self.code,
        )
        program = Program(process, self.client)
        program.listen()
        self.programs.append(program)
        return program

    async def serve(self, role: str = "all", **changes: str) -> Program:
        """Start a serving process and wait until it is ready. The fakes' webhooks lead to the
        last one that is started with webhooks."""
        program = await self.spawn("serve", "--role", role, **changes)
        await program.ready()
        if role != "worker":
            self.lead_to(program)
        return program

    async def talk(self, *words: str, lines: str = "", **changes: str) -> Program:
        """Start a terminal program (`chat`, `up`) with this input, which ends there."""
        program = await self.spawn(*words, **(NO_PLATFORM | changes))
        await program.say(lines, end=True)
        return program

    def lead_to(self, program: Program) -> None:
        """Let the platforms' webhooks arrive there."""
        self.world.telegram.reach[PUBLIC] = program.url
        self.world.twilio.reach[PUBLIC] = program.url
        self.world.twilio.webhook_url = f"{PUBLIC}/whatsapp/webhook"
        self.world.meta.reach[PUBLIC] = program.url
        self.world.meta.webhook_url = f"{PUBLIC}/whatsapp-cloud/webhook"

    async def close(self) -> None:
        """End every process. What they said is shown when the test failed."""
        for program in self.programs:
            await program.clear_away()
            print(f"--- {program.pid}, ended with {program.process.returncode}", program.output)


CLOUD = {name.upper(): value for name, value in META.items()}
"""The settings that turn Meta's channel on."""
NO_PLATFORM = {"TELEGRAM_BOT_TOKEN": "", "TWILIO_ACCOUNT_SID": "", "PUBLIC_URL": ""}


@asynccontextmanager
async def open_ground(database_url: str, folder: Path) -> AsyncIterator[Ground]:
    """A ground on this database."""
    async with (
        open_world(database_url) as world,
        FakeAgent() as agent,
        httpx.AsyncClient(verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE) as client,
    ):
        ground = Ground(world, agent, folder, client)
        try:
            yield ground
        finally:
            world.telegram.script.clear()
            world.twilio.script.clear()
            world.meta.script.clear()
            agent.script.clear()
            await ground.close()
