"""Clients of pages: the cost of each that follows, and the way of an event to it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg

from benchmarks.job import quantile, spread
from benchmarks.lines import Line, open_lines
from benchmarks.meters import cpu_seconds, resident_bytes
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, Stage, Worker, open_stage
from bot.clock import SystemClock
from channels.web.access.tokens import Tokens

_SECRET = "a-secret-of-this-benchmark-that-is-long-enough"
PAGES = {
    "WEB": "true",
    "WEB_SECRET": _SECRET,
    "WEB_VISITOR_PER_MINUTE": "1000000",
    "WEB_ADDRESS_PER_MINUTE": "1000000",
    "CHAT_MESSAGES_PER_MINUTE": "1000000",
}
_SETTINGS = PAGES | {"TELEGRAM_BOT_TOKEN": "", "TWILIO_ACCOUNT_SID": ""}
_AT_ONCE = 100
_IDLE = 5.0
"""Seconds for which everybody only follows."""
_PATIENCE = 120.0
_GOLDEN = 0.618
"""Of a second: multiples of it fall evenly between the looks that come once a second."""


class Client(asyncio.Protocol):
    """A client that follows, read no further than it must be."""

    def __init__(self) -> None:
        self.begun = asyncio.get_running_loop().create_future()
        self.told: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._awaited = b"event: snapshot"

    def data_received(self, data: bytes) -> None:
        """Note what came, and when."""
        if not self.begun.done():
            if self._awaited in data:
                self.begun.set_result(None)
        elif b"event:" in data:
            self.told.put_nowait((time.monotonic(), data))


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody with a token."""

    address: str
    token: str


def new_guests(count: int) -> Sequence[Guest]:
    """Guests whom processes with the settings of `PAGES` know."""
    tokens = Tokens((_SECRET,), SystemClock())
    made = (tokens.guest() for _ in range(count))
    return [Guest(session.address.chat, token) for token, session in made]


async def _follow(worker: Worker, guests: Sequence[Guest]) -> Sequence[Client]:
    """Clients that follow, each as one of the guests."""
    port, loop = urlsplit(worker.url).port or 0, asyncio.get_running_loop()
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(guest: Guest) -> Client:
        async with places, asyncio.timeout(_PATIENCE):
            transport, client = await loop.create_connection(Client, "127.0.0.1", port)
            transport.write(
                f"GET /web/v1/events HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {guest.token}\r\n\r\n".encode()
            )
            await client.begun
            return client

    return await asyncio.gather(*(one(guest) for guest in guests))


def _with_chats(stage: Stage, guests: Sequence[Guest]) -> None:
    """Make chats of guests that have written before."""
    with psycopg.connect(stage.database_url) as connection:
        row = connection.execute("SELECT id FROM accounts WHERE channel = 'web'").fetchone()
        assert row is not None
        for guest in guests:
            connection.execute(
                "WITH made AS (INSERT INTO chats (account, address, kind, created_at) "
                "VALUES (%(account)s, %(address)s, 'private', 0) RETURNING id) "
                "INSERT INTO chat_addresses (account, address, chat) "
                "SELECT %(account)s, %(address)s, id FROM made",
                {"account": row[0], "address": guest.address},
            )


async def pages(servers: Servers, scale: Scale) -> Figures:
    """Followers of one process, the way of an event to the screen, and a question."""
    found: Figures = {"followers": scale.followers}
    found |= await _followers(servers, scale.followers)
    for name, apart in (("same process", False), ("another process", True)):
        for redis in (True, False):
            way = await _to_screen(servers, scale, apart=apart, redis=redis)
            found[f"{name}, Redis" if redis else name] = way
    found["status"] = await _status(servers, scale)
    progress(", ".join(f"{name}: {figure}" for name, figure in found.items()))
    return found


