"""A chat on the operator's page: reading it, taking it over, writing to it once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from dataclasses import field as field_of
from html import unescape
from typing import Any

import httpx
import pytest

from bot.domain.turn import Turn
from bot.operations import chats
from bot.operations.actions import Result
from tests.fakes import faults
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.operating import ANN, act, runs_of
from tests.kit.operator import OperatorBrowser, form_token
from tests.kit.passing import settle
from tests.operator.conftest import Browsers
from tests.world import Running, World

ADA = 700100201
SECRET = "a password of ann's own"
SETTINGS: dict[str, Any] = {
    "operator_users": (
        f"ann:acting:{SECRET}",
        f"ben:acting:{SECRET}",
        f"rea:reading:{SECRET}",
    )
}
NASTY = "<script>alert(1)</script>\u202e\"'><img src=x onerror=alert(2)>"


def field(page: httpx.Response, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found, page.text
    return unescape(found[1])


async def signed_in(browsers: Browsers, process: Running, name: str = "ann") -> OperatorBrowser:
    one = browsers(process)
    assert (await one.sign_in(name, SECRET)).status_code == 303
    return one


async def greeted(world: World, **changes: Any) -> Running:
    process = await world.start(agent=repeats, **SETTINGS, **changes)
    await process.post_update(ada.text("hello"))
    await world.settled()
    return process


ada = Person(ADA)


async def write(
    browser: OperatorBrowser, page: httpx.Response, text: str, chat: int = 1
) -> httpx.Response:
    """Fill in the composer of a page that was loaded, and send it."""
    fields = {
        "form_token": form_token(page),
        "key": field(page, "key"),
        "seen": field(page, "seen"),
        "text": text,
    }
    return await browser.send(f"/chats/{chat}/reply", fields)


async def test_a_person_takes_over_answers_and_gives_back(world: World, browsers: Browsers) -> None:
    process = await greeted(world)
    ann = await signed_in(browsers, process)
    page = await ann.get("/chats/1")
    assert "Take over" in page.text
    took = await ann.send("/chats/1/act", {"form_token": form_token(page), "act": "pause"})
    assert took.status_code == 303
    await process.post_update(ada.text("is anybody there?"))
    page = await ann.get("/chats/1")
    assert "This chat is with a person" in page.text
    assert "is anybody there?" in page.text
    assert (await write(ann, page, "Ann here.")).status_code == 303
    await world.until(
        "SELECT state FROM outbox WHERE kind = 'operator'", lambda rows: rows == [("sent",)]
    )
    token = form_token(await ann.get("/chats/1"))
    back = await ann.send("/chats/1/act", {"form_token": token, "act": "resume"})
    assert back.status_code == 303
    await world.settled()
    assert world.telegram.texts(ADA) == ["hello", "Ann here."]
    assert [ending for _, _, ending in await runs_of(world)] == ["answered", "answered"]
    said = await ann.get("/chats/1")
    assert "<span>ann</span>" in said.text
    who = await world.rows("SELECT DISTINCT who FROM events WHERE chat = 1 AND what = 'paused'")
    assert [tuple(row) for row in who] == [("ann@page",)]


async def test_a_form_that_the_browser_sends_twice_is_one_message(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann = await signed_in(browsers, process)
    page = await ann.get("/chats/1")
    assert [(await write(ann, page, "Once.")).status_code for _ in range(2)] == [303, 303]
    await world.settled()
    assert world.telegram.texts(ADA) == ["hello", "Once."]


async def test_who_was_too_late_reads_what_was_said_and_keeps_the_words(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann, ben = await signed_in(browsers, process), await signed_in(browsers, process, "ben")
    pages = await ann.get("/chats/1"), await ben.get("/chats/1")
    assert (await write(ann, pages[0], "Ann here.")).status_code == 303
    late = await write(ben, pages[1], "Ben <here>.")
    assert late.status_code == 409
    assert "ann@page answered meanwhile" in late.text
    assert "Ben &lt;here&gt;." in late.text
    assert "Ann here." in late.text
    await world.settled()
    assert world.telegram.texts(ADA) == ["hello", "Ann here."]
    assert (await write(ben, late, "Ben here.")).status_code == 303
    await world.settled()
    assert world.telegram.texts(ADA) == ["hello", "Ann here.", "Ben here."]


async def test_who_may_only_read_sees_the_words_and_no_form(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    rea, ann = await signed_in(browsers, process, "rea"), await signed_in(browsers, process)
    page = await rea.get("/chats/1")
    assert "hello" in page.text
    assert "data-composer" not in page.text
    assert "Take over" not in page.text
    theirs = await ann.get("/chats/1")
    for path, fields in (
        ("reply", {"text": "x", "key": field(theirs, "key"), "seen": "9"}),
        ("act", {"act": "pause"}),
        ("note", {"text": "x"}),
    ):
        fields |= {"form_token": form_token(page)}
        assert (await rea.send(f"/chats/1/{path}", fields)).status_code == 403
    assert await world.rows("SELECT 1 FROM outbox WHERE kind = 'operator'") == []


async def test_a_note_that_is_handed_in_twice_is_kept_once_and_its_words_are_never_lost(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann = await signed_in(browsers, process)
    page = await ann.get("/chats/1")
    form = {"form_token": form_token(page), "note_key": field(page, "note_key")}
    clicks = [ann.send("/chats/1/note", {**form, "text": "pays late"}) for _ in range(2)]
    assert [a.status_code for a in await asyncio.gather(*clicks)] == [303, 303]
    refused = await ann.send("/chats/1/note", {**form, "text": "pays never"})
    assert refused.status_code == 409
    assert re.search(r"<textarea name=\"text\"[^>]*>\s*pays never</textarea>", refused.text)
    anew = {**form, "note_key": field(refused, "note_key"), "text": "pays late"}
    assert (await ann.send("/chats/1/note", anew)).status_code == 303
    rows = await world.rows("SELECT text FROM notes ORDER BY id")
    assert [text for (text,) in rows] == ["pays late"] * 2, "a second note may say the same"


async def test_opening_a_chat_is_recorded_and_the_list_shows_no_word(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann = await signed_in(browsers, process)
    listed = await ann.get("/chats")
    assert listed.status_code == 200
    assert "/chats/1" in listed.text
    assert "hello" not in listed.text
    read = "SELECT who, chat FROM events WHERE what = 'read the words'"
    assert await world.rows(read) == []
    await ann.get("/chats/1")
    assert [tuple(row) for row in await world.rows(read)] == [("ann@page", 1)]
    assert (await ann.get("/chats/77")).status_code == 404


async def test_words_of_people_never_become_markup(world: World, browsers: Browsers) -> None:
    process = await world.start(agent=repeats, **SETTINGS)
    eve = Person(ADA, sender={"id": ADA, "is_bot": False, "first_name": NASTY})
    await process.post_update(eve.text(NASTY))
    await world.settled()
    ann = await signed_in(browsers, process)
    token = form_token(await ann.get("/chats/1"))
    await ann.send("/chats/1/note", {"form_token": token, "text": NASTY})
    late = await ann.send(
        "/chats/1/reply", {"form_token": token, "key": "k", "seen": "0", "text": NASTY}
    )
    assert late.status_code == 409
    assert "&lt;script&gt;alert(1)" in late.text
    for page in (late, await ann.get("/chats/1"), await ann.get("/chats?all=1")):
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        # In a form stand the words that would be sent, as they were typed.
        assert "\u202e" not in re.sub(r"<textarea.*?</textarea>", "", page.text, flags=re.DOTALL)


async def test_a_part_that_may_not_have_arrived_is_marked_and_settled_in_its_place(
    world: World, browsers: Browsers
) -> None:
    process = await world.start(agent=repeats, uncertain_delivery="hold", **SETTINGS)
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=1)
    await process.post_update(ada.text("hello"))
    await world.settled()
    ann = await signed_in(browsers, process)
    page = await ann.get("/chats/1")
    assert "may not have arrived" in page.text
    fields = {"form_token": form_token(page), "act": "delivered", "part": "1"}
    assert (await ann.send("/chats/1/act", fields)).status_code == 303
    assert (await ann.send("/chats/1/act", fields)).status_code == 409
    assert "may not have arrived" not in (await ann.get("/chats/1")).text
    assert await runs_of(world) == [(1, "ended", "answered")]
    other = {**fields, "part": "99"}
    assert (await ann.send("/chats/1/act", other)).status_code == 404


async def test_a_closed_window_is_said_before_one_writes(world: World, browsers: Browsers) -> None:
    process = await world.start(agent=repeats, **SETTINGS, telegram_bot_token="", lease_seconds=1e9)
    world.stop_time()
    await world.twilio.inbound("hello")
    await world.settled()
    ann = await signed_in(browsers, process)
    assert "Free text until" in (await ann.get("/chats/1")).text
    world.advance(86_401.0)
    again = await signed_in(browsers, process)
    page = await again.get("/chats/1")
    assert "Nothing can be written" in page.text
    refused = await write(again, page, "Hello?")
    assert refused.status_code == 409
    assert "Hello?" in refused.text


async def test_earlier_lines_are_a_page_away_and_none_is_lost(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    for number in range(30):
        await process.post_update(ada.text(f"line {number:02}"))
        await settle(world)
    ann = await signed_in(browsers, process)
    page, found = await ann.get("/chats/1"), set[str]()
    for _ in range(5):
        found |= set(re.findall(r">(line \d\d)<", page.text))
        older = re.search(r'href="/operator(/chats/1\?before=[^"]+)">Earlier', page.text)
        if older is None:
            break
        page = await ann.get(unescape(older[1]))
    assert found == {f"line {number:02}" for number in range(30)}
    assert "data-composer" not in page.text


async def test_canned_texts_stand_beside_the_form_and_fill_it(
    world: World, browsers: Browsers
) -> None:
    file = world.folder / "canned.toml"
    file.write_text('"on its way" = "It left today."\n')
    process = await greeted(world, canned_texts=str(file))
    ann = await signed_in(browsers, process)
    assert "on its way" in (await ann.get("/chats/1")).text
    filled = await ann.get("/chats/1?canned=on+its+way")
    assert re.search(r"<textarea[^>]*>\s*It left today\.</textarea>", filled.text)
    file.write_text("greeting = 5\n")
    broken = await ann.get("/chats/1")
    assert broken.status_code == 200
    assert "CANNED_TEXTS" in broken.text


@pytest.mark.alternating(1)
async def test_what_no_database_stores_is_taken_out_wherever_it_is_typed(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann = await signed_in(browsers, process)
    token = {"form_token": form_token(await ann.get("/chats/1"))}
    fields = {**token, "key": "a\0b", "seen": "99", "text": "t\0"}
    assert (await ann.send("/chats/1/reply", fields)).status_code == 303
    for name in ("pause", "resume"):
        done = await ann.send(f"/acts/chat/1/{name}", {**token, "reason": "so\0so"})
        assert done.status_code == 200, name
    assert (await ann.get("/search?q=a%00b")).status_code == 200
    async with following(ann, "/chats/1", page="a%00b") as hers:
        await hers.shows("talk", "hello")


TYPED = "\u200fשלום\u200f \U0001f3f4\U000e0067\U000e0062\U000e007f soft\u00adhyphen"


async def test_words_in_a_form_are_those_that_would_be_sent(
    world: World, browsers: Browsers
) -> None:
    file = world.folder / "canned.toml"
    file.write_text(f'hello = "{TYPED}"\n', encoding="utf-8")
    process = await greeted(world, canned_texts=str(file))
    ann, ben = await signed_in(browsers, process), await signed_in(browsers, process, "ben")
    page = await ann.get("/chats/1")
    assert f'data-canned="{TYPED}"' in page.text
    assert (await write(ben, page=await ben.get("/chats/1"), text="Ben here.")).status_code == 303
    late = await write(ann, page, TYPED)
    assert late.status_code == 409
    for shown in (late, await ann.get("/chats/1?canned=hello")):
        words = re.findall(r"<textarea[^>]*data-words>\n(.*)</textarea>", shown.text, re.DOTALL)
        assert words == [TYPED]


async def test_what_an_agent_asked_is_at_the_top_of_the_inbox_and_of_its_chat(
    world: World, browsers: Browsers
) -> None:
    async def asks(turn: Turn) -> str:
        turn.hand_over("wants a refund")
        return "One moment."

    process = await world.start(agent=asks, **SETTINGS)
    await process.post_update(ada.text("refund!"))
    await world.settled()
    ann = await signed_in(browsers, process)
    listed = await ann.get("/chats")
    assert "its agent asked for a person" in listed.text
    assert "wants a refund" not in listed.text
    assert "wants a refund" in (await ann.get("/chats/1")).text
    for query in ("?reason=asked", "?reason=paused", "?all=1"):
        assert "/chats/1" in (await ann.get(f"/chats{query}")).text
    assert "No chat is here" in (await ann.get("/chats?reason=refused")).text
    for query in ("?reason=odd", "?after=odd", "?before=odd", "?after=asked-x-1"):
        assert (await ann.get(f"/chats{query}")).status_code == 404


@dataclass
class Following:
    """The live parts of a page, as they come."""

    lines: AsyncIterator[str]
    seen: dict[str, str] = field_of(default_factory=dict)

    async def shows(self, piece: str, words: str) -> None:
        """Wait until a piece has these words."""
        while words not in self.seen.get(piece, ""):
            line = await anext(self.lines)
            if line.startswith("data: "):
                self.seen |= json.loads(line.removeprefix("data: "))


@asynccontextmanager
async def following(
    browser: OperatorBrowser, path: str, page: str = ""
) -> AsyncIterator[Following]:
    """Follow the page at this path, under its own name or this one."""
    live = page_of(await browser.get(path))
    if page:
        live = re.sub("page=[^&]*", f"page={page}", live)
    async with browser.http.stream("GET", f"{browser.base}/operator{live}") as stream:
        yield Following(stream.aiter_lines())


def page_of(page: httpx.Response) -> str:
    """The address of a page's live parts."""
    found = re.search(r'data-live="/operator([^"]+)"', page.text)
    assert found, page.text
    return unescape(found[1])


