"""A guest signs in and out; the chat goes along, and nothing stays behind."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.site import Site
from tests.browser.test_secrets import signed, token_of
from tests.fakes.faults import held_after_storing
from tests.limits import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_guest_who_signs_in_on_two_devices_at_once_has_one_chat(site: Site) -> None:
    await site.serve()
    phone, laptop = await site.tab(), await site.tab()
    await phone.write("from the phone")
    await phone.becomes("from the phone", "Answered")
    slow = site.ground.agent.fail("turn", held_after_storing())
    await laptop.write("from the laptop")
    await laptop.becomes("from the laptop", "Working on it")
    jwt = signed("ada")
    await asyncio.gather(
        *(tab.page.evaluate("(jwt) => answerback.identify(jwt)", jwt) for tab in (phone, laptop))
    )
    slow.release()
    for tab in (phone, laptop):
        await expect(tab.bubbles.filter(has_text="re: ")).to_have_count(2)
        await tab.becomes("from the phone", "Answered")
        await tab.becomes("from the laptop", "Answered")
    said = await phone.bubbles.all_inner_texts()
    assert sorted(said) == sorted(await laptop.bubbles.all_inner_texts())
    assert len(site.ground.agent.turns()) == 2


async def test_signing_out_leaves_nothing_readable_in_any_tab(site: Site) -> None:
    await site.serve()
    device = await site.device()
    site.proxy.scripts = f"<script>window.answerback = {{ identity: '{signed('ada')}' }};</script>"
    one, two = await site.tab(device), await site.tab(device)
    await one.write("a secret")
    for tab in (one, two):
        await tab.shows("a secret", "re: a secret")
    site.proxy.scripts = ""
    await one.page.evaluate("() => answerback.signOut()")
    for tab in (one, two):
        await tab.shows()
        assert not [key for key in await tab.stored() if key.startswith("answerback")]
    await one.reload()
    await one.shows()


async def test_the_next_user_of_a_browser_does_not_send_what_the_last_one_wrote(
    site: Site,
) -> None:
    await site.serve()
    tab = await site.tab()
    await tab.page.evaluate("(jwt) => answerback.identify(jwt)", signed("ada"))
    await tab.write("of ada")
    await tab.becomes("of ada", "Answered")
    site.proxy.shut = True
    site.proxy.cut()
    await tab.write("never sent")
    site.proxy.shut = False
    site.proxy.will("POST messages", *[b"HTTP/1.1 503 So\r\nContent-Length: 0\r\n\r\n"] * 20)
    await tab.page.evaluate("(jwt) => answerback.identify(jwt)", signed("bob"))
    await tab.shows()
    site.proxy.plans.clear()
    await tab.write("of bob")
    await tab.shows("of bob", "re: of bob")
    assert len(site.ground.agent.turns("never sent")) == 0


async def test_a_page_that_nobody_is_signed_in_to_shows_nothing_of_the_last_user(
    site: Site,
) -> None:
    await site.serve()
    device = await site.device()
    page = "<script>window.answerback = {{ identity: async () => {} }};</script>"
    site.proxy.scripts = page.format(f"'{signed('ada')}'")
    tab = await site.tab(device)
    await tab.write("a secret")
    await tab.becomes("a secret", "Answered")
    token = await token_of(tab)
    await tab.page.close()
    site.proxy.scripts = page.format("null")
    since = len(site.proxy.asked)
    other = await site.tab(device)
    await other.write("who am I?")
    await other.becomes("who am I?", "Answered")
    await other.shows("who am I?", "re: who am I?")
    later = site.proxy.asked[since:]
    assert not [one.line for one in later if token in one.headers.get("authorization", "")]


async def test_a_guest_who_comes_back_after_a_day_has_a_new_token_for_the_same_chat(
    site: Site,
) -> None:
    await site.serve()
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Answered")
    began = len(site.proxy.lines("POST session"))
    await tab.page.evaluate(
        """() => { const key = Object.keys(localStorage).find((one) => one.endsWith(":session"));
          const kept = JSON.parse(localStorage[key]);
          kept.since -= 25 * 3600 * 1000;
          localStorage[key] = JSON.stringify(kept); }"""
    )
    await tab.reload()
    await tab.shows("hello", "re: hello")
    await until(lambda: len(site.proxy.lines("POST session")) > began)
    await tab.write("again")
    await tab.shows("hello", "re: hello", "again", "re: again")
