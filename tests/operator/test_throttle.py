"""Passwords can't be guessed by trying: tries are counted over all processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bot.operations.doctor import held_off
from bot.wiring import operator_session
from tests.kit.operator import PASSWORD, PASSWORDS, SETTINGS, TWO, OperatorBrowser, form_token
from tests.operator.conftest import Browsers
from tests.world import PUBLIC, World

PROXIED = {"Host": "bot.example.test", "Origin": PUBLIC}
"""Headers of a request that came by the proxy in front, but the one that says for whom."""


async def tries(
    browser: OperatorBrowser, names: Sequence[str], password: str = "wrong", **headers: str
) -> list[int]:
    """The statuses of tries with these names from one form, one after the other."""
    form = await browser.get("/sign-in", **headers)
    browser_of = form.headers["set-cookie"].partition(";")[0]
    said = {"form_token": form_token(form), "password": password, "next": ""}
    return [
        (
            await browser.send("/sign-in", {**said, "name": name}, Cookie=browser_of, **headers)
        ).status_code
        for name in names
    ]


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


@pytest.mark.alternating(0)
async def test_who_mistypes_a_password_holds_off_nobody_else_at_that_address(
    world: World, browsers: Browsers
) -> None:
    world.stop_time()
    running = await world.start(**TWO)
    thief, bob = browsers(running), browsers(running)
    assert await tries(thief, ["ada"] * 11) == [401] * 10 + [429]
    assert (await bob.sign_in("bob")).status_code == 303
    assert await tries(thief, ["ada"], PASSWORDS["ada"]) == [429]


@pytest.mark.alternating(1)
async def test_no_address_tries_many_names_and_none_learns_which_names_there_are(
    world: World, browsers: Browsers
) -> None:
    world.stop_time()
    running = await world.start(**TWO)
    thief = browsers(running)
    nobodys = ["eve"] * 11
    assert await tries(thief, nobodys) == [401] * 10 + [429], "as for a name that there is"
    assert await tries(thief, [f"name {number}" for number in range(20)]) == [401] * 20
    assert await tries(thief, ["ada", "bob", "zoe"]) == [429] * 3
    rows = await world.rows("SELECT who, what, why FROM events WHERE who LIKE '%@page'")
    assert not any("eve" in part or "name 1" in part for row in rows for part in row), (
        "what somebody typed may be a password"
    )


@pytest.mark.alternating(0)
async def test_who_came_by_a_proxy_that_nobody_listed_is_told_of_with_what_to_set(
    world: World, browsers: Browsers, caplog: pytest.LogCaptureFixture
) -> None:
    world.stop_time()
    running = await world.start(operator_open=True, **SETTINGS)
    thief, ada = browsers(running), browsers(running)
    by_proxy = {**PROXIED, "X-Forwarded-For": "203.0.113.9"}
    assert await tries(thief, ["operator"] * 11, **by_proxy) == [401] * 10 + [429]
    from_elsewhere = {**PROXIED, "X-Forwarded-For": "198.51.100.7"}
    assert await tries(ada, ["operator"], **from_elsewhere) == [429], "they count as one"
    told = [r.getMessage() for r in caplog.records if r.name == "answerback.operator"]
    assert len(told) == 2, told
    assert "by way of 127.0.0.1 count as one" in told[0]
    assert "WEB_PROXIES" in told[0]
    assert "for five minutes from 127.0.0.1, by way of which others come too" in told[1]
    async with operator_session(world.settings(), speaks=False) as session:
        [finding] = await held_off(session)
    assert "held off from 127.0.0.1, by way of which others come too, 0 min ago" in finding.says
    assert "WEB_PROXIES" in finding.fix


@pytest.mark.alternating(1)
async def test_behind_a_proxy_that_is_listed_each_address_counts_for_itself(
    world: World, browsers: Browsers, caplog: pytest.LogCaptureFixture
) -> None:
    world.stop_time()
    running = await world.start(operator_open=True, web_proxies="127.0.0.1", **SETTINGS)
    thief, ada = browsers(running), browsers(running)
    by_proxy = {**PROXIED, "X-Forwarded-For": "203.0.113.9"}
    assert await tries(thief, ["operator"] * 11, **by_proxy) == [401] * 10 + [429]
    from_elsewhere = {**PROXIED, "X-Forwarded-For": "198.51.100.7"}
    right = PASSWORD
    assert await tries(ada, ["operator"], right, **from_elsewhere) == [303]
    assert "WEB_PROXIES" not in caplog.text
