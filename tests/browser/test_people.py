"""A guest signs in and out; the chat goes along, and nothing stays behind."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.site import Site
from tests.browser.test_secrets import signed
from tests.fakes.faults import held_after_storing

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
