"""Everything that can go wrong with processes, providers and clocks, one act at a time.

An act is a short coroutine; between acts nothing runs. `quiet()` heals what is broken and
waits until nothing moves; what must be true then is in `tests/crash/truths.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from bot.domain.ending import Ending
from bot.domain.errors import DatabaseUnavailable
from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from bot.leases.runtime import Runtime
from bot.operations import chats, runs
from bot.operations.actions import Acted, Operator, apply
from storage.statements.tx import Tx
from tests.clocks import ShiftedClock
from tests.fakes.faults import Fault
from tests.fakes.meta.courier import Delivery
from tests.fakes.recording import Json
from tests.fakes.twilio.courier import Form
from tests.fakes.updates import Person
from tests.kit.passing import moves
from tests.kit.web import IDENTITY_SECRET, Told, Visitor, identity
from tests.limits import PATIENCE
from tests.world import META, PUBLIC, Running, World

ANN = Operator("ann@ctx", "a test")
TERMS: dict[str, Any] = {
    "burst": "each",
    "still_working_after": 1e6,
    "lease_seconds": 15.0,
    "heartbeat_seconds": 5.0,
    "telegram_read_timeout": 1.0,
    "twilio_timeout": 1.0,
    "meta_timeout": 1.0,
    **META,
    "chat_messages_per_minute": 1000,
    "web": True,
    "web_secret": IDENTITY_SECRET[::-1],
    "web_identity_secret": IDENTITY_SECRET,
    "web_visitor_per_minute": 100_000,
}
PHONE = "whatsapp:+15550100015"
CLOUD = "+15550100181"
PAGE = "user:eve"
ADA, BOB = 700100201, 700100202
CHATS = (str(ADA), str(BOB), PHONE, CLOUD, PAGE)


class Halting(ShiftedClock):
    """The world's clock; while it stands, its process does not notice that time passes."""

    def __init__(self, world: ShiftedClock) -> None:
        super().__init__()
        self._world = world
        self.stands: float | None = None

    def wall(self) -> float:
        return self._world.wall()

    def boot(self) -> tuple[str, float]:
        return self._world.boot()

    def monotonic(self) -> float:
        return self._world.monotonic() if self.stands is None else self.stands

    async def sleep(self, seconds: float) -> None:
        await self._world.sleep(seconds)


@dataclass
class Body:
    """One process, with what a test does to it."""

    running: Running
    clock: Halting
    zombie: bool = False


@dataclass(frozen=True)
class Typed:
    """A message of the page, under the name that it gave it."""

    name: str
    text: str


