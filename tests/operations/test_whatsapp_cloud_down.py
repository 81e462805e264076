"""A number that Meta refuses keeps its replies, is named with the step to take, and asks little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bot.operations.explain import explain_run
from bot.operations.stuck import Stuck, find_stuck
from storage.views.gauges import read_gauges
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
