"""Passwords can't be guessed by trying: tries are counted over all processes."""

from __future__ import annotations

import asyncio

import pytest

from tests.kit.operator import SETTINGS
from tests.operator.conftest import Browsers
from tests.world import World


@pytest.mark.alternating(1)
async def test_after_ten_wrong_tries_from_an_address_none_is_looked_at_by_any_process(
    world: World, browsers: Browsers
) -> None:
    world.stop_time()
    first = await world.start(**SETTINGS)
    second = await world.start(**SETTINGS)
    ada = browsers(first)
    thieves = [browsers((first, second)[number % 2]) for number in range(12)]
    await ada.sign_in()
    answers = await asyncio.gather(*(one.sign_in("operator", "wrong") for one in thieves))
    codes = [answer.status_code for answer in answers]
    assert codes.count(401) <= 10
    assert 429 in codes
    for one in thieves[:2]:
        assert (await one.sign_in()).status_code == 429, "not even the right one"
    assert (await ada.get("")).status_code == 200, "who is in stays in"
    rows = await world.rows("SELECT count(*) FROM events WHERE what = 'tried to sign in'")
    assert rows[0][0] <= 1 + 12, "what is held off is no row each"
    world.advance(301)
    assert (await thieves[1].sign_in()).status_code == 303


@pytest.mark.alternating(0)
async def test_who_comes_in_is_no_wrong_try(world: World, browsers: Browsers) -> None:
    world.stop_time()
    running = await world.start(**SETTINGS)
    for _ in range(12):
        assert (await browsers(running).sign_in()).status_code == 303