async def test_two_who_look_at_a_chat_see_each_other_and_what_is_said(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann, ben = await signed_in(browsers, process), await signed_in(browsers, process, "ben")
    async with following(ann, "/chats/1") as hers:
        await hers.shows("talk", "hello")
        async with following(ben, "/chats/1") as his:
            await his.shows("state", "Also here: ann")
            await hers.shows("state", "Also here: ben")
            await process.post_update(ada.text("something new"))
            await his.shows("talk", "something new")
        await world.until("SELECT who FROM presence", lambda rows: rows == [("ann",)])
    await world.until("SELECT who FROM presence", lambda rows: rows == [])
    read = await world.rows("SELECT DISTINCT who FROM events WHERE what = 'read the words'")
    assert {row.who for row in read} == {"ann@page", "ben@page"}


async def test_of_the_page_and_the_command_line_at_once_one_takes_the_chat_over(
    world: World, browsers: Browsers
) -> None:
    process = await greeted(world)
    ann, rt = await signed_in(browsers, process), process.process.rt
    page = await ann.get("/chats/1")
    by_page, by_hand = await asyncio.gather(
        ann.send("/chats/1/act", {"form_token": form_token(page), "act": "pause"}),
        act(process, lambda tx: chats.pause(tx, rt, ANN, 1, seconds=None)),
    )
    won = (by_page.status_code == 303, by_hand.result is Result.DONE)
    assert sorted(won) == [False, True]
    if not won[0]:
        assert by_page.status_code == 409
        assert "it is paused already" in by_page.text
    else:
        assert by_hand.result is Result.TOO_LATE
