"""`python -m benchmarks.kills`: two processes on one PostgreSQL, killed again and again.

Messages of many chats are delivered as the platforms do it: in order per chat, each again
until somebody acknowledges it with 200. Meanwhile the processes die by SIGKILL at random
moments (of a seed that is printed) and are started again. Afterwards the providers' own
records, and what pages were told, say what became of every message:

answered     shown once
uncertain    killed while a send was on its way: Telegram can't tell whether it arrived, and of
             what did not arrive no word comes from Meta, so it is not sent again; the person
             got a note with a button, the operator a line
apologised   given up after three deaths that were charged to it; the person was told
LOST         acknowledged, and then neither of these
DOUBLED      shown twice
OUT OF ORDER shown before an earlier message's answer of the same chat
MISLED       a page whose events had a gap, or that shows something else than its history
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from benchmarks.pages import PAGES, new_guests
from benchmarks.report import show
from benchmarks.stage import Stage, Worker, open_stage
from tests.fakes.meta import payloads
from tests.fakes.meta.book import Book
from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, SENDER
from tests.fakes.updates import Person
from tests.kit.pages import Page
from tests.kit.web import Visitor
from tests.servers import Postgres

SETTINGS = PAGES | {
    "AGENT": "benchmarks.agents:busy",
    "BURST": "each",
    "LEASE_SECONDS": "3",
    "HEARTBEAT_SECONDS": "1",
    "DATABASE_POOL": "4",
}
_SETTLES_WITHIN = 240.0


@dataclass
class Storm:
    """Two places where a process of ours lives, dies and lives again."""

    stage: Stage
    chance: random.Random
    workers: list[Worker] = field(default_factory=list)
    kills: int = 0

    async def begin(self) -> None:
        """Start both."""
        self.workers = [await self.stage.start("all", **SETTINGS) for _ in range(2)]

    async def rage(self, kills: int) -> None:
        """Kill one of them after the other, so many times; each is started again at once."""
        for _ in range(kills):
            await asyncio.sleep(0.2 + self.chance.random() * 2.5)
            index = self.chance.randrange(2)
            victim = self.workers[index]
            await victim.end(signal.SIGKILL)
            self.kills += 1
            port = int(victim.url.rpartition(":")[2])
            self.workers[index] = await self.stage.begin("all", port, **SETTINGS)

    def somewhere(self) -> str:
        """The address of one of them."""
        return self.chance.choice(self.workers).url


@dataclass
class Chat:
    """One person's messages. `name` as the providers' records have it; `post` delivers the
    message of a number and a text to a process and returns the status."""

    name: str
    texts: list[str]
    post: Callable[[str, int, str], Awaitable[int]]
    page: Page | None = None

    async def speak(self, storm: Storm) -> None:
        """Deliver every message in order, each until it is acknowledged."""
        for number, text in enumerate(self.texts):
            await asyncio.sleep(storm.chance.random())
            while await self.post(storm.somewhere(), number, text) != 200:
                await asyncio.sleep(0.2)


def web_chat(stage: Stage, storm: Storm, _index: int, texts: list[str]) -> Chat:
    """A page: it asks before it sends again, and comes back to its events by number."""
    [guest] = new_guests(1)
    page = Page(storm.somewhere, stage.client, guest.token)

    async def post(_url: str, number: int, text: str) -> int:
        return 200 if await page.send(f"m-{number}", text) else 0

    return Chat(guest.address, texts, post, page)


def telegram_chat(stage: Stage, _storm: Storm, index: int, texts: list[str]) -> Chat:
    """A private chat with the bot."""
    person = Person(830_000_000 + index)
    updates = [person.text(text) for text in texts]

    async def post(url: str, number: int, _text: str) -> int:
        return await stage.post_update(url, updates[number])

    return Chat(str(person.number), texts, post)


def whatsapp_chat(stage: Stage, _storm: Storm, index: int, texts: list[str]) -> Chat:
    """Somebody who writes on WhatsApp."""
    name = f"whatsapp:+1555020{index:04d}"

    async def post(url: str, number: int, text: str) -> int:
        sid = f"SM{index * 1000 + number:032x}"
        form = inbound_form(sid=sid, account=ACCOUNT, from_=name, to=SENDER, body=text)
        return await stage.post_form(url, form)

    return Chat(name, texts, post)


def cloud_chat(stage: Stage, _storm: Storm, index: int, texts: list[str]) -> Chat:
    """Somebody who writes on WhatsApp to a number at Meta."""
    phone, names = f"1555030{index:04d}", Book()
    bodies = [
        payloads.raw(payloads.envelope(payloads.change(messages=[message])))
        for text in texts
        for message in [
            payloads.message(names.wamid(phone), time.time(), "text", {"body": text}, from_=phone)
        ]
    ]

    async def post(url: str, number: int, _text: str) -> int:
        return await stage.post_meta(url, bodies[number])

    return Chat(f"+{phone}", texts, post)


@dataclass
class Found:
    """The outcome of the messages, by kind, and the ones that need an explanation."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def fault(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        self.faults.append(f"{kind}: {text}")


