"""A storm: a plan is carried out against a contestant, and what became of everything is read."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from benchmarks.connections import ManyPools
from benchmarks.meters import resident_bytes
from benchmarks.proof import providers
from benchmarks.proof.contestant import Contestant, Held
from benchmarks.proof.judge import Asked, Claim, Verdict, Wrong, judge
from benchmarks.proof.outages import Clock, PostgresOutages, Redis, SqliteOutages
from benchmarks.proof.people import META_PATH, Chat, people
from benchmarks.proof.places import Place, Record, tell
from benchmarks.proof.plan import Kind, Misfortune, Plan, Platform
from benchmarks.proof.providers import Provider, spoiling
from benchmarks.report import progress
from benchmarks.stage import spawn
from tests.e2e.forking import ROOT
from tests.kit.web import Visitor
from tests.world import PUBLIC

_FARTHEST = 1800.0
"""Seconds by which clocks are set at most."""
_TO_THE_FROZEN = 0.1
"""The share of deliveries that go to a process that stands still, as long as nobody noticed."""
_GROWN = 2.5
"""Seconds after which a process is at work."""
_OF_THE_GROWN = 0.85
"""The share of kills that are for those."""
_LOOKS_EVERY = 0.05
"""Seconds between two looks at whether somebody has taken what a dead process held."""
_MEASURES_EVERY = 5.0
_SETTLES_WITHIN = 240.0
_TAKES = httpx.Timeout(8.0)
"""Seconds for which a platform waits until it delivers again."""
_PROGRAMS = {
    Platform.TELEGRAM: "telegram",
    Platform.TWILIO: "twilio",
    Platform.META: "meta",
}


@dataclass
class Found:
    """Everything that a storm showed. Times in seconds, sizes in bytes."""

    plan: Plan
    verdict: Verdict = field(default_factory=Verdict)
    befell: Counter[Kind] = field(default_factory=Counter)
    missed: Counter[Kind] = field(default_factory=Counter)
    """Misfortunes that could not befall: another one was in their way."""
    record: Record = field(default_factory=Record)
    hit_runs: int = 0
    """Kills that hit a process with runs open."""
    hit_sends: int = 0
    """Sends that were under way in a process that was killed."""
    unread_kills: int = 0
    """Kills of which nobody could read what they hit."""
    takeovers: list[float] = field(default_factory=list)
    """Seconds from a death until another process had a run that the dead one held."""
    never_taken: int = 0
    left: list[str] = field(default_factory=list)
    """Everything that was not settled in the end."""
    tries: int = 0
    sends: int = 0
    spoilt: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    acts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    stories: list[str] = field(default_factory=list)
    """Of every message that a finding names."""
    memory: list[tuple[float, int]] = field(default_factory=list)
    """The greatest resident memory of a process, by the second of the storm."""
    stored: tuple[int, int] = (0, 0)
    """The size of the database before and after."""
    rows: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    settled_after: float = 0.0


@asynccontextmanager
async def all_providers(platforms: Sequence[Platform]) -> AsyncIterator[Mapping[Platform, Fake]]:
    """The providers of these platforms, as processes."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx.AsyncClient(trust_env=False, transport=ManyPools())
        )
        found = {}
        for platform in platforms:
            if platform in _PROGRAMS:
                process = await spawn(
                    *(sys.executable, "-m", providers.__name__, _PROGRAMS[platform]),
                    *("--port", "0"),
                    cwd=ROOT,
                    stdout=PIPE,
                    stderr=DEVNULL,  # It tells of every caller that was killed.
                )
                stack.push_async_callback(_ended, process)
                assert process.stdout is not None
                url = (await process.stdout.readline()).decode().strip()
                found[platform] = Fake(Provider(platform, url, http), process)
        yield found


async def _ended(process: Process) -> None:
    tell(process, signal.SIGKILL)
    await process.wait()


@dataclass(frozen=True, slots=True)
class Fake:
    """A provider, and the process that plays it."""

    provider: Provider
    process: Process


