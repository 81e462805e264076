"""Acts on the page are those of the command line: guarded, shown first, recorded with who."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from functools import partial

import httpx
import pytest

from bot.domain.ending import Ending
from bot.operations import chats, parts
from bot.operations.actions import Acted, Result
from tests.fakes import faults
from tests.fakes.updates import Person
from tests.kit.agents import Gated, repeats
from tests.kit.operating import ANN, act, close, runs_of
from tests.kit.operator import TWO, OperatorBrowser
from tests.operator.conftest import Browsers
from tests.operator.test_pages import text_of
from tests.world import Running, World

pytestmark = pytest.mark.alternating(1)
BOB = 700100222


async def one_uncertain(world: World, browsers: Browsers) -> tuple[Running, OperatorBrowser, int]:
    """A part that may have arrived, and ada, who looks at it."""
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=1)
    running = await world.start(agent=repeats, **TWO)
    await running.post_update(Person(BOB).text("hello"))
    await world.settled()
    ada = browsers(running)
    await ada.sign_in("ada")
    links = re.findall(r"/operator/acts/part/(\d+)/lost", (await ada.get("")).text)
    return running, ada, int(links[0])


def result_of(page: httpx.Response) -> str:
    found = re.search(r'<p class="result[^>]*>(.*?)</p>', page.text, re.DOTALL)
    assert found, page.text
    return text_of(found[1])


async def test_a_button_shows_what_it_would_do_then_does_it_and_comes_too_late_after_that(
    world: World, browsers: Browsers
) -> None:
    running, ada, part = await one_uncertain(world, browsers)
    path = f"/acts/part/{part}/delivered"
    assert result_of(await ada.get(path)) == f"part {part}: would be done: counts as sent"
    assert await runs_of(world) == [(1, "ended", "uncertain")]
    done = await ada.submit(path, reason="I saw it in the chat")
    assert done.status_code == 200
    assert result_of(done) == f"part {part}: done: counts as sent"
    assert await runs_of(world) == [(1, "ended", "answered")]
    rows = await world.rows("SELECT who, what, why FROM events WHERE what LIKE 'resolved%'")
    [noted] = [tuple(row) for row in rows]
    assert noted == ("ada@page", "resolved: delivered", f"part {part}: I saw it in the chat")
    late = await ada.submit(path)
    assert late.status_code == 409
    rt = running.process.rt
    said = await act(running, lambda tx: parts.resolve(tx, rt, ANN, part, arrived=True))
    assert result_of(late) == f"part {part}: {said.result.value}: {said.said}"


async def test_what_is_refused_is_refused_in_the_words_of_the_command(
    world: World, browsers: Browsers
) -> None:
    running, ada, _ = await one_uncertain(world, browsers)
    page = await ada.submit("/acts/run/1/answered")
    assert page.status_code == 409
    said = await close(running, 1, Ending.ANSWERED, by=type(ANN)("ann"))
    assert said.result is Result.REFUSED
    assert result_of(page) == f"run 1: refused: {said.said}"
    assert (await ada.submit("/acts/run/1/answered", reason="by phone")).status_code == 200


async def test_of_page_and_command_at_the_same_moment_one_wins_and_one_thing_is_sent(
    world: World, browsers: Browsers
) -> None:
    running, ada, part = await one_uncertain(world, browsers)
    sent = len(world.telegram.texts(BOB))
    rt = running.process.rt
    resolve = partial(parts.resolve, arrived=False)
    acts: list[Awaitable[httpx.Response | Acted]] = [
        *(act(running, lambda tx: resolve(tx, rt, ANN, part)) for _ in range(3)),
        *(ada.submit(f"/acts/part/{part}/lost") for _ in range(3)),
    ]
    told = await asyncio.gather(*acts)
    won = [
        one.status_code == 200 if isinstance(one, httpx.Response) else one.result is Result.DONE
        for one in told
    ]
    assert won.count(True) == 1
    await world.settled()
    assert len(world.telegram.texts(BOB)) == sent + 1


async def test_a_chat_is_paused_and_given_back(world: World, browsers: Browsers) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **TWO)
    await running.post_update(Person(BOB).text("hello"))
    ada = browsers(running)
    await ada.sign_in("ada")
    assert (await ada.submit("/acts/chat/1/pause")).status_code == 200
    rt = running.process.rt
    late = await act(running, lambda tx: chats.pause(tx, rt, ANN, 1, None))
    again = await ada.submit("/acts/chat/1/pause")
    assert result_of(again) == f"chat 1: {late.result.value}: {late.said}"
    assert (await ada.submit("/acts/chat/1/resume")).status_code == 200
    agent.go.set()
    await world.settled()


async def test_a_recovery_pass_tells_what_it_found(world: World, browsers: Browsers) -> None:
    agent = Gated()
    first = await world.start(agent=agent, **TWO)
    await first.post_update(Person(BOB).text("hello"))
    await agent.begun.wait()
    await first.die()
    second = await world.start(agent=repeats, **TWO)
    ada = browsers(second)
    await ada.sign_in("ada")
    page = await ada.submit("/acts/recover")
    assert page.status_code == 200
    assert result_of(page).startswith("released: ")
    await world.settled()
