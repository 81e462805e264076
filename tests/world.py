"""Answerback between misbehaving providers: the whole program in the test's event loop.

A `World` has a fake Telegram, a fake Twilio, a fake Meta and one database; `start()` begins
processes of ours on it, each with its own HTTP port, lease and name. `Running.die()` ends one
as `kill -9` would: nothing that it meant to write is written. Tests that need real processes
use `tests/e2e`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx
import pytest
from sqlalchemy import text

from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import ChannelName
from bot.domain.plugin import Terminal
from bot.domain.ports import Clock
from bot.domain.turn import Agent
from bot.http import build_app
from bot.intake import accept
from bot.intake.profile import digest_of, menus_of
from bot.leases.checkpoints import Checkpoint, Reached, nowhere
from bot.main import listening, listening_socket
from bot.observability.tracing import Tracer
from bot.runs.shutdown import shut_down
from bot.testing import deaths
from bot.texts import Words
from bot.wiring import Parts, Process, Role, Settings, running, site
from bot.wiring.channels import given_settings
from storage import accounts
from storage.engine.database import Database, DatabaseSettings
from storage.statements.tx import Tx
from tests.clocks import PostgresClock, ShiftedClock
from tests.fakes.faults import answers_within
from tests.fakes.meta import FakeMeta
from tests.fakes.meta.server import NUMBER, VERIFY_TOKEN
from tests.fakes.meta.server import SECRET as META_SECRET
from tests.fakes.meta.server import TOKEN as META_TOKEN
from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.telegram.server import TOKEN, FakeTelegram
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER, FakeTwilio
from tests.limits import PATIENCE, until
from tests.ports import BACKLOG

T = TypeVar("T")
SECRET = "a-secret-for-webhooks"
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
META = {
    "meta_phone_number_id": NUMBER,
    "meta_access_token": META_TOKEN,
    "meta_app_secret": META_SECRET,
    "meta_verify_token": VERIFY_TOKEN,
}
"""The settings that turn Meta's channel on, with one number."""
PUBLIC = "https://bot.example.test"