@dataclass
class Mayhem:
    """The world, its processes, and what was said and shown in it."""

    world: World
    bodies: list[Body] = field(default_factory=list)
    deaths: list[Checkpoint] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=lambda: {chat: [] for chat in CHATS})
    acknowledged: set[str] = field(default_factory=set)
    answered_again: list[int] = field(default_factory=list)
    by_hand: bool = False
    """An operator had answers made or sent again: they come when they come."""
    unseen: bool = False
    """A process was stopped between its last look at its lease and the provider's socket: what
    it sends then comes when it comes, the one thing that no bot can prevent."""
    slow: asyncio.Event = field(default_factory=asyncio.Event)
    at_work: asyncio.Event = field(default_factory=asyncio.Event)
    told: list[Told] = field(default_factory=list)
    """Whatever the page was told of its chat, over all its streams."""
    page: list[str] = field(default_factory=list)
    """The elements of ours that the page shows."""
    _token: str = ""
    _people: dict[str, Person] = field(
        default_factory=lambda: {str(n): Person(n) for n in (ADA, BOB)}
    )
    _sent: dict[str, Any] = field(default_factory=dict)
    _number: int = 0

    async def agent(self, turn: Turn) -> str:
        """Answers in one part or three; may fail once; never for a run whose reply exists."""
        stored = await self.world.rows(
            "SELECT 1 FROM outbox WHERE run = :run AND kind = 'reply'", run=turn.run_id
        )
        if stored:
            self.answered_again.append(turn.run_id)
        if "slow" in turn.text and turn.attempt == 1:
            self.at_work.set()
            await self.slow.wait()
        await turn.step("look it up", lambda: "found", safe_to_repeat=True)
        if "fail" in turn.text and turn.attempt == 1:
            raise RuntimeError("the agent broke")
        if "never" in turn.text:
            raise RuntimeError("the agent breaks every time")
        size = 1500 if turn.chat.address == PHONE else 3900
        numbers = (1, 2, 3) if "long" in turn.text else (1,)
        parts = [
            f"re {n} {turn.text} ".ljust(size if len(numbers) > 1 else 0, ".") for n in numbers
        ]
        return "\n\n".join(parts)

    async def begin(self) -> None:
        """One more process."""
        clock = Halting(self.world.clock)

        async def reached(checkpoint: Checkpoint) -> None:
            if checkpoint in self.deaths and body and body[0] in self.bodies:
                self.deaths.remove(checkpoint)
                self.bodies.remove(body[0])
                body[0].running.kill()
                raise asyncio.CancelledError("the process died here")

        body: list[Body] = []
        running = await self.world.start(agent=self.agent, clock=clock, reached=reached, **TERMS)
        body.append(Body(running, clock))
        self.bodies.append(body[0])

    async def say(self, chat: str, how: str) -> None:
        """A new message; if nobody took it, the platform will bring it again."""
        self._number += 1
        text = f"{how} {self._number}"
        self.said[chat].append(text)
        if chat == PHONE:
            self._sent[text] = (await self.world.twilio.inbound(text, webhook=False)).form
        elif chat == CLOUD:
            self._sent[text] = self._posted(text)
        elif chat == PAGE:
            self._sent[text] = Typed(f"m-{self._number}", text)
        else:
            self._sent[text] = self._people[chat].text(text)
        await self.deliver(text)

    def _posted(self, text: str) -> Delivery:
        meta = self.world.meta
        return meta.prepare(meta.written_by(meta.message(text)))

    async def deliver(self, text: str) -> None:
        """Bring a message to one of the processes, again or for the first time; what came
        before it and nobody took is brought before it."""
        for earlier in self._sent:
            if earlier == text:
                break
            if earlier not in self.acknowledged:
                await self._deliver_once(earlier)
                if earlier not in self.acknowledged:
                    return
        await self._deliver_once(text)

    async def _deliver_once(self, text: str) -> None:
        if not self.bodies:
            return
        running = self.bodies[self._number % len(self.bodies)].running
        asked = asyncio.create_task(self._takes(running, self._sent[text]))
        # Who dies answers no more.
        await asyncio.wait((asked, running.end), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if (await asyncio.gather(asked, return_exceptions=True))[0] is True:
            self.acknowledged.add(text)

    async def _takes(self, running: Running, sent: Json | Form | Typed | Delivery) -> bool:
        if isinstance(sent, Delivery):
            self.world.meta.reach[PUBLIC] = running.url
            return await self.world.meta.courier.attempt(sent)
        if isinstance(sent, list):
            self.world.twilio.reach[PUBLIC] = running.url
            [attempt] = await self.world.twilio.repeat(sent)
            return attempt.acknowledged
        try:
            if isinstance(sent, Typed):
                visitor = await self._visitor(running)
                said = await visitor.say(sent.name, sent.text)
                return said.status_code in (200, 202)
            return (await running.post_update(sent)).status_code == 200
        except (httpx.HTTPError, RuntimeError):
            return False

    async def _visitor(self, running: Running) -> Visitor:
        visitor = Visitor(running.url, running.client, self._token)
        if not self._token:
            await visitor.sign_in(identity(self.world.clock, PAGE.partition(":")[2]))
            self._token = visitor.token
        return visitor

    async def look_at_page(self) -> None:
        """The page comes back: it goes on with the last number that it had, and shows what there
        is."""
        visitor = await self._visitor(self.bodies[-1].running)
        said = await visitor.history(limit=200)
        self.page = [one["text"] for one in said if one["kind"] != "accepted"]
        rows = await self.world.rows(
            "SELECT f.n FROM followed f JOIN chats c ON c.id = f.chat WHERE c.address = :page",
            page=PAGE,
        )
        last = rows[0][0] if rows else 0
        had = self.told[-1].id or 0 if self.told else 0
        async with visitor.following(after=had) as following:
            await following.until(lambda f: had == last or (f.told and f.told[-1].id == last))
            self.told += following.events

    async def stop_word(self, chat: str) -> None:
        """/stop."""
        self._number += 1
        name = f"/stop {self._number}"
        if chat == PHONE:
            self._sent[name] = (await self.world.twilio.inbound("/stop", webhook=False)).form
        elif chat == CLOUD:
            self._sent[name] = self._posted("/stop")
        elif chat == PAGE:
            self._sent[name] = Typed(f"m-{self._number}", "/stop")
        else:
            self._sent[name] = self._people[chat].command("/stop")
        await self.deliver(name)

    async def edit(self, chat: str) -> None:
        """The last message of a Telegram chat is changed; its words stay, for the count."""
        texts = [t for t in self.said[chat] if t in self._sent]
        if texts and chat in self._people and self.bodies:
            update = self._people[chat].edit(self._sent[texts[-1]], texts[-1])
            try:
                await self.bodies[-1].running.post_update(update)
            except (httpx.HTTPError, RuntimeError):
                return

    async def fail(self, chat: str, fault: Fault, how: str) -> None:
        """The provider misbehaves once, while it is sent an answer."""
        if chat == PHONE:
            rule = self.world.twilio.fail("create", fault)
        elif chat == CLOUD:
            rule = self.world.meta.fail("send", fault)
        else:
            rule = self.world.telegram.fail("sendMessage", fault)
        await self.say(chat, how)
        await self.until(lambda: bool(rule.hits))

    async def kill(self) -> None:
        if self.bodies:
            await self.bodies.pop().running.die()

    async def leave(self) -> None:
        if self.bodies:
            await self.bodies.pop().running.stop(grace=0.0)

    async def lapse(self, chat: str, *, unnoticed: bool) -> None:
        """A process stands still in the middle of a turn for longer than its lease, another
        one takes over, and then it goes on."""
        if len(self.bodies) != 1:
            return
        [body] = self.bodies
        self.slow.clear()
        self.at_work.clear()
        await self.say(chat, "slow")
        await self.until(self.at_work.is_set)
        body.running.stand_still()
        body.zombie = True
        if unnoticed:
            self.unseen = True
            body.clock.stands = self.world.clock.monotonic()
        await self.pass_time(20.0)
        await self.begin()
        await self.moment(8)
        self.slow.set()
        await self.moment(4)

    async def die_at(self, death: Checkpoint, chat: str, how: str) -> None:
        """A death waits at this checkpoint; then somebody writes, and things go on for a while
        or until it happened."""
        self.deaths.append(death)
        await self.say(chat, how)
        await self.until(lambda: death not in self.deaths)

    async def until(self, happened: Callable[[], bool], ticks: int = 25) -> None:
        """Let things go on until something happened, or for so long."""
        for _ in range(ticks):
            if happened():
                return
            await self.moment(1)

    async def pass_time(self, seconds: float) -> None:
        """Time passes; the processes that are well renew in between."""
        while seconds > 0:
            self.world.advance(min(4.0, seconds))
            seconds -= 4.0
            await self._beat()

    async def _beat(self) -> None:
        for body in tuple(self.bodies):
            if not body.zombie:
                with suppress(DatabaseUnavailable):  # As for the supervisor: it comes again.
                    await _unless_dead(body.running.process.lease.renew())
                    await _unless_dead(body.running.process.sweep())

    async def operate(self, act: str, pick: int) -> None:
        """Something that an operator does to one of the runs or chats."""
        if not self.bodies:
            return
        rt = self.bodies[-1].running.process.rt
        rows = await self.world.rows("SELECT id, chat FROM runs ORDER BY id")
        if not rows:
            return
        run, chat = rows[pick % len(rows)]
        acts: dict[str, Callable[[Any], Any]] = {
            "cancel": lambda tx: runs.close(tx, rt, ANN, run, Ending.CANCELLED),
            "requeue": lambda tx: runs.requeue(tx, rt, ANN, run),
            "pause": lambda tx: chats.pause(tx, rt, ANN, chat, seconds=None),
            "resume": lambda tx: chats.resume(tx, rt, ANN, chat, drop=False),
        }
        self.by_hand = self.by_hand or act == "requeue"
        await _unless_dead(apply(rt, acts[act]))

    def away(self, away: bool) -> None:
        for body in self.bodies:
            body.running.away(away)

    async def moment(self, ticks: int) -> None:
        """Let things go on for a little."""
        for _ in range(ticks):
            await moves(self.world, at_most=1.0)
            await self._beat()

    async def quiet(self) -> None:
        """Heal everything, have every message brought that nobody took, and wait."""
        self.away(False)
        self.slow.set()
        self.deaths.clear()
        self.world.telegram.script.clear()
        self.world.twilio.script.clear()
        self.world.meta.script.clear()
        for body in [b for b in self.bodies if b.zombie]:
            self.bodies.remove(body)
            await body.running.die()
        if not self.bodies:
            await self.begin()
        await self._beat()
        for text in [t for t in self._sent if t not in self.acknowledged]:
            await self.deliver(text)
            assert text in self.acknowledged, f"{text} is refused by a process that is well"
        rt = self.bodies[-1].running.process.rt
        for [chat] in await self.world.rows("SELECT id FROM chats WHERE paused_until IS NOT NULL"):
            await apply(rt, partial(_resume, rt=rt, chat=chat))
        self.world.meta.reach[PUBLIC] = self.bodies[-1].running.url
        await self.world.meta.courier.hurry()
        async with asyncio.timeout(5 * PATIENCE):  # All that is left, of the chats.
            while await moves(self.world, at_most=4.0):
                await self._beat()
        await self.look_at_page()


async def _unless_dead(act: Coroutine[Any, Any, object]) -> None:
    """Do something in a process that may die in it."""
    task = asyncio.create_task(act)
    await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


def _resume(tx: Tx, rt: Runtime, chat: int) -> Acted:
    return chats.resume(tx, rt, ANN, chat, drop=False)
