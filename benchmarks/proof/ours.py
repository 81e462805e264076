"""Answerback in a storm: its processes, its rows, its operators."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import httpx
import psycopg
import pysqlite3.dbapi2 as sqlite3

from benchmarks.pages import PAGES
from benchmarks.proof.contestant import Contestant, Held, Start
from benchmarks.proof.judge import Claim
from benchmarks.proof.places import tell
from benchmarks.proof.plan import Platform
from benchmarks.stage import spawn
from bot.domain.ending import Cause, Ending
from storage.schema.tables import metadata
from tests.e2e.processes import PROGRAM
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.world import META, PUBLIC, SECRET

SETTINGS = PAGES | {
    "AGENT": "benchmarks.proof.agent:answer",
    "BURST": "each",
    "LEASE_SECONDS": "3",
    "HEARTBEAT_SECONDS": "1",
    "SHUTDOWN_GRACE": "5",
    "DATABASE_POOL": "4",
    "CHAT_WAITING_MAX": "1000000",
    "HOST": "127.0.0.1",
    "PUBLIC_URL": PUBLIC,
    "TELEGRAM_BOT_TOKEN": TOKEN,
    "TELEGRAM_WEBHOOK_SECRET": SECRET,
    "TELEGRAM_READ_TIMEOUT": "5",
    "TWILIO_ACCOUNT_SID": ACCOUNT,
    "TWILIO_AUTH_TOKEN": AUTH_TOKEN,
    "TWILIO_WHATSAPP_FROM": SENDER,
    "TWILIO_TYPING": "false",
    "TWILIO_TIMEOUT": "5",
    "META_TYPING": "false",
    "META_TIMEOUT": "5",
    "LOG_LEVEL": "WARNING",
    **{name.upper(): value for name, value in META.items()},
}
_APIS = {
    Platform.TELEGRAM: "TELEGRAM_API_URL",
    Platform.TWILIO: "TWILIO_API_URL",
    Platform.META: "META_API_URL",
}
_WAITS = 30.0
"""Seconds that an operator's command may take."""
_HELD = """SELECT r.id, r.fence, EXISTS (SELECT 1 FROM outbox o WHERE o.run = r.id
    AND o.state = 'sending') FROM runs r JOIN holders h ON h.id = r.holder
    WHERE r.state = 'running' AND h.pid = {pid}"""
_OPEN = """SELECT (SELECT count(*) FROM runs WHERE state <> 'ended') + (SELECT count(*)
    FROM outbox WHERE standalone AND state IN ('pending', 'sending'))"""
_ANSWERED = """SELECT count(*) FROM inbound i JOIN runs r ON r.id = i.run
    WHERE r.state = 'ended'"""
_LEFT = """SELECT r.id, r.state, r.chat, c.paused_until, r.holder, r.fence, r.attempts,
    r.failures, r.deaths, r.not_before, r.set_aside, r.detail, o.kind, o.state, o.attempts,
    o.not_before, o.error FROM runs r JOIN chats c ON c.id = r.chat
    LEFT JOIN outbox o ON o.run = r.id WHERE r.state <> 'ended'"""
_ENDED = """SELECT i.text, r.ending, r.cause, EXISTS (
        SELECT 1 FROM events e WHERE e.run = r.id AND e.what = 'ended uncertain')
    FROM inbound i JOIN runs r ON r.id = i.run"""
_REQUEUED = """SELECT i.text FROM inbound i JOIN events e
    ON e.run = i.run OR e.why = 'as run ' || CAST(i.run AS TEXT)
    WHERE e.what = 'requeued' AND e.who = 'storm'"""
