"""The demonstration's agent does what costs money once, whatever happens to its process."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from functools import partial

import pytest

from bot.agents.demo import PAY, READ, SHARES, WRITE, DemoAgent
from bot.domain.message import InboundKind
from bot.texts import Text, Words
from tests.agents.turns import CHAT, FakeTurn, message, turn
from tests.clocks import ShiftedClock
from tests.limits import until

SECONDS = 20.0


@pytest.fixture
def clock() -> ShiftedClock:
    clock = ShiftedClock()
    clock.stop()
    return clock


@pytest.fixture
def agent(clock: ShiftedClock) -> DemoAgent:
    return DemoAgent(Words.load(), clock, SECONDS)


def has(begun: set[str], step: str) -> bool:
    return step in begun


def at_once() -> DemoAgent:
    return DemoAgent(Words.load(), ShiftedClock(), 0.0)


async def cut_off_in(step: str, agent: DemoAgent, clock: ShiftedClock, asked: FakeTurn) -> None:
    """Let it work until it is in this step, and end it there."""
    working = asyncio.create_task(agent(asked))
    for before in (READ, PAY, WRITE):
        await until(partial(has, asked.begun, before))
        if before == step:
            break
        clock.advance(SECONDS * SHARES[before])
    working.cancel()
    await asyncio.wait((working,))


def receipts(answer: str) -> list[str]:
    return re.findall(r"R-[0-9A-F]{6}", answer)


async def test_it_works_as_long_as_it_is_told_in_three_steps(
    agent: DemoAgent, clock: ShiftedClock
) -> None:
    asked = turn("a pizza")
    began = clock.monotonic()
    working = asyncio.create_task(agent(asked))
    for number, step in enumerate((READ, PAY, WRITE), 1):
        await until(partial(has, asked.begun, step))
        assert len(asked.results) == number - 1
        clock.advance(SECONDS * SHARES[step])
    answer = await working
    assert clock.monotonic() - began == pytest.approx(SECONDS)
    assert "a pizza" in answer
    assert receipts(answer) == [receipts(asked.results[PAY])[0]]


async def test_cut_off_behind_the_payment_it_goes_on_with_the_same_receipt(
    agent: DemoAgent, clock: ShiftedClock
) -> None:
    asked = turn("a pizza")
    await cut_off_in(WRITE, agent, clock, asked)
    paid = receipts(asked.results[PAY])
    answer = await at_once()(asked.again())
    assert receipts(answer) == paid
    assert Words.load().say(Text.DEMO_RESUMED, count=2) in answer


async def test_cut_off_in_the_payment_it_does_not_pay_again(
    agent: DemoAgent, clock: ShiftedClock
) -> None:
    asked = turn("a pizza")
    await cut_off_in(PAY, agent, clock, asked)
    answer = await at_once()(asked.again())
    assert answer == Words.load().say(Text.DEMO_IN_DOUBT)
    assert PAY not in asked.results


async def test_it_speaks_the_language_of_the_chat_and_quotes_a_little_of_the_question() -> None:
    german = replace(CHAT, language="de")
    answer = await at_once()(turn("wo ist\nmeine " + "sehr " * 99 + "Pizza", chat=german))
    assert answer.startswith("Die Antwort auf „wo ist meine sehr")
    assert len(answer) < 300


async def test_what_has_no_words_is_named() -> None:
    answer = await at_once()(FakeTurn((message("", InboundKind.PHOTO),)))
    assert "[photo]" in answer
