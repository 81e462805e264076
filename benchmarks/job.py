"""The one job that every program of a benchmark does, and how such a program talks to its starter.

Messages of many chats are handed in, each is answered by an agent that takes a fixed time. A text
is `chat number moment`: whoever answers it can tell whether its chat's order was kept, and how
long it took. Only the standard library is needed: the peers run in environments of their own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Job:
    """The job. `at_once` chats hand in together; `rate` messages a second, 0 for as
    many as are taken; `agent` seconds for an answer, of which `concurrency` go on together."""

    messages: int = 5000
    chats: int = 500
    at_once: int = 200
    rate: float = 0.0
    agent: float = 0.0
    concurrency: int = 200

    @classmethod
    def read(cls, text: str) -> Job:
        """The job as `str` wrote it."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    def lane(self, lane: int, lanes: int) -> Iterator[tuple[int, int]]:
        """(chat, number) of one of several lanes, in order. A chat is in one lane alone, so that
        its next message is handed in when the last one was taken."""
        for number in range(self.messages):
            if number % self.chats % lanes == lane:
                yield number % self.chats, number


def text_of(chat: int, number: int) -> str:
    """The text of a message that is handed in now."""
    return f"{chat} {number} {time.monotonic()!r}"


@dataclass(slots=True)
class Answers:
    """Every answer as it was shown, and when."""

    job: Job
    shown: list[tuple[str, float]] = field(default_factory=list)

    def show(self, text: str) -> bool:
        """Note an answer; whether it was the last one."""
        self.shown.append((text, time.monotonic()))
        return len(self.shown) >= self.job.messages

    def result(self) -> dict[str, Any]:
        """The outcome of the job: `p50_ms` and `p99_ms` from the hand-over to the answer."""
        seen, last, out_of_order, seconds = set(), dict[str, int](), 0, []
        for text, at in self.shown:
            chat, number, began = text.split()
            seen.add(number)
            out_of_order += int(number) < last.get(chat, -1)
            last[chat] = int(number)
            seconds.append(at - float(began))
        return {
            "answered": len(seen),
            "doubled": len(self.shown) - len(seen),
            "out_of_order": out_of_order,
            "ended": max((at for _, at in self.shown), default=0.0),
            **spread(seconds),
        }


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    return {"p50_ms": quantile(seconds, 0.5) * 1000, "p99_ms": quantile(seconds, 0.99) * 1000}


def quantile(values: list[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 of none."""
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def paced(job: Job, lane: int, lanes: int) -> AsyncIterator[tuple[int, int]]:
    """As `lane`, each at its moment where the job has a rate."""
    began = time.monotonic()
    for chat, number in job.lane(lane, lanes):
        if job.rate:
            await asyncio.sleep(max(0.0, began + number / job.rate - time.monotonic()))
        yield chat, number


def ready() -> None:
    """Tell the starter that everything is set up, and wait for its word."""
    print("ready", flush=True)
    sys.stdin.readline()


def finish(result: dict[str, Any]) -> None:
    """Tell the result, and stay until the starter has read our CPU time."""
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
