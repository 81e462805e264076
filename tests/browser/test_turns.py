"""A turn outlives the page: reload, closed tab, second tab, killed process, deploy, stop."""

from __future__ import annotations

import signal

import pytest
from playwright.async_api import expect

from tests.browser.site import Site
from tests.fakes.faults import bad_gateway, held_after_storing
from tests.limits import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_reload_in_the_middle_of_a_turn_loses_nothing(site: Site) -> None:
    await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    await tab.reload()
    await tab.becomes("hello", "Working on it")
    slow.release()
    await tab.shows("hello", "re: hello")
    await tab.becomes("hello", "Answered")
    assert len(site.ground.agent.turns()) == 1
    assert not [key for key in await tab.stored() if ":o:" in key]


async def test_an_answer_that_came_while_nobody_looked_is_unread_until_it_is_shown(
    site: Site,
) -> None:
    await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    device = await site.device()
    tab = await site.tab(device)
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    await tab.page.close()
    slow.release()
    later = await site.tab(device, opened=False)
    await expect(later.page).to_have_title("(1) Shop")
    await expect(later.launch).to_have_attribute("aria-label", "Open chat, Unread: 1")
    await later.open()
    await later.shows("hello", "re: hello")
    await expect(later.page).to_have_title("Shop")
    await until(lambda: bool(site.proxy.lines("POST seen")))
    again = await site.tab(device, opened=False)
    await expect(again.page.locator(".badge")).to_be_hidden()
    await again.open()
    await again.shows("hello", "re: hello")
    await expect(again.page).to_have_title("Shop")


async def test_two_tabs_show_the_same_over_one_stream(site: Site) -> None:
    await site.serve()
    device = await site.device()
    one = await site.tab(device)
    await one.write("from one")
    await one.shows("from one", "re: from one")
    two = await site.tab(device)
    await two.write("from two")
    for tab in (one, two):
        await tab.shows("from one", "re: from one", "from two", "re: from two")
        await tab.becomes("from two", "Answered")
    assert len(site.proxy.lines("GET events")) == 1
    await one.page.close()
    await two.write("alone")
    await two.becomes("alone", "Answered")


async def test_who_stops_a_turn_sees_it_stopped(site: Site) -> None:
    await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    tab = await site.tab()
    await tab.write("a long one")
    await tab.becomes("a long one", "Working on it")
    await tab.page.get_by_role("button", name="Stop", exact=True).click()
    await tab.becomes("a long one", "Stopped")
    slow.release()
    await tab.write("another")
    await tab.becomes("another", "Answered")
    await tab.reload()
    await tab.becomes("a long one", "Stopped")
    await expect(tab.bubbles.filter(has_text="re: a long one")).to_have_count(0)


async def test_what_could_not_be_answered_says_so_and_can_be_sent_again(site: Site) -> None:
    await site.serve(MAX_FAILURES="1")
    site.ground.agent.fail("turn", bad_gateway())
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Could not be answered")
    await tab.reload()
    await tab.becomes("hello", "Could not be answered")
    await tab.phase("hello").get_by_role("button", name="Send it again").click()
    await expect(tab.bubbles.filter(has_text="re: hello")).to_have_count(1)
    await tab.becomes("hello", "Answered")


async def test_a_process_is_killed_in_a_turn_and_another_one_answers(postgres_site: Site) -> None:
    site = postgres_site
    first = await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    await first.kill()
    slow.release()
    await site.serve()
    await tab.shows("hello", "re: hello")
    await tab.becomes("hello", "Answered")
    await tab.says("")


async def test_a_deploy_in_a_turn_hands_the_page_over(postgres_site: Site) -> None:
    site = postgres_site
    leaver = await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    await site.serve()
    leaver.signal(signal.SIGTERM)
    await until(lambda: len(site.proxy.lines("GET events")) > 1)
    slow.release()
    assert await leaver.ended() == 0
    await tab.shows("hello", "re: hello")
    await tab.becomes("hello", "Answered")
    assert len(site.ground.agent.turns()) == 1