@dataclass
class Storm:
    """One plan against one contestant."""

    plan: Plan
    contestant: Contestant
    fakes: Mapping[Platform, Fake]
    database: PostgresOutages | SqliteOutages
    redis: Redis
    clock: Clock
    chance: random.Random = field(init=False)
    found: Found = field(init=False)
    places: Sequence[Place] = field(init=False)
    chats: Sequence[Chat] = ()
    """Everybody, as soon as they begin."""
    _clocks: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.plan.seed} on the way")
        self.found = Found(self.plan)
        record, contestant = self.found.record, self.contestant
        self.places = [Place(n, contestant, record) for n in range(contestant.places)]

    async def rage(self) -> Found:
        """Everything, from the first process to the verdict."""
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx.AsyncClient(trust_env=False, timeout=_TAKES, transport=ManyPools())
            )
            keepers = [asyncio.create_task(place.keep()) for place in self.places]
            stack.push_async_callback(_cancelled, *keepers)
            await self._all_ready()
            before = await self.contestant.stored_bytes()
            known = {platform: fake.provider for platform, fake in self.fakes.items()}
            chats = people(self.plan, self.contestant, self.somewhere, http, known)
            self.chats = chats
            pages = [chat.page for chat in chats if chat.page is not None]
            beside = [asyncio.create_task(page.follow()) for page in pages]
            beside.append(asyncio.create_task(self._lead()))
            beside.append(asyncio.create_task(self._measure()))
            stack.push_async_callback(_cancelled, *beside)
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for misfortune in self.plan.misfortunes:
                    group.create_task(self._befall(began, misfortune, chats, group))
                speaking = [asyncio.create_task(chat.speak(began)) for chat in chats]
            self.found.seconds = time.monotonic() - began
            await self._heal()
            await asyncio.gather(*speaking)
            progress("every message was taken")
            await self._settle(chats)
            self.found.settled_after = time.monotonic() - began - self.found.seconds
            await self._read(chats, before, http)
        return self.found

    async def _all_ready(self) -> None:
        async with asyncio.timeout(180.0):
            for place in self.places:
                living = await place.someone()
                while not await self.contestant.ready(living.url):
                    await asyncio.sleep(0.05)
                    living = await place.someone()

    def somewhere(self) -> str:
        """The address of a process that takes webhooks; seldom of one that stands still."""
        doors = [p for p in self.places if self.contestant.takes_webhooks(p.number)]
        living = [p.now for p in doors if p.now is not None and p.now.running]
        awake = [one for one in living if not one.frozen]
        among = living if self.chance.random() < _TO_THE_FROZEN else awake
        known = among or living or [p.now for p in doors if p.now is not None]
        return self.chance.choice(known).url

    async def _lead(self) -> None:
        """Let the platforms' reports lead to a process that is there, which changes often."""
        led = ""
        while True:
            doors = [p.now for p in self.places if self.contestant.takes_webhooks(p.number)]
            there = [d.url for d in doors if d is not None and d.running and not d.frozen]
            if there and led not in there:
                led = there[0]
                for platform, fake in self.fakes.items():
                    asked: dict[str, Any] = {"reach": {PUBLIC: led}}
                    if platform is Platform.META:
                        asked |= {"webhook_url": PUBLIC + META_PATH, "first_repeat": 0.2}
                    if platform is not Platform.TELEGRAM:
                        with suppress(httpx.HTTPError):  # It stands still.
                            await fake.provider.do("configure", asked)
            await asyncio.sleep(0.2)

    async def _measure(self) -> None:
        began = time.monotonic()
        while True:
            with suppress(OSError):  # It was killed a moment ago.
                most = max(map(resident_bytes, self._pids()), default=0)
                self.found.memory.append((time.monotonic() - began, most))
            await asyncio.sleep(_MEASURES_EVERY)

    def _pids(self) -> Sequence[int]:
        there = (place.now for place in self.places)
        return [one.pid for one in there if one is not None and one.running]

    async def _befall(
        self, began: float, one: Misfortune, chats: Sequence[Chat], group: asyncio.TaskGroup
    ) -> None:
        """Let it happen at its moment."""
        await asyncio.sleep(began + one.at - time.monotonic())
        try:
            if await self._happens(one, chats, group):
                self.found.befell[one.kind] += 1
            else:
                self.found.missed[one.kind] += 1
        except (psycopg.Error, httpx.HTTPError):
            self.found.missed[one.kind] += 1

    async def _happens(
        self, one: Misfortune, chats: Sequence[Chat], group: asyncio.TaskGroup
    ) -> bool:
        """False: it could not, here or now."""
        place = self.places[int(one.pick * len(self.places))]
        match one.kind:
            case Kind.KILL:
                await self._kill(self._victim(one), one.lasts, group)
            case Kind.FREEZE:
                await place.freeze(one.lasts)
            case Kind.RESTART:
                await place.restart(one.lasts)
            case Kind.HAND_OVER:
                await place.hand_over()
            case Kind.CLOCK_STEP:
                await self._set_clocks(one)
            case Kind.PROVIDER_FAULT:
                spoilt = spoiling([*self.fakes], one.pick, one.how)
                await self.fakes[spoilt.platform].provider.spoil(spoilt)
            case Kind.PROVIDER_FROZEN:
                await self._stand_still(one)
            case Kind.REDELIVERY:
                return await chats[int(one.pick * len(chats))].again()
            case Kind.OPERATOR:
                return await self._operate(one)
            case _:
                return await self._outage(one)
        return True

    async def _outage(self, one: Misfortune) -> bool:
        match one.kind, self.database:
            case Kind.REDIS_EMPTIED, PostgresOutages():
                await self.redis.empty()
            case Kind.REDIS_STOPPED, PostgresOutages():
                await self.redis.be_gone(one.lasts)
            case Kind.REDIS_NONSENSE, PostgresOutages():
                await self.redis.talk_nonsense(one.lasts, one.how)
            case Kind.DATABASE_RESTART, PostgresOutages() as server:
                await server.restart(one.lasts, one.how)
            case Kind.CONNECTIONS_CUT, PostgresOutages() as server:
                await server.cut()
            case Kind.DISK_FULL, PostgresOutages() as server:
                await server.be_full(one.lasts)
            case Kind.DATABASE_HELD, SqliteOutages() as file:
                await file.be_held(one.lasts)
            case Kind.DISK_FULL, SqliteOutages() as file:
                await file.be_full(one.lasts, self._pids())
            case _:
                return False
        return True

    def _victim(self, one: Misfortune) -> Place:
        """One that is at work, mostly: whoever is just starting holds nothing yet."""
        grown = [p for p in self.places if p.now is not None and p.now.age > _GROWN]
        among = grown if grown and one.how < _OF_THE_GROWN else self.places
        return among[int(one.pick * len(among))]

    async def _kill(self, place: Place, pause: float, group: asyncio.TaskGroup) -> None:
        died, held = await place.kill(pause)
        if held is None:
            self.found.unread_kills += 1
        elif held.runs:
            self.found.hit_runs += 1
            self.found.hit_sends += held.sending
            group.create_task(self._watch(died, held))

    async def _watch(self, died: float, held: Held) -> None:
        """Note when others have taken what a dead process held."""
        left = held
        while left.runs and time.monotonic() < died + _SETTLES_WITHIN:
            still = await self.contestant.still_held(left)
            now = time.monotonic()
            if still is not None:
                self.found.takeovers += [now - died] * (len(left.runs) - len(still))
                left = Held({run: left.runs[run] for run in still})
            await asyncio.sleep(_LOOKS_EVERY)
        self.found.never_taken += len(left.runs)

    async def _set_clocks(self, one: Misfortune) -> None:
        """Set the clock of the processes, of the database, or both; and set it right again."""
        off = (2 * one.how - 1) * _FARTHEST
        async with self._clocks:
            if one.pick < 2 / 3:
                self.clock.set(off)
            try:
                if one.pick >= 1 / 3:
                    await self.contestant.set_database_clock(off)
                await asyncio.sleep(one.lasts)
            finally:
                self.clock.set(0.0)
                await self._database_clock_right()

    async def _database_clock_right(self) -> None:
        while True:
            try:
                await self.contestant.set_database_clock(0.0)
            except psycopg.Error:
                await asyncio.sleep(0.2)
            else:
                return

    async def _stand_still(self, one: Misfortune) -> None:
        fakes = [*self.fakes.values()]
        fake = fakes[int(one.pick * len(fakes))]
        tell(fake.process, signal.SIGSTOP)
        try:
            await asyncio.sleep(one.lasts)
        finally:
            tell(fake.process, signal.SIGCONT)

    async def _operate(self, one: Misfortune) -> bool:
        act = await self.contestant.operate(one.how, one.pick, one.lasts)
        if act:
            self.found.acts[act] += 1
        return bool(act)

    async def _heal(self) -> None:
        """Nothing goes wrong any more."""
        progress("the storm is over; what is left is awaited")
        for fake in self.fakes.values():
            await fake.provider.behave()
        await self._all_ready()
        await self.contestant.healed()

    async def _settle(self, chats: Sequence[Chat]) -> None:
        """Wait until nothing is under way, and every page was told so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLES_WITHIN):
                while not await self._quiet():
                    await asyncio.sleep(0.5)
        self.found.left += await self.contestant.left()
        with suppress(TimeoutError):
            async with asyncio.timeout(60.0):
                while not all(chat.was_told() for chat in chats):
                    await asyncio.sleep(0.5)

    async def _quiet(self) -> bool:
        settled = await self.contestant.settled()
        if settled is not None:
            return settled
        before = await self._calls()
        await asyncio.sleep(self.contestant.quiet_after)
        return await self._calls() == before

    async def _calls(self) -> Sequence[int]:
        return [len(await fake.provider.sends()) for fake in self.fakes.values()]

    async def _read(self, chats: Sequence[Chat], before: int, http: httpx.AsyncClient) -> None:
        """Read what everybody was shown, and judge."""
        found, shown = self.found, defaultdict[str, list[str]](list)
        for platform, fake in self.fakes.items():
            for chat, text in await fake.provider.shown():
                shown[chat].append(text)
            sends = await fake.provider.sends()
            found.sends += len(sends)
            found.spoilt.update(f"{platform}: {s['fault']}" for s in sends if s["fault"])
            told = await fake.provider.violations()
            found.violations += [f"{platform}: {what}" for what in told]
        for one in chats:
            found.tries += one.tries
            if one.page is not None:
                shown[one.way.chat] += one.page.shown
        asked = [Asked(chat.way.chat, errand) for chat in chats for errand in chat.taken]
        claims, by_hand = await self.contestant.claims(), await self.contestant.requeued()
        found.verdict = judge(asked, shown, claims, by_hand)
        await self._judge_pages(chats, http)
        for finding in found.verdict.findings:
            found.stories += [
                await self._story(name, claims.get(name))
                for name in (finding.name, *finding.beside)
            ]
        found.rows = await self.contestant.rows()
        found.stored = before, await self.contestant.stored_bytes()
        found.notes += self.contestant.notes

    async def _story(self, name: str, claim: Claim | None) -> str:
        """Everything on a message: what the contestant knows of it, and how it was sent."""
        lines = [await self.contestant.story(name), f"    claim {claim or 'none'}"]
        for fake in self.fakes.values():
            for send in await fake.provider.sends():
                if name in str(send["params"]):
                    told = (send["number"], send["at"], send["fault"], send["stored"])
                    lines.append(f"    send {' '.join(map(str, (*told, send['status'])))}")
        return "\n".join(lines)

    async def _judge_pages(self, chats: Sequence[Chat], http: httpx.AsyncClient) -> None:
        """A page was told each event once, in order, and shows what its history says."""
        for chat in chats:
            page = chat.page
            if page is None or not chat.taken:
                continue
            visitor = Visitor(self.somewhere(), http, page.token)
            said = await _whole_history(visitor)
            told = [one["text"] for one in said if one["kind"] != "accepted"]
            if page.numbers_missing or page.begun_anew:
                numbers = [one.id for one in page.told]
                why = f"begun anew {page.begun_anew} times, its events were {numbers}"
                self.found.verdict.add(Wrong.MISLED, chat.way.chat, why)
            elif told != [*page.shown]:
                self.found.verdict.add(Wrong.MISLED, chat.way.chat, "its history differs")


async def _whole_history(visitor: Visitor) -> Sequence[Mapping[str, str]]:
    """Every page of it, oldest first."""
    found: list[Mapping[str, str]] = []
    before: dict[str, object] = {}
    while True:
        more = await visitor.history(limit=200, **before)
        found = [*more, *found]
        if len(more) < 200:
            return found
        before = {"before": more[0]["n"]}


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def ground_environment(clock: Clock) -> Mapping[str, str]:
    """All that every process of a contestant has in its environment."""
    stepped = Path(__file__).parent / "stepped"
    return {"PYTHONPATH": f"{stepped}:{ROOT}", "PROOF_CLOCK": str(clock.file)}