class MortalDatabase(deaths.MortalDatabase):
    """A mortal database that does not answer while it is `away`; `refused` are the moves that it
    did not make."""

    away = False

    def __init__(self, settings: DatabaseSettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.refused: list[Any] = []

    async def write(self, move: Any, *args: Any, **kwargs: Any) -> Any:
        if self.away:
            self.refused.append(move)
        return await super().write(move, *args, **kwargs)

    async def _if_alive(self) -> None:
        await super()._if_alive()
        if self.away:
            raise DatabaseUnavailable("the database is away")


@dataclass
class Running:
    """One process of ours. `url` is where its HTTP routes listen."""

    process: Process
    url: str
    client: httpx.AsyncClient
    _ended: asyncio.Event
    _task: asyncio.Task[None]

    async def post_update(self, update: dict[str, Any], secret: str = SECRET) -> httpx.Response:
        """Deliver a Telegram update once."""
        headers = {SECRET_HEADER: secret} if secret else {}
        return await self.client.post(f"{self.url}/telegram/webhook", json=update, headers=headers)

    async def stop(self, grace: float = 5.0) -> None:
        """Hand over and leave, as SIGTERM asks."""
        self.process.send_followers_away()
        await shut_down(self.process.ctx, self.process.worker, grace)
        self._ended.set()
        await self._task

    def away(self, away: bool) -> MortalDatabase:
        """Let this process alone lose its database, or find it again."""
        db = self.process.rt.db
        assert isinstance(db, MortalDatabase)
        db.away = away
        return db

    def stand_still(self) -> None:
        """No heartbeat, no watch, no sweep any more, as after SIGSTOP."""
        for name in ("heartbeat", "watch", "sweep", "repair", "reminders"):
            self.process.tasks.tasks[name].cancel()

    @property
    def dead(self) -> bool:
        """Tell whether it died."""
        return deaths.mortal(self.process).dead

    @property
    def end(self) -> asyncio.Task[None]:
        """Is done when the process has ended, however it did."""
        return self._task

    async def die(self) -> None:
        """End as `kill -9` would."""
        self.kill()
        await asyncio.gather(self._task, return_exceptions=True)

    def kill(self) -> None:
        """Stop everything at this instant, without waiting for the pieces to fall."""
        if self.dead:
            return  # It falls to pieces already, and must not be disturbed in that.
        deaths.fall(self.process)
        self._task.cancel()


def _menu_is_shown(tx: Tx, bot: str) -> None:
    account = accounts.ensure(tx, ChannelName("telegram"), bot)
    accounts.set_menu(tx, account.id, _usual_menu())


@cache
def _usual_menu() -> str:
    return digest_of(menus_of(Words.load()))


def _written_by(write: Callable[[str], None]) -> Terminal:
    async def written(text: str, _answers: str) -> None:
        write(text)

    return written


@dataclass
class World:
    """The providers, the database, the processes that a test started, and a folder for files.

    Unless `first_start`, an earlier process gave Telegram the bot's menu of commands.
    """

    database_url: str
    telegram: FakeTelegram
    twilio: FakeTwilio
    meta: FakeMeta
    clock: ShiftedClock
    folder: Path
    running: list[Running] = field(default_factory=list)
    first_start: bool = False
    _asked: Database | None = None

    def __post_init__(self) -> None:
        self._database_clock = PostgresClock(self.clock)

    def settings(self, **changes: Any) -> Settings:
        """Settings of a process between these providers."""
        values: dict[str, Any] = {
            "database_url": self.database_url,
            "database_pool": 4,
            "lease_seconds": PATIENCE,
            "public_url": PUBLIC,
            "telegram_bot_token": TOKEN,
            "telegram_mode": "webhook",
            "telegram_webhook_secret": SECRET,
            "telegram_api_url": self.telegram.url,
            "telegram_read_timeout": answers_within(
                *(rule.fault for rule in self.telegram.script.rules)
            ),
            "twilio_account_sid": ACCOUNT,
            "twilio_auth_token": AUTH_TOKEN,
            "twilio_whatsapp_from": SENDER,
            "twilio_api_url": self.twilio.url,
            "twilio_timeout": answers_within(*(rule.fault for rule in self.twilio.script.rules)),
            "twilio_typing": False,
            "meta_api_url": self.meta.url,
            "meta_timeout": answers_within(*(rule.fault for rule in self.meta.script.rules)),
            "meta_typing": False,
        }
        return given_settings(**{**values, **changes})

    async def start(
        self,
        *,
        agent: Agent | None = None,
        role: Role = Role.ALL,
        reached: Reached = nowhere,
        clock: Clock | None = None,
        terminal: Callable[[str], None] | None = None,
        tracer: Tracer | None = None,
        **changes: Any,
    ) -> Running:
        """Begin a process of ours and wait until it works; with `terminal`, one that speaks
        there and on no platform."""
        up: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
        ended = asyncio.Event()
        settings = self.settings(**changes)
        if not self.first_start and "telegram_bot_token" not in changes and terminal is None:
            await self._beside().write(_menu_is_shown, self.telegram.main.id)

        async def live() -> None:
            listener = listening_socket(socket.AF_INET)
            listener.bind(("127.0.0.1", 0))
            listener.listen(BACKLOG)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            parts = Parts(
                terminal=None if terminal is None else _written_by(terminal),
                agent=agent,
                reached=reached,
                clock=clock or self.clock,
                open_database=MortalDatabase,
                tracer=tracer,
            )
            with listener:
                async with (
                    running(settings, role, parts) as process,
                    listening(build_app(site(process)), listener),
                    httpx.AsyncClient(
                        verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE
                    ) as client,
                ):
                    up.set_result(Running(process, url, client, ended, task))
                    await ended.wait()

        task = asyncio.create_task(live(), name="process")
        await asyncio.wait((up, task), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        started = up.result()
        self.running.append(started)
        self.twilio.reach[PUBLIC] = started.url
        self.twilio.webhook_url = f"{PUBLIC}/whatsapp/webhook"
        self.telegram.reach[PUBLIC] = started.url
        self.meta.reach[PUBLIC] = started.url
        self.meta.webhook_url = f"{PUBLIC}/whatsapp-cloud/webhook"
        return started

    def advance(self, seconds: float) -> None:
        """Set the clock of every process and of the database forward. Workers look at once: what
        they wait for besides a hint is the loop's time."""
        self.clock.advance(seconds)
        self._set_database()
        for one in self.running:
            if (worker := one.process.worker) is not None:
                worker._wake.set()
                worker._standalone.set()

    def stop_time(self) -> None:
        """Let the clock of every process and of the database move by `advance` alone."""
        self.clock.stop()
        self._set_database()

    def let_time_go_on(self) -> None:
        """Let the clocks move again, from where they stand."""
        self.clock.go_on()
        self._set_database()

    def _set_database(self) -> None:
        if not self.database_url.startswith("sqlite"):
            self._database_clock.set(self._beside())

    async def rows(self, sql: str, **params: Any) -> Sequence[Any]:
        """The rows of a query, asked beside the processes."""

        def found(tx: Tx) -> Sequence[Any]:
            return tx.execute(text(sql), params).all()

        return await self._beside().ask(found)

    async def lease_runs_out(self, pid: int) -> None:
        """Let everybody find the lease of this process overdue, which renews it no more."""
        overdue = text("UPDATE holders SET renewed_at = renewed_at - 1e6 WHERE pid = :pid")
        await self._beside().write(lambda tx: tx.execute(overdue, {"pid": pid}))

    def _beside(self) -> Database:
        if self._asked is None:
            self._asked = Database(DatabaseSettings(self.database_url, pool=1), self.clock)
        return self._asked

    async def settled(self, timeout: float = PATIENCE) -> None:
        """Wait until no run is live and no standalone message is on its way."""
        sql = (
            "SELECT (SELECT count(*) FROM runs WHERE state <> 'ended') + (SELECT count(*) "
            "FROM outbox WHERE standalone AND state IN ('pending', 'sending'))"
        )
        await self.until(sql, lambda rows: rows[0][0] == 0, timeout)

    async def until(
        self, sql: str, holds: Callable[[Sequence[Any]], bool], timeout: float = PATIENCE
    ) -> Sequence[Any]:
        """Ask again and again until the answer is as wanted; returns it."""
        rows: Sequence[Any] = ()

        async def held() -> bool:
            nonlocal rows
            rows = await self.rows(sql)
            return holds(rows)

        await until(held, timeout)
        return rows

    async def close(self) -> None:
        for started in self.running:
            if not started._task.done():
                started.kill()
        await asyncio.gather(*(r._task for r in self.running), return_exceptions=True)
        if self._asked is not None:
            self._asked.close()


@asynccontextmanager
async def open_world(database_url: str) -> AsyncIterator[World]:
    """A world on this database, which is migrated and empty."""
    async with AsyncExitStack() as stack:
        # A machine that is busy for a while must not look as a slow database does.
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(accept, "COMMIT_WITHIN", PATIENCE)
        clock = ShiftedClock()
        telegram = await stack.enter_async_context(FakeTelegram(now=clock.wall))
        twilio = await stack.enter_async_context(FakeTwilio(now=clock.wall))
        meta = await stack.enter_async_context(FakeMeta(now=clock.wall, sleep=clock.sleep))
        folder = stack.enter_context(TemporaryDirectory(prefix="answerback-world-"))
        world = World(database_url, telegram, twilio, meta, clock, Path(folder))
        stack.push_async_callback(world.close)
        yield world


def dies_at(where: Checkpoint, victim: Callable[[], Running], times: int = 1) -> Reached:
    """A `Reached` that kills the process at a checkpoint, `times` times."""
    left = times

    async def reached(checkpoint: Checkpoint) -> None:
        nonlocal left
        if checkpoint is where and left > 0:
            left -= 1
            victim().kill()
            raise asyncio.CancelledError("the process died here")

    return reached
