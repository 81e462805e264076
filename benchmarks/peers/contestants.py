"""The bots of other libraries as contestants of the storm, and what each of them promises.

A kind of misfortune that would take from a library what it stands on, where nothing of the like is
done to Answerback, is left out for it: who keeps jobs in Redis finds it restarted, with everything
that it had confirmed, and never emptied; who has one process, or names its processes, is restarted
instead of handed over; and a process alone is killed as often as each of three is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import httpx

from benchmarks.proof.contestant import Contestant, Start
from benchmarks.proof.judge import Claim
from benchmarks.proof.ours import Answerback
from benchmarks.proof.plan import PER_MINUTE, Kind, Platform
from tests.e2e.forking import ROOT
from tests.fakes.telegram.server import TOKEN
from tests.fakes.updates import Person
from tests.world import SECRET, SECRET_HEADER

_SORRY = re.compile(r"^sorry: (\S+)$")
_NOBODY = 899_000_000
"""A person who only says hello."""
_FREE_AFTER = 35.0
"""Seconds until a job of a dead worker may be taken: 30 by the settings of both queues."""
_WITHOUT = (
    *(Kind.DATABASE_RESTART, Kind.CONNECTIONS_CUT, Kind.DISK_FULL, Kind.DATABASE_HELD),
    *(Kind.REDIS_EMPTIED, Kind.REDIS_STOPPED, Kind.REDIS_NONSENSE, Kind.OPERATOR),
)
_BARE: Mapping[Kind, float] = {**PER_MINUTE, **dict.fromkeys(_WITHOUT, 0.0)}
_RESTARTED: Mapping[Kind, float] = {
    Kind.RESTART: PER_MINUTE[Kind.RESTART] + PER_MINUTE[Kind.HAND_OVER],
    Kind.HAND_OVER: 0.0,
}
_ON_REDIS = {**_BARE, Kind.REDIS_STOPPED: PER_MINUTE[Kind.DATABASE_RESTART]}
_OF_POSTGRES = (Kind.DATABASE_RESTART, Kind.CONNECTIONS_CUT, Kind.DISK_FULL)
_ON_POSTGRES = {**_BARE, **_RESTARTED, **{kind: PER_MINUTE[kind] for kind in _OF_POSTGRES}}
_OF_PROCESSES = (Kind.KILL, Kind.FREEZE, Kind.RESTART)
_PROCESSES = 3
"""Those of Answerback, of DBOS, and of a queue with its webhook."""
_ALONE = {**_BARE, **_RESTARTED}
_ALONE |= {kind: _ALONE[kind] / _PROCESSES for kind in _OF_PROCESSES}
"""A process meets as much as each of the others does."""


def apologies(texts: Iterable[str]) -> Mapping[str, Claim]:
    """The messages for which somebody apologised, read from what people were shown."""
    found = (_SORRY.match(text) for text in texts)
    return {match[1]: Claim.APOLOGISED for match in found if match is not None}


@dataclass
class Peer(Contestant):
    """A bot in `.venv-peers/`, on Telegram alone. All that it claims is what it told people."""

    environment: ClassVar[str] = "naive"
    """Its folder there."""
    platforms = (Platform.TELEGRAM,)
    places = _PROCESSES
    kinds: ClassVar[Mapping[Kind, float]] = _BARE
    durable_redis: ClassVar[bool] = False
    _doors: dict[int, int] = field(default_factory=dict)
    """The port at each place that takes webhooks."""

    def command(self, place: int, port: int) -> Sequence[str | Path]:
        """The command of a place, as its documentation has it."""
        raise NotImplementedError

    def start(self, place: int, port: int) -> Start:
        if self.takes_webhooks(place):
            self._doors[place] = port
        return Start(self.command(place, port), self._environment(place))

    def program(self, name: str) -> Path:
        """A program of its environment."""
        return ROOT / ".venv-peers" / self.environment / "bin" / name

    def webhook(self, module: str, port: int) -> Sequence[str | Path]:
        """The command of a webhook."""
        words = (f"{bots(module)}:app", "--port", str(port), "--log-level", "warning")
        return self.program("uvicorn"), *words, "--timeout-graceful-shutdown", "10"

    def _environment(self, place: int) -> Mapping[str, str]:
        ground = self.ground
        return {
            **ground.environment,
            "HOME": str(ground.folder),
            "BOT_TOKEN": TOKEN,
            "BOT_API": ground.providers[Platform.TELEGRAM],
            "BOT_SECRET": SECRET,
            "REDIS_URL": ground.redis,
            "DATABASE_URL": ground.database,
            "EXECUTOR": f"executor-{place}",
        }

    async def ready(self, url: str) -> bool:
        if int(url.rpartition(":")[2]) not in self._doors.values():
            return True
        try:
            async with httpx.AsyncClient(trust_env=False) as http:
                return (await http.get(url)).status_code == 404
        except httpx.TransportError:
            return False

    async def claims(self) -> Mapping[str, Claim]:
        url = f"{self.ground.providers[Platform.TELEGRAM]}/_fake/messages"
        async with httpx.AsyncClient(trust_env=False, timeout=120.0) as http:
            said = (await http.get(url)).json()
        return apologies(one["text"] for one in said)


def bots(module: str) -> str:
    """The full name of a bot's module."""
    return f"benchmarks.peers.bots.{module}"