"""Also of a run that had ended: its messages belong to a new one, which the event names."""
_STORY = {
    "message": """SELECT id, run, sent_at, received_at FROM inbound
        WHERE text LIKE '{name} %' OR text = '{name}'""",
    "run": """SELECT r.id, r.order_at, r.created_at, r.claimed_at, r.ended_at, r.ending, r.cause,
        r.fence, r.attempts, r.failures, r.deaths FROM runs r JOIN inbound i ON i.run = r.id
        WHERE i.text LIKE '{name} %' OR i.text = '{name}'""",
    "part": """SELECT o.id, o.kind, o.part, o.state, o.created_at, o.started_at, o.sent_at,
        o.attempts, o.resends, o.looks, o.error FROM outbox o JOIN inbound i ON i.run = o.run
        WHERE i.text LIKE '{name} %' OR i.text = '{name}' ORDER BY o.id""",
    "event": """SELECT e.at, e.who, e.what, e.why FROM events e JOIN inbound i ON i.run = e.run
        WHERE i.text LIKE '{name} %' OR i.text = '{name}' ORDER BY e.id""",
}
"""By what a row is about. Times in epoch seconds of the clock that was then."""
_CLOCK = """CREATE OR REPLACE FUNCTION answerback_now() RETURNS double precision
    LANGUAGE sql STABLE
    AS $$ SELECT (extract(epoch FROM statement_timestamp()) + {off!r})::float8 $$"""
_Unreadable = (psycopg.Error, sqlite3.Error)


