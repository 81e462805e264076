"""The last release and this version on one database: real processes of both."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bot.version import our_version
from storage.schema.migrate import FIRST, NEWEST
from tests.e2e.forking import ROOT
from tests.e2e.processes import NO_PLATFORM, Ground
from tests.fakes.updates import Person
from tests.kit import web
from tests.kit.pages import Page
from tests.limits import moment, until
from tests.releases import last_release

RELEASE = last_release()
PEOPLE = [Person(700_100_400 + n) for n in range(8)]
PAGES = {**NO_PLATFORM, "WEB": "true", "BURST": "each", "WEB_ADDRESS_PER_MINUTE": "100000"}


def of_every_kind() -> list[dict[str, Any]]:
    """A message of each person, each of another kind."""
    text, photo, voice, place, sticker, contact, poll, quote = PEOPLE
    return [
        text.text("hello"),
        photo.photo("a picture"),
        voice.voice(),
        place.venue(),
        sticker.sticker(),
        contact.contact(),
        poll.poll(),
        quote.reply("yes", quote.text("no")["message"]),
    ]


async def answered(ground: Ground, recorder: Path, worker: Path) -> list[tuple[Any, ...]]:
    """Have one version record a message of every kind, and the other answer them, and what comes to
    the former afterwards. Returns each turn as its agent saw it, without what is another each
    time."""
    before = len(ground.agent.turns())
    first = await ground.running(recorder).serve("web")
    *updates, last = of_every_kind()
    for update in updates:
        await first.takes(update)
    second = await ground.running(worker).serve("worker")
    await first.takes(last)
    await ground.world.settled()
    await asyncio.gather(first.kill(), second.kill())
    turns = sorted(ground.agent.turns()[before:], key=lambda call: str(call.chat))
    return [
        tuple((m["kind"], m["text"], len(m["attachments"])) for m in call.params["messages"])
        for call in turns
    ]


async def versions(ground: Ground) -> list[str]:
    """The version of every process that there was, as it told it."""
    rows = await ground.world.rows("SELECT version FROM holders ORDER BY id")
    return [row[0] for row in rows]


async def revisions(ground: Ground) -> tuple[str, str]:
    """The newest revision of the database, and its floor."""
    sql = "SELECT r.version_num, f.version_num FROM answerback_revision r, alembic_version f"
    [row] = await ground.world.rows(sql)
    return row[0], row[1]


@pytest.mark.long
async def test_each_version_answers_what_the_other_has_recorded(
    blank_sqlite_ground: Ground,
) -> None:
    ground, texts = blank_sqlite_ground, blank_sqlite_ground.world.telegram.texts
    by_new = await answered(ground, RELEASE.code(), ROOT)
    first = [texts(person.number) for person in PEOPLE]
    by_old = await answered(ground, ROOT, RELEASE.code())
    assert by_new == by_old
    assert len(by_new) == len(PEOPLE)
    assert [texts(person.number) for person in PEOPLE] == [2 * said for said in first]
    assert first[0] == ["re: hello"]
    last = ground.agent.turns("hello")[-1]
    assert [said["text"] for said in last.params["history"]] == ["hello", "re: hello"]
    assert await versions(ground) == ["", our_version(), our_version(), ""]
    assert await revisions(ground) == (NEWEST, FIRST)


@dataclass(frozen=True, slots=True)
class Step:
    """After so many turns the process at a place goes, and another comes in its place."""

    after: int
    place: int
    killed: bool
    comes: Path


def steps() -> list[Step]:
    """An upgrade of two places in which the old version dies and starts again on the new schema,
    and the way back to it."""
    old, new = RELEASE.code(), ROOT
    return [
        Step(4, 0, killed=True, comes=new),
        Step(10, 1, killed=True, comes=old),
        Step(16, 1, killed=False, comes=new),
        Step(22, 0, killed=False, comes=old),
        Step(28, 1, killed=True, comes=old),
    ]


@pytest.mark.long
async def test_an_upgrade_and_the_way_back_under_load_lose_and_double_nothing(
    blank_postgres_ground: Ground,
) -> None:
    ground, turns, old = blank_postgres_ground, count(), RELEASE.code()
    programs = [await ground.running(old).serve(**PAGES) for _ in range(2)]
    words = [f"message {number}" for number in range(6)]

    def somewhere() -> str:
        return programs[next(turns) % 2].url

    async def speak(page: Page) -> None:
        for text in words:
            while not await page.send(text.replace(" ", "-"), text):
                await moment()

    async def upgrade() -> None:
        for step in steps():
            await until(partial(_has_asked, ground, step.after))
            leaver = programs[step.place]
            if step.killed:
                await leaver.kill()
            programs[step.place] = await ground.running(step.comes).serve(**PAGES)
            if not step.killed:
                assert await leaver.stop() == 0

    async with web.client() as http:
        guests = [await web.Visitor(programs[0].url, http).begin() for _ in range(6)]
        pages = [Page(somewhere, http, guest.token) for guest in guests]
        following = [asyncio.create_task(page.follow()) for page in pages]
        await asyncio.gather(upgrade(), *(speak(page) for page in pages))
        names = [text.replace(" ", "-") for text in words]
        await until(lambda: all(page.has_ended(name) for page in pages for name in names))
        for page, task in zip(pages, following, strict=True):
            task.cancel()
            assert page.shown == [f"re: {text}" for text in words]
            assert not page.numbers_missing
            assert not page.begun_anew
        await asyncio.gather(*following, return_exceptions=True)
    assert await versions(ground) == ["", "", our_version(), "", our_version(), "", ""]
    assert await revisions(ground) == (NEWEST, FIRST)
    endings = await ground.world.rows("SELECT ending, count(*) FROM runs GROUP BY ending")
    assert [tuple(row) for row in endings] == [("answered", 36)]


def _has_asked(ground: Ground, times: int) -> bool:
    return len(ground.agent.turns()) >= times