@dataclass
class Naive(Peer):
    """python-telegram-bot's own loop: one process, since Telegram lets only one fetch."""

    name = "python-telegram-bot 22.8"
    places = 1
    polls = True
    kinds = _ALONE

    def command(self, place: int, port: int) -> Sequence[str | Path]:
        return self.program("python"), "-m", bots("polling")

    def takes_webhooks(self, place: int) -> bool:
        return False


@dataclass
class Queued(Peer):
    """A webhook in the first place, workers in the others, jobs in Redis."""

    kinds = _ON_REDIS
    durable_redis = True
    quiet_after = 15.0
    _nobody: Person = field(default_factory=lambda: Person(_NOBODY))

    def takes_webhooks(self, place: int) -> bool:
        return place == 0

    async def settled(self) -> bool | None:
        """Wait until what a dead worker held is free, and have somebody say hello: taskiq looks for
        such only when it has fetched a new message."""
        await asyncio.sleep(_FREE_AFTER)
        update = self._nobody.text("hello")
        async with httpx.AsyncClient(trust_env=False) as http:
            for port in self._doors.values():
                url = f"http://127.0.0.1:{port}/telegram/webhook"
                with suppress(httpx.HTTPError):  # It is still starting, so nothing is settled.
                    await http.post(url, json=update, headers={SECRET_HEADER: SECRET})
        return None


@dataclass
class Arq(Queued):
    """arq's worker by its own command."""

    name = "arq 0.28.0"
    environment = "arq"

    def command(self, place: int, port: int) -> Sequence[str | Path]:
        if self.takes_webhooks(place):
            return self.webhook("queued_arq", port)
        return self.program("arq"), f"{bots('queued_arq')}.WorkerSettings"


@dataclass
class Taskiq(Queued):
    """taskiq's worker by its own command."""

    name = "taskiq 0.13.0"
    environment = "taskiq"

    def command(self, place: int, port: int) -> Sequence[str | Path]:
        if self.takes_webhooks(place):
            return self.webhook("queued_taskiq", port)
        options = ("--workers", "1", "--ack-type", "when_executed", "--max-async-tasks", "50")
        waits = ("--wait-tasks-timeout", "10", "--log-level", "WARNING")
        return self.program("taskiq"), "worker", *options, *waits, f"{bots('queued_taskiq')}:broker"


@dataclass
class Dbos(Peer):
    """DBOS: three executors, each with its name and its webhook."""

    name = "DBOS 3.4.0"
    environment = "dbos"
    kinds = _ON_POSTGRES

    def command(self, place: int, port: int) -> Sequence[str | Path]:
        return self.webhook("durable", port)


@dataclass
class Ours(Answerback):
    """Answerback on Telegram alone, as the others are; with everything that befalls it at home."""

    platforms = (Platform.TELEGRAM,)
    kinds: ClassVar[Mapping[Kind, float]] = PER_MINUTE
    durable_redis: ClassVar[bool] = False