@dataclass
class Answerback(Contestant):
    """Three processes on PostgreSQL, two on SQLite, each with every role."""

    name: ClassVar[str] = "Answerback"
    http: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(trust_env=False))
    _paused: set[int] = field(default_factory=set)

    @property
    def _on_sqlite(self) -> bool:
        return self.ground.database.startswith("sqlite")

    def __post_init__(self) -> None:
        self.polls = self._on_sqlite
        self.places = 2 if self._on_sqlite else 3

    def _environment(self) -> dict[str, str]:
        ground = self.ground
        return {
            **SETTINGS,
            **ground.environment,
            "HOME": str(ground.folder),
            "DATABASE_URL": ground.database,
            "REDIS_URL": ground.redis,
            "TELEGRAM_MODE": "polling" if self.polls else "webhook",
            **{_APIS[platform]: url for platform, url in ground.providers.items()},
        }

    def start(self, place: int, port: int) -> Start:
        return Start((PROGRAM, "serve"), self._environment() | {"PORT": str(port)})

    async def ready(self, url: str) -> bool:
        try:
            return (await self.http.get(f"{url}/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def close(self) -> None:
        await self.http.aclose()

    async def held_by(self, pid: int) -> Held | None:
        rows = await self._rows(_HELD.format(pid=pid))
        if rows is None:
            return None
        return Held({run: fence for run, fence, _ in rows}, sum(bool(row[2]) for row in rows))

    async def still_held(self, held: Held) -> Collection[int] | None:
        wanted = ", ".join(map(str, held.runs))
        rows = await self._rows(f"SELECT id, fence, state FROM runs WHERE id IN ({wanted})")
        if rows is None:
            return None
        return [r for r, fence, state in rows if held.runs[r] == fence and state == "running"]

    async def set_database_clock(self, off: float) -> None:
        if not self._on_sqlite:
            await asyncio.to_thread(self._execute, _CLOCK.format(off=off))

    def _execute(self, sql: str) -> None:
        with psycopg.connect(self.ground.database, autocommit=True) as connection:
            connection.execute(sql.encode())

    async def operate(self, how: float, pick: float, lasts: float) -> str:
        """One of the acts that a page of ours calls safe, and one of the looks."""
        rows = await self._rows("SELECT id FROM chats ORDER BY id")
        if not rows:
            return ""
        chat = rows[int(pick * len(rows))][0]
        match int(how * 7):
            case 0:
                self._paused.add(chat)
                await self._command("chats", "pause", str(chat))
                await asyncio.sleep(lasts)
                await self._resume(chat)
                return "a chat was paused, and resumed"
            case 1:
                await self._command("chats", "reply", str(chat), "I am looking at it myself.")
                return "an operator wrote"
            case 2:
                return await self._act_on_run(
                    chat, "a run was closed", "close", "--as", "cancelled"
                )
            case 3:
                again = ("--ending", "apologised", "--newer", "300", "--yes")
                await self._command("runs", "requeue", *again)
                return "apologised runs were requeued"
            case 4:
                return await self._act_on_run(chat, "an open run was requeued", "requeue")
            case 5:
                await self._command("recover")
                return "a recovery pass by hand"
            case _:
                await self._command("stuck", "--offline", acts=False)
                return "a look at what is stuck"

    async def _act_on_run(self, chat: int, told: str, *words: str) -> str:
        rows = await self._rows(
            f"SELECT id FROM runs WHERE state <> 'ended' ORDER BY chat = {chat} DESC, id LIMIT 1"
        )
        if not rows:
            return ""
        await self._command("runs", *words, str(rows[0][0]), "--yes")
        return told

    async def _resume(self, chat: int) -> None:
        if await self._command("chats", "resume", str(chat)) == 0:
            self._paused.discard(chat)

    async def _command(self, *words: str, acts: bool = True) -> int:
        """An operator's command; its exit code, -1 for one that took too long."""
        who = ("--who", "storm") if acts else ()
        process = await spawn(
            *(PROGRAM, *words, *who),
            cwd=self.ground.folder,
            env=self._environment(),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        try:
            async with asyncio.timeout(_WAITS):
                out, error = await process.communicate()
        except TimeoutError:
            tell(process, signal.SIGKILL)
            await process.wait()
            return -1
        if b"Traceback" in error + out:
            self.notes.append(f"{' '.join(words)}: {(error + out).decode()[-2000:]}")
        return process.returncode or 0

    async def healed(self) -> None:
        for chat in tuple(self._paused):
            await self._resume(chat)

    async def settled(self) -> bool | None:
        rows = await self._rows(_OPEN)
        return rows is not None and rows[0][0] == 0

    async def answered(self) -> int | None:
        rows = await self._rows(_ANSWERED)
        return None if rows is None else int(rows[0][0])

    async def left(self) -> Sequence[str]:
        return [str(row) for row in await self._surely(_LEFT)]

    async def claims(self) -> Mapping[str, Claim]:
        found = {}
        for text, ending, cause, doubted in await self._surely(_ENDED):
            if (claim := _claim(ending, cause, doubted=bool(doubted))) is not None:
                found[text.split()[0]] = claim
        return found

    async def story(self, name: str) -> str:
        found = [f"{name}:"]
        for told, sql in _STORY.items():
            rows = await self._surely(sql.format(name=name))
            found += [f"    {told} {' '.join(map(str, row))}" for row in rows]
        return "\n".join(found)

    async def requeued(self) -> Collection[str]:
        return {text.split()[0] for [text] in await self._surely(_REQUEUED)}

    async def rows(self) -> Mapping[str, int]:
        counts = [f"(SELECT count(*) FROM {table})" for table in metadata.tables]
        [row] = await self._surely(f"SELECT {', '.join(counts)}")
        return dict(zip(metadata.tables, row, strict=True))

    async def stored_bytes(self) -> int:
        if self._on_sqlite:
            path = Path(self._file)
            return sum(p.stat().st_size for p in path.parent.glob(f"{path.name}*"))
        return int((await self._surely("SELECT pg_database_size(current_database())"))[0][0])

    @property
    def _file(self) -> str:
        return self.ground.database.removeprefix("sqlite:///")

    async def _rows(self, sql: str) -> Sequence[tuple[Any, ...]] | None:
        """The rows of a question; None where the database can't be asked now."""
        try:
            return await self._surely(sql)
        except _Unreadable:
            return None

    async def _surely(self, sql: str) -> Sequence[tuple[Any, ...]]:
        return await asyncio.to_thread(self._ask, sql)

    def _ask(self, sql: str) -> Sequence[tuple[Any, ...]]:
        if self._on_sqlite:
            asked = sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=10.0)
            with closing(asked) as connection:
                return list(connection.execute(sql).fetchall())
        with psycopg.connect(self.ground.database, autocommit=True) as asked_there:
            return asked_there.execute(sql.encode()).fetchall()


def _claim(ending: str | None, cause: str | None, *, doubted: bool) -> Claim | None:
    """The claim of a run; the person was told of a doubt also where it was cleared up later."""
    if cause in (Cause.HUMAN_ANSWERED, Cause.OPERATOR):
        return Claim.BY_HAND
    match ending:
        case Ending.UNCERTAIN:
            return Claim.UNCERTAIN
        case Ending.ANSWERED if doubted:
            return Claim.UNCERTAIN
        case Ending.APOLOGISED:
            return Claim.APOLOGISED
        case _:
            return None