def judge(chats: Sequence[Chat], shown: Mapping[str, list[str]], endings: dict[str, str]) -> Found:
    """Hold every message against what its person saw. All were acknowledged."""
    found = Found()
    for chat in chats:
        seen = [text.removeprefix("re: ") for text in shown.get(chat.name, [])]
        times = Counter(seen)
        for text in chat.texts:
            _judge_one(found, text, times[text], endings.get(text, "not stored"))
        first = [seen.index(text) for text in chat.texts if text in times]
        if first != sorted(first):
            found.fault("OUT OF ORDER", chat.name)
    return found


def _judge_one(found: Found, text: str, times: int, ending: str) -> None:
    if times > 1:
        found.fault("DOUBLED", f"{text} ({ending}, {times} times)")
    elif ending == "uncertain":
        found.counts["uncertain, arrived" if times else "uncertain, not arrived"] += 1
    elif times == 1:
        found.counts["answered"] += 1
    elif ending == "apologised":
        found.counts["apologised"] += 1
    else:
        found.fault("LOST", f"{text} ({ending})")


async def settled(stage: Stage) -> None:
    """Wait until nothing is under way. Raises TimeoutError."""
    sql = (
        "SELECT (SELECT count(*) FROM runs WHERE state <> 'ended') + "
        "(SELECT count(*) FROM outbox WHERE standalone AND state IN ('pending', 'sending'))"
    )
    async with asyncio.timeout(_SETTLES_WITHIN):
        while (await asyncio.to_thread(stage.rows, sql))[0][0]:
            await asyncio.sleep(0.5)


async def run(seed: int, messages: int, chats: int, kills: int) -> Found:
    """One storm."""
    chance = random.Random(seed)
    each = max(1, messages // chats)
    with Postgres() as postgres:
        async with open_stage(postgres, meta="tests.fakes.meta") as stage:
            storm = Storm(stage, chance)
            people = [
                make(stage, storm, n, [f"{make.__name__} {n}, message {m}" for m in range(each)])
                for n in range(chats)
                for make in (CHATS[n % len(CHATS)],)
            ]
            await storm.begin()
            await stage.reports_to(storm.workers[0].url)
            began = time.monotonic()
            following = [
                asyncio.create_task(chat.page.follow()) for chat in people if chat.page is not None
            ]
            raging = asyncio.create_task(storm.rage(kills))
            await asyncio.gather(*(chat.speak(storm) for chat in people))
            await raging
            await settled(stage)
            await all_told(people)
            for task in following:
                task.cancel()
            show("storm", f"{storm.kills} kills in {time.monotonic() - began:.0f} s, seed {seed}")
            return await _found(stage, storm, people)


CHATS = (telegram_chat, whatsapp_chat, cloud_chat, web_chat)


async def all_told(chats: Sequence[Chat]) -> None:
    """Wait until each page was told of the end of all its messages; one that never is, is
    judged by what it shows."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SETTLES_WITHIN):
            for chat in chats:
                names = [f"m-{number}" for number in range(len(chat.texts))]
                while chat.page is not None and not all(map(chat.page.has_ended, names)):
                    await asyncio.sleep(0.2)


async def _found(stage: Stage, storm: Storm, chats: Sequence[Chat]) -> Found:
    shown: dict[str, list[str]] = defaultdict(list)
    for said in await stage.shown(stage.telegram_url):
        shown[str(said["chat"])].append(said["text"])
    for said in await stage.shown(stage.twilio_url):
        shown[said["to"]].append(said["body"])
    pages = [(chat.name, chat.page) for chat in chats if chat.page is not None]
    for name, page in pages:
        shown[name] += page.shown
    for said in await stage.shown(stage.meta_url):
        shown[said["to"]].append(said["text"])
    rows = stage.rows("SELECT i.text, r.ending FROM inbound i JOIN runs r ON r.id = i.run")
    found = judge(chats, shown, dict(rows))
    for name, page in pages:
        visitor = Visitor(storm.workers[0].url, stage.client, page.token)
        told = [
            one["text"] for one in await visitor.history(limit=200) if one["kind"] != "accepted"
        ]
        if page.numbers_missing or page.begun_anew or told != page.shown:
            found.fault("MISLED", name)
    return found


def main() -> None:
    """Read the options, run, print; exit code 1 when anything was lost, doubled or swapped."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--messages", type=int, default=600)
    options.add_argument("--chats", type=int, default=60)
    options.add_argument("--kills", type=int, default=30)
    options.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    asked = options.parse_args()
    found = asyncio.run(run(asked.seed, asked.messages, asked.chats, asked.kills))
    for kind, number in sorted(found.counts.items()):
        show(kind, str(number))
    for kind in ("LOST", "DOUBLED", "OUT OF ORDER", "MISLED"):
        if kind not in found.counts:
            show(kind.lower(), "0")
    for fault in found.faults:
        print(f"  {fault}")
    sys.exit(1 if found.faults else 0)


if __name__ == "__main__":
    main()
