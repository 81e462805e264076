"""Steps that an agent asked for and never awaited: they are not done, and have no results."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

_IN_ITS_PLACE = re.compile(r"<coroutine object \S+ at 0x[0-9a-fA-F]+>")


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


def shows_a_step(text: str) -> bool:
    """True for an answer in which a step stands in the place of its result."""
    return _IN_ITS_PLACE.search(text) is not None
