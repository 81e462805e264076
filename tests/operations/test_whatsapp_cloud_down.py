"""A number that Meta refuses keeps its replies, is named with the step to take, and asks little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bot.operations.reports.explain import explain_run
from bot.operations.reports.stuck import Stuck, find_stuck
from bot.operations.webhooks import set_webhooks, try_again
from storage.views.health.gauges import read_gauges
from tests.fakes.meta import faults
from tests.fakes.meta.server import NUMBER, OTHER_NUMBER, OTHER_TOKEN, TOKEN, StatusPlan
from tests.kit.agents import Echo
from tests.kit.conversation import endings
from tests.kit.passing import settle
from tests.kit.whatsapp import CALM
from tests.kit.whatsapp_cloud import TWO
from tests.limits import moment
from tests.world import Running, World

ON: dict[str, Any] = {**TWO, **CALM, "burst": "each"}
FRESH = "EAAtest-token-of-number-a-made-anew"
DOWN = f"SELECT down_since IS NOT NULL FROM accounts WHERE account = '{NUMBER}'"
UNDER_WAY = "SELECT count(*) FROM runs WHERE state = 'running'"
KEPT = "SELECT count(*) FROM runs WHERE replied AND state = 'ready' AND not_before > 1e11"
ENDED = "SELECT count(*) FROM runs WHERE state = 'ended'"


def token_dies(world: World) -> None:
    world.meta.numbers[NUMBER].token = FRESH


def refuses(code: int, method: str = "*") -> Callable[[World], None]:
    def arrange(world: World) -> None:
        world.meta.fail(
            method, faults.refused(code), times=None, when=lambda call: call.account == NUMBER
        )

    return arrange


TROUBLES: dict[str, tuple[str, Callable[[World], None], str]] = {
    "token": ("190", token_dies, "token"),
    "locked": ("368", refuses(368), "Support"),
    "permission": ("10", refuses(10), "permission"),
    "payment": ("131042", refuses(131042, "send"), "payment"),
}


async def crowd(world: World) -> None:
    """19 people more write to the number that is refused, 5 to the other."""
    for person in range(1, 20):
        await world.meta.person_writes(f"a{person}", from_=f"1555010050{person:02d}")
    for person in range(5):
        text, from_ = f"b{person}", f"1555010060{person:02d}"
        await world.meta.person_writes(text, from_=from_, number=OTHER_NUMBER)


async def named(process: Running, code: str) -> list[Stuck]:
    """The words of `stuck` on the number."""
    found = await process.process.rt.db.read(find_stuck, 0.0, 15.0)
    return [one for one in found if NUMBER in f"{one.id} {one.why}" and code in one.why]


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_b147_replies_are_kept_the_operator_is_told_and_each_goes_out_once_afterwards(
    world: World, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    code, arrange, step = TROUBLES[trouble]
    agent = Echo()
    process = await world.start(agent=agent, **ON)
    arrange(world)
    before = len(world.meta.calls)
    await world.meta.person_writes("a0", from_="155501005000")
    await world.until(DOWN, lambda rows: rows in ([(1,)], [(True,)]))
    await crowd(world)
    await world.until(KEPT, lambda rows: rows == [(20,)])
    await world.until(ENDED, lambda rows: rows == [(5,)])
    await world.until(UNDER_WAY, lambda rows: rows == [(0,)])
    assert await world.rows("SELECT count(*) FROM outbox WHERE kind = 'reply'") == [(25,)]
    assert agent.calls == Counter([f"a{n}" for n in range(20)] + [f"b{n}" for n in range(5)])
    assert sorted(m.text for m in world.meta.messages()) == [f"re: b{n}" for n in range(5)]
    told = await named(process, code)
    assert len(told) == 1
    assert step in told[0].why + told[0].act
    assert "kept for it: 20 stored answers" in told[0].why
    assert (
        len([r for r in caplog.records if r.levelname == "ERROR" and code in r.getMessage()]) <= 1
    )
    rt = process.process.rt
    [(kept,)] = await world.rows("SELECT min(id) FROM runs WHERE ending IS NULL")
    explained = await rt.db.read(explain_run, rt, kept, 15.0)
    assert explained.verdict == "deliver"
    assert "waits for its account" in explained.says
    assert (await rt.db.read(read_gauges)).kept == 20
    assert await world.rows("SELECT sum(attempts) FROM outbox WHERE state = 'pending'") == [(1,)]
    tried = [call for call in world.meta.calls[before:] if call.account == NUMBER]
    assert [call.method for call in tried if call.method != "number"] == ["send"]
    assert len(tried) <= 2, "a storm of calls"  # Its watch asks once at the start.

    quiet = len(world.meta.calls)
    for _ in range(20):
        world.advance(30)
        await moment()
    probes = [
        call
        for call in world.meta.calls[quiet:]
        if call.account == NUMBER and call.status != 200  # Its watch asks what may be asked.
    ]
    assert len(probes) <= 10, "more than one call a minute"
    assert await world.rows(KEPT) == [(20,)]
    assert len(world.meta.messages()) == 5
    assert Counter(e for _, e in await endings(world))["answered"] == 5
    assert await world.rows("SELECT id FROM runs WHERE ending <> 'answered'") == []

    await process.stop()
    world.meta.script.clear()
    world.meta.numbers[NUMBER].token = FRESH
    await world.start(agent=agent, **{**ON, "meta_access_token": f"{FRESH},{OTHER_TOKEN}"})
    await settle(world)
    sent = Counter(m.text for m in world.meta.messages() if m.number == NUMBER)
    assert sent == {f"re: a{n}": 1 for n in range(20)}
    assert set(agent.calls.values()) == {1}
    assert {ending for _, ending in await endings(world)} == {"answered"}
    assert TOKEN not in caplog.text
    assert FRESH not in caplog.text


async def test_b147_a_late_failure_of_payment_is_sent_again_after_the_operators_act_only(
    world: World,
) -> None:
    world.meta.plan = lambda m: StatusPlan.failing(131042) if m.number == NUMBER else StatusPlan()
    agent = Echo()
    process = await world.start(agent=agent, **ON)
    await world.meta.person_writes("a", from_="15550100501")
    await world.meta.person_writes("b", from_="15550100502", number=OTHER_NUMBER)
    await world.until(DOWN, lambda rows: rows in ([(1,)], [(True,)]))
    await world.until(UNDER_WAY, lambda rows: rows == [(0,)])
    assert world.meta.texts() == ["re: b"]
    for _ in range(20):
        world.advance(30)
        await moment()
    assert len(world.meta.calls_of("send")) == 2
    told = await named(process, "131042")
    assert told
    await process.stop()
    world.meta.plan = lambda _message: StatusPlan()
    await world.start(agent=agent, **ON)
    await settle(world)
    assert len(world.meta.calls_of("send")) <= 3
    assert agent.calls == {"a": 1, "b": 1}
    assert "apology" not in str(await world.rows("SELECT kind FROM outbox"))


async def down(world: World, process: Running) -> None:
    """Two people wrote to the number, one of them twice, and their answers are kept."""
    for text, person in (("a0", "00"), ("b0", "01"), ("a1", "00")):
        await world.meta.person_writes(text, from_=f"1555010050{person}")
    await world.until(KEPT, lambda rows: rows == [(2,)])
    await world.until(UNDER_WAY, lambda rows: rows == [(0,)])
    assert not process.dead


async def passes(world: World, seconds: int) -> None:
    for _ in range(seconds // 20):
        world.advance(20)
        await moment()


@pytest.mark.parametrize("trouble", ["token", "permission", "blocked"])
async def test_a_number_that_can_send_again_by_metas_word_is_tried_by_itself_and_keeps_the_order(
    world: World, trouble: str
) -> None:
    process = await world.start(agent=Echo(), **ON)
    number = world.meta.numbers[NUMBER]
    if trouble == "blocked":
        refuses(131031, "send")(world)
        number.facts["health_status"] = {"can_send_message": "BLOCKED"}
    else:
        TROUBLES[trouble][1](world)
    await down(world, process)
    await passes(world, 300)
    assert await world.rows(KEPT) == [(2,)]
    world.meta.script.clear()
    number.facts.clear()
    number.token = TOKEN
    for _ in range(30):
        await passes(world, 20)
        if await world.rows(DOWN) in ([(0,)], [(False,)]):
            break
    await settle(world)
    sent = world.meta.texts()
    assert sorted(sent) == ["re: a0", "re: a1", "re: b0"]
    assert sent.index("re: a0") < sent.index("re: a1")
    assert not process.dead


async def test_what_meta_says_nothing_of_is_tried_again_when_an_operator_sets_the_webhook(
    world: World,
) -> None:
    process = await world.start(agent=Echo(), **ON)
    refuses(131042, "send")(world)
    await down(world, process)
    tried = len(world.meta.calls_of("send"))
    await passes(world, 600)
    assert len(world.meta.calls_of("send")) == tried
    world.meta.script.clear()
    rt, endpoints = process.process.rt, list(process.process.endpoints.values())
    public = process.process.settings.public_url
    mine = [one for one in endpoints if one.channel.account == NUMBER]
    said = await set_webhooks(mine, public, drop_pending=False, then=partial(try_again, rt))
    assert "tried again" in said[-1]
    await settle(world)
    assert sorted(world.meta.texts()) == ["re: a0", "re: a1", "re: b0"]
    again = await set_webhooks(mine, public, drop_pending=False, then=partial(try_again, rt))
    assert "tried again" not in "".join(again)


async def test_a_number_that_goes_down_again_is_asked_about_less_and_less(world: World) -> None:
    process = await world.start(agent=Echo(), **ON)
    world.meta.fail("send", faults.refused(190), times=None)
    await down(world, process)
    before = len(world.meta.calls_of("send"))
    await passes(world, 3600)
    tried = len(world.meta.calls_of("send")) - before
    assert 0 < tried <= 2 * 7, "two chats, after 1, 2, 4, 8, 16 and 32 minutes"
