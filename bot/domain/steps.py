"""Steps of a turn as its agent asks for them; those that it never awaits are not done."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

from bot.domain.turn import Cost

_IN_ITS_PLACE = re.compile(r"<coroutine object \S+ at 0x[0-9a-fA-F]+>")

Call = Callable[[], Awaitable[Any] | Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A call that the agent wants made once. With `cost` it is a call of a model."""

    key: str
    call: Call
    safe: bool
    cost: Callable[[Any], Cost] | None


class Forgotten:
    """The steps of one attempt, as the agent asks for them."""

    def __init__(self) -> None:
        self._made: list[Coroutine[Any, Any, Any]] = []

    def watch(self, step: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The same step, remembered."""
        self._made.append(step)
        return step

    def told(self) -> str:
        """A sentence on those that were not awaited when the agent returned; empty for none."""
        left = [step for step in self._made if getcoroutinestate(step) == CORO_CREATED]
        self._made.clear()
        for step in left:
            step.close()  # or Python warns of it too, wherever it is collected
        if not left:
            return ""
        return (
            f"{len(left)} step(s) were never awaited and are not done: write "
            "`await turn.step(...)`, or in a plain function `wait(turn.step(...))`"
        )


class TakesSteps(ABC):
    """The `step` of a turn in this process: each is remembered until it is awaited."""

    __slots__ = ()
    forgotten: Forgotten

    def step(
        self,
        key: str,
        call: Call,
        *,
        safe_to_repeat: bool = False,
        cost: Callable[[Any], Cost] | None = None,
    ) -> Coroutine[Any, Any, Any]:
        return self.forgotten.watch(self._take(Step(key, call, safe_to_repeat, cost)))

    @abstractmethod
    async def _take(self, step: Step) -> Any:
        """Its stored result, or that of the call made now."""


def shows_a_step(text: str) -> bool:
    """True for an answer in which a step stands in the place of its result."""
    return _IN_ITS_PLACE.search(text) is not None
