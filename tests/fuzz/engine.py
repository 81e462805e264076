"""Targets, the running of their inputs, and what that costs.

Time is CPU time of the whole process, so that a busy machine is no finding. Every input comes from
a `Random` of its own, named by seed, target and number: each can be made again by itself.
"""

from __future__ import annotations

import inspect
import logging
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

MOST_SECONDS = 2.0
"""CPU seconds that one input may take: bodies have up to 4 MB."""
MOST_MEMORY = 24 * 1024 * 1024
_EACH = 40
"""Bytes that one input may take, and so many more for each of its own."""
_WEIGHED_EVERY = 499
"""One input of so many runs under tracemalloc, which makes it slow."""
_SHOWN = 400
"""Characters of an input in a finding."""


@dataclass(frozen=True, slots=True)
class Target:
    """One door or parser. `share` is its part of the inputs; `make` gives an input, or `like`
    describes it to hypothesis; `take` tells in a word what became of it."""

    name: str
    share: int
    take: Callable[[Any], str | Awaitable[str]]
    make: Callable[[Random], Any] | None = None
    like: SearchStrategy[Any] | None = None
    most_seconds: float = MOST_SECONDS
    most_memory: int = MOST_MEMORY


@dataclass
class Finding:
    """An input that broke something, and how."""

    target: str
    number: int
    what: str
    given: str
    trace: str = ""


@dataclass
class Tally:
    """The inputs of one target so far. Times in CPU seconds, memory in bytes."""

    inputs: int = 0
    became: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_number: int = 0
    heaviest: int = 0

    def add(self, other: Tally) -> None:
        """Put another process's inputs beside these."""
        self.inputs += other.inputs
        self.became.update(other.became)
        self.seconds += other.seconds
        if other.slowest > self.slowest:
            self.slowest, self.slowest_number = other.slowest, other.slowest_number
        self.heaviest = max(self.heaviest, other.heaviest)


class Overheard(logging.Handler):
    """Keeps what was logged with an exception that nobody expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None or record.exc_info[1] is None:
            return
        trace = "".join(traceback.format_exception(record.exc_info[1]))
        self.said.append(f"{record.getMessage()}\n{trace}")


@dataclass
class Bench:
    """Runs inputs one after the other and keeps what they cost and broke."""

    seed: int
    tallies: dict[str, Tally] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    """Bytes of the process in memory, after each round."""
    most_findings: int = 20
    """Findings of a target; then it is left alone: one cause brings thousands."""

    async def run(self, target: Target, numbers: Sequence[int]) -> None:
        """Give a target the inputs of these numbers."""
        for number, one in self._inputs(target, numbers):
            if sum(finding.target == target.name for finding in self.findings) < self.most_findings:
                await self._try(target, number, one)

    def _inputs(self, target: Target, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        if target.make is not None:
            for number in numbers:
                yield number, target.make(Random(f"{self.seed}/{target.name}/{number}"))
        elif target.like is not None and numbers:
            named = Random(f"{self.seed}/{target.name}/{numbers[0]}").getrandbits(64)
            yield from zip(numbers, _described(target.like, len(numbers), named), strict=False)

    async def _try(self, target: Target, number: int, given: Any) -> None:
        tally = self.tallies.setdefault(target.name, Tally())
        tally.inputs += 1
        weighed = tally.inputs % _WEIGHED_EVERY == 1
        with overheard() as heard, _weighing(weighed) as peak:
            began = time.process_time()
            try:
                told = target.take(given)
                became = await told if inspect.isawaitable(told) else told
            except Exception as broke:  # noqa: BLE001 - that is what is looked for
                became = f"!{type(broke).__name__}"
                self._keep(target, number, given, repr(broke), traceback.format_exc())
            took = time.process_time() - began
        tally.became[became] += 1
        for said in heard:
            self._keep(target, number, given, said.splitlines()[0], said)
        if weighed:
            self._weigh(target, number, given, peak[0])
        else:
            tally.seconds += took
            self._time(target, number, given, took)

    def _time(self, target: Target, number: int, given: Any, took: float) -> None:
        tally = self.tallies[target.name]
        if took > tally.slowest:
            tally.slowest, tally.slowest_number = took, number
        if took > target.most_seconds:
            self._keep(target, number, given, f"it took {took:.1f} s of CPU")

    def _weigh(self, target: Target, number: int, given: Any, peak: int) -> None:
        tally = self.tallies[target.name]
        tally.heaviest = max(tally.heaviest, peak)
        if peak > _EACH * size_of(given) + target.most_memory:
            self._keep(target, number, given, f"it took {peak / 1e6:.0f} MB")

    def _keep(self, target: Target, number: int, given: Any, what: str, trace: str = "") -> None:
        shown = repr(given)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}... ({size_of(given)} bytes)"
        self.findings.append(Finding(target.name, number, what, shown, trace))


def size_of(given: Any) -> int:
    """The bytes of an input, about."""
    match given:
        case bytes() | str():
            return len(given)
        case dict():
            return sum(size_of(key) + size_of(value) for key, value in given.items())
        case list() | tuple():
            return sum(size_of(each) for each in given)
        case _:
            return size_of(vars(given)) if hasattr(given, "__dict__") else 8


@contextmanager
def overheard() -> Iterator[list[str]]:
    """All that the body logs with an exception, or leaves to the event loop."""
    handler = Overheard()
    logging.getLogger().addHandler(handler)
    try:
        yield handler.said
    finally:
        logging.getLogger().removeHandler(handler)


@contextmanager
def _weighing(wanted: bool) -> Iterator[list[int]]:
    """The most bytes that were held in the body beyond those before it."""
    peak = [0]
    if not wanted:
        yield peak
        return
    tracemalloc.start()
    try:
        yield peak
        peak[0] = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


_QUIET = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


def _described(like: SearchStrategy[Any], count: int, named: int) -> Sequence[Any]:
    """So many inputs, or fewer where there are no more, as hypothesis makes them."""
    made: list[Any] = []

    @seed(named)
    @settings(_QUIET, max_examples=count)
    @given(like)
    def collect(one: Any) -> None:
        made.append(one)

    collect()
    return made[:count]