async def _followers(servers: Servers, count: int) -> Figures:
    """So many, each of its own chat; then the same again of one chat, which all are told of."""
    async with open_stage(servers.postgres) as stage:
        worker = await stage.start(**_SETTINGS)
        guests, pid = new_guests(count), worker.process.pid
        _with_chats(stage, guests)
        await _follow(worker, guests[:1])
        before = resident_bytes(pid)
        cpu = cpu_seconds([pid])
        await _follow(worker, guests)
        begun = cpu_seconds([pid]) - cpu
        each = (resident_bytes(pid) - before) / count
        cpu = cpu_seconds([pid])
        await asyncio.sleep(_IDLE)
        idle = (cpu_seconds([pid]) - cpu) / _IDLE
    async with open_stage(servers.postgres) as stage:
        worker = await stage.start(AGENT="echo", **_SETTINGS)
        [guest] = new_guests(1)
        [line] = await open_lines([worker.url], 1)
        await _say(line, guest, 0)
        await line.post(_request("GET", "/turns/m-0?wait=25", guest))
        clients = await _follow(worker, [guest] * count)
        [line] = await open_lines([worker.url], 1)
        cpu = cpu_seconds([worker.process.pid])
        await _say(line, guest, 1)
        heard = await asyncio.gather(*(_hears(client, b"event: ended") for client in clients))
        cpu = cpu_seconds([worker.process.pid]) - cpu
    return {
        "kb_a_follower": each / 1000,
        "begin_ms_of_cpu": 1000 * begun / count,
        "idle_cpu": idle,
        "turn_to_all_s_of_cpu": cpu,
        "spread_ms": 1000 * (max(heard) - min(heard)),
    }


async def _hears(client: Client, kind: bytes) -> float:
    """The times at which the client was told of such an event."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            at, data = await client.told.get()
            if kind in data:
                return at


async def _say(line: Line, guest: Guest, number: int) -> None:
    body = json.dumps({"request_id": f"m-{number}", "text": "hello"}).encode()
    status, _ = await line.post(_request("POST", "/messages", guest, body))
    assert status == 202, status


def _request(method: str, path: str, guest: Guest, body: bytes = b"") -> bytes:
    head = (
        f"{method} /web/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {guest.token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _to_screen(servers: Servers, scale: Scale, *, apart: bool, redis: bool) -> Figures:
    """From the agent's return to the client that follows: in between, the answer is stored and
    sent. `apart`: a worker of its own answers."""
    settings = _SETTINGS | {"REDIS_URL": servers.valkey.url() if redis else ""}
    stamped = settings | {"AGENT": "benchmarks.agents:stamp"}
    async with open_stage(servers.postgres) as stage:
        web = await stage.start("web" if apart else "all", **stamped)
        if apart:
            await stage.start("worker", **stamped)
        [guest] = new_guests(1)
        [client] = await _follow(web, [guest])
        [line] = await open_lines([web.url], 1)
        took = []
        for number in range(scale.told):
            await asyncio.sleep(0.1 + number * _GOLDEN % 1)
            await _say(line, guest, number)
            at, data = await _next(client, b"event: message")
            text = json.loads(
                data.partition(b"event: message")[2].split(b"data: ")[1].split(b"\n")[0]
            )
            took.append(at - float(text["text"].split()[-1]))
    return spread(took)


async def _next(client: Client, kind: bytes) -> tuple[float, bytes]:
    async with asyncio.timeout(_PATIENCE):
        while True:
            at, data = await client.told.get()
            if kind in data:
                return at, data


async def _status(servers: Servers, scale: Scale) -> Figures:
    """Questions about a turn that is over, one after the other on one connection."""
    async with open_stage(servers.postgres) as stage:
        worker = await stage.start(**_SETTINGS)
        [guest] = new_guests(1)
        [line] = await open_lines([worker.url], 1)
        await _say(line, guest, 0)
        await line.post(_request("GET", "/turns/m-0?wait=25", guest))
        asked = _request("GET", "/turns/m-0", guest)
        pids = [worker.process.pid, *servers.pids]
        cpu, took = cpu_seconds(pids), []
        for _ in range(scale.questions):
            status, seconds = await line.post(asked)
            assert status == 200, status
            took.append(seconds)
        cpu = cpu_seconds(pids) - cpu
    return {"cpu_ms": 1000 * cpu / scale.questions, "p50_ms": 1000 * quantile(took, 0.5)}
