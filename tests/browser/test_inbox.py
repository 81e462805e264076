"""Two operators and their browsers: one of two answers leaves, and no word is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from tests.e2e.processes import open_ground
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.limits import PATIENCE
from tests.ports import own_port
from tests.world import World, open_world

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADA = 700100201
SECRET = "a-password-of-some-length"
USERS = (f"ann:acting:{SECRET}", f"ben:acting:{SECRET}")
_POLICY = "Content Security Policy"
PHONE = {"width": 390, "height": 700}


@pytest_asyncio.fixture(loop_scope="session")
async def near(sqlite_url: str) -> AsyncIterator[World]:
    """The program in the test's own loop, which is the browser's."""
    async with open_world(sqlite_url) as world:
        yield world


@asynccontextmanager
async def signed_in(
    browser: Browser, url: str, name: str, faults: list[str]
) -> AsyncIterator[Page]:
    """A browser of its own in which somebody is signed in, on a phone in the dark."""
    context: BrowserContext = await browser.new_context(viewport=PHONE, color_scheme="dark")  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE * 1000)
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on("console", lambda said: faults.extend([said.text] if _POLICY in said.text else []))
    page = await context.new_page()
    await page.goto(f"{url}/operator/chats")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(SECRET)
    await page.get_by_role("button", name="Sign in").click()
    yield page
    await context.close()


async def test_two_see_each_other_and_of_two_answers_one_leaves_and_no_word_is_lost(
    near: World, browser: Browser
) -> None:
    process = await near.start(agent=repeats, operator_users=USERS)
    ada, faults = Person(ADA), list[str]()
    await process.post_update(ada.text("hello"))
    await near.settled()
    async with (
        signed_in(browser, process.url, "ann", faults) as ann,
        signed_in(browser, process.url, "ben", faults) as ben,
    ):
        for page in (ann, ben):
            await page.locator("a.chat").click()
            await expect(page.locator(".line .words")).to_have_text(["hello", "hello"])
        await expect(ann.locator(".others")).to_have_text("Also here: ben")
        await expect(ben.locator(".others")).to_have_text("Also here: ann")
        words = {page: page.get_by_label("Write as the bot") for page in (ann, ben)}
        await words[ben].fill("Ben here.")
        await words[ann].fill("Ann here.")
        await words[ann].press("Control+Enter")
        await expect(ann.locator(".line.ours .words").last).to_have_text("Ann here.")
        await expect(words[ann]).to_have_value("")
        await expect(ben.locator("[data-said]")).to_contain_text("Somebody answered since")
        await words[ben].press("Control+Enter")
        await expect(ben.locator("[data-said]")).to_contain_text("ann@page answered meanwhile")
        await expect(words[ben]).to_have_value("Ben here.")
        await near.settled()
        assert near.telegram.texts(ADA) == ["hello", "Ann here."]
        await words[ben].press("Control+Enter")
        await expect(ben.locator(".line.ours .words").last).to_have_text("Ben here.")
        await expect(ann.locator(".line.ours .words").last).to_have_text("Ben here.")
        await near.settled()
        assert near.telegram.texts(ADA) == ["hello", "Ann here.", "Ben here."]
        wide = "document.documentElement.scrollWidth - window.innerWidth"
        assert await ann.evaluate(wide) <= 0
        await ben.close()
        await expect(ann.locator(".others")).to_have_text("")
    assert faults == []


async def test_words_that_are_being_written_stay_when_the_chat_is_taken_over(
    near: World, browser: Browser
) -> None:
    process = await near.start(agent=repeats, operator_users=USERS)
    faults = list[str]()
    await process.post_update(Person(ADA).text("hello"))
    await near.settled()
    async with signed_in(browser, process.url, "ann", faults) as ann:
        await ann.locator("a.chat").click()
        words = ann.get_by_label("Write as the bot")
        await words.fill("Half a sent")
        await ann.get_by_role("button", name="Take over").click()
        await expect(ann.locator(".waits")).to_contain_text("with a person")
        await expect(words).to_have_value("Half a sent")
        await words.fill("A sentence.")
        await ann.get_by_role("button", name="Send").click()
        await expect(ann.locator(".line.ours .words").last).to_have_text("A sentence.")
        await expect(words).to_have_value("")
        await ann.reload()
        await expect(words).to_have_value("")
        assert await ann.evaluate("sessionStorage.length") == 0
    assert faults == []


@pytest.mark.long
async def test_a_process_that_dies_between_the_form_and_its_answer_has_sent_once(
    sqlite_url: str, tmp_path: Path, browser: Browser
) -> None:
    port, faults = str(own_port()), list[str]()
    settings = {"PORT": port, "OPERATOR_USERS": ",".join(USERS), "LEASE_SECONDS": "3"}
    async with open_ground(sqlite_url, tmp_path) as ground:
        telegram = ground.world.telegram
        program = await ground.serve("web", **settings)  # It takes the form, and sends nothing.
        await program.takes(Person(ADA).text("hello"))
        async with signed_in(browser, program.url, "ann", faults) as ann:
            await ann.locator("a.chat").click()

            async def dies(route: Route) -> None:
                await route.fetch(max_redirects=0)
                await program.kill()
                await route.abort("connectionreset")

            await ann.route("**/reply", dies, times=1)
            await ann.get_by_label("Write as the bot").fill("On its way.")
            await ann.get_by_role("button", name="Send").click()
            await expect(ann.locator("[data-said]")).to_contain_text("tried again")
            await ground.serve(**settings)
            shown = ann.locator(".line.ours .words", has_text="On its way.")
            await expect(shown).to_have_count(1)
            await ground.world.settled()
        assert [text for text in telegram.texts(ADA) if text == "On its way."] == ["On its way."]
        assert await ground.world.rows("SELECT count(*) FROM hand_replies") == [(1,)]
