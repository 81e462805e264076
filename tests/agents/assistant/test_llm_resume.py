"""Cut off anywhere, the assistant goes on where it was: nothing is paid or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from bot.agents.assistant.tools import INTERRUPTED
from bot.domain.errors import Retry
from bot.domain.turn import Cost, Turn, safe_to_repeat
from tests.agents.assistant.models import ScriptedModel, assistant, call, calls, results
from tests.agents.turns import FakeTurn, turn


class Crash(BaseException):
    """The process is gone at this instant."""


class DyingTurn:
    """A turn whose process dies at a step: before its call, after it, or once it is stored."""

    def __init__(self, inner: FakeTurn, key: str, when: str) -> None:
        self._inner = inner
        self._key = key
        self._when = when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def step(
        self,
        key: str,
        call: Callable[[], Awaitable[Any] | Any],
        *,
        safe_to_repeat: bool = False,
        cost: Callable[[Any], Cost] | None = None,
    ) -> Any:
        if not key.startswith(self._key):
            return await self._inner.step(key, call, safe_to_repeat=safe_to_repeat, cost=cost)
        if self._when == "begun":
            self._inner.begun.add(key)
            raise Crash
        if self._when == "called":
            self._inner.begun.add(key)
            result = call()
            await result if asyncio.iscoroutine(result) else result
            raise Crash
        await self._inner.step(key, call, safe_to_repeat=safe_to_repeat, cost=cost)
        raise Crash


class Shop:
    """A tool with an outside effect."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []

    async def order(self, item: str, idempotency_key: str) -> str:
        """Order something."""
        self.orders.append((item, idempotency_key))
        return f"ordered {item}"


def ordering() -> ScriptedModel:
    return ScriptedModel(call("order", item="tea"), "Your tea is ordered.")


async def die(
    agent: Callable[[Turn], Awaitable[str]], asked: FakeTurn, key: str, when: str
) -> None:
    with pytest.raises(Crash):
        await agent(cast(Turn, DyingTurn(asked, key, when)))


@pytest.mark.parametrize(
    ("key", "when", "model_calls"),
    [
        ("model:1", "begun", 2),
        ("model:1", "called", 3),
        ("model:1", "stored", 2),
        ("tool:1", "stored", 2),
        ("model:2", "begun", 2),
        ("model:2", "called", 3),
        ("model:2", "stored", 2),
    ],
)
async def test_only_what_was_not_stored_is_paid_again(
    key: str, when: str, model_calls: int
) -> None:
    model, shop, asked = ordering(), Shop(), turn("order tea")
    await die(assistant(model, shop.order), asked, key, when)
    if model_calls == 3 and key == "model:1":
        model._answers.insert(0, model._answers[0])
    said = await assistant(model, shop.order)(asked.again())
    assert said == "Your tea is ordered."
    assert model.calls == model_calls
    assert len(shop.orders) == 1


@pytest.mark.parametrize("when", ["begun", "called"])
async def test_b80_an_effect_that_was_cut_off_is_not_done_again_but_told(when: str) -> None:
    model, shop, asked = ordering(), Shop(), turn("order tea")
    await die(assistant(model, shop.order), asked, "tool:1", when)
    done = len(shop.orders)
    assert await assistant(model, shop.order)(asked.again()) == "Your tea is ordered."
    assert len(shop.orders) == done
    assert results(model.asked[-1]) == [INTERRUPTED]
    assert model.calls == 2


async def test_b80_a_tool_that_is_safe_is_done_again_under_the_same_key() -> None:
    keys: list[str] = []

    @safe_to_repeat
    async def order(item: str, idempotency_key: str) -> str:
        """Order something, once a key."""
        keys.append(idempotency_key)
        return f"ordered {item}"

    model, asked = ordering(), turn("order tea")
    await die(assistant(model, order), asked, "tool:1", "called")
    await assistant(model, order)(asked.again())
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert results(model.asked[-1]) == ["ordered tea"]


async def test_the_same_call_id_in_two_responses_is_two_calls_with_two_keys() -> None:
    shop = Shop()
    model = ScriptedModel(call("order", item="tea"), call("order", item="milk"), "both")
    assert await assistant(model, shop.order)(turn("tea and milk")) == "both"
    assert [item for item, _ in shop.orders] == ["tea", "milk"]
    assert len({key for _, key in shop.orders}) == 2


async def test_two_calls_at_once_with_one_id_are_both_done() -> None:
    shop = Shop()
    both = calls(("order", "same", {"item": "tea"}), ("order", "same", {"item": "milk"}))
    model = ScriptedModel(both, "both")
    assert await assistant(model, shop.order)(turn("tea and milk")) == "both"
    assert sorted(item for item, _ in shop.orders) == ["milk", "tea"]
    assert len({key for _, key in shop.orders}) == 2


async def test_a_tool_that_failed_is_told_once_and_not_tried_again_after_a_crash() -> None:
    tries = []

    def order(item: str) -> str:
        """Order something."""
        tries.append(item)
        raise OSError("a secret of the shop")

    model, asked = ordering(), turn("order tea")
    await die(assistant(model, order), asked, "model:2", "begun")
    await assistant(model, order)(asked.again())
    assert tries == ["tea"]
    (told,) = results(model.asked[-1])
    assert "OSError" in told
    assert "secret" not in told


async def test_a_tool_may_ask_for_the_turn_and_for_a_retry() -> None:
    seen: list[str] = []

    async def order(turn: Turn, item: str) -> str:
        """Order something."""
        seen.append(turn.request_id)
        raise Retry(after=7)

    asked = replace(turn("order tea"), request_id="tg-1-2")
    with pytest.raises(Retry) as again:
        await assistant(ordering(), order)(asked)
    assert again.value.after == 7
    assert seen == ["tg-1-2"]


async def test_cancelling_the_turn_reaches_the_tool() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def order(item: str) -> str:
        """Order something."""
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return item

    working = asyncio.create_task(assistant(ordering(), order)(turn("order tea")))
    await begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert cancelled.is_set()


async def test_cancelling_the_turn_reaches_the_model() -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    working = asyncio.create_task(assistant(ScriptedModel("x", before=hang))(turn("hi")))
    await begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
