"""Sizes of a run: the whole one, and the short form of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from benchmarks.job import Job
from benchmarks.past import Size


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of one run."""

    times: int = 3
    """Runs of which the median counts."""
    job: Job = field(default_factory=Job)
    agents: Job = field(default_factory=lambda: Job(agent=0.2, at_once=250))
    paced: Job = field(default_factory=lambda: Job(messages=1000, rate=50.0))
    bursts: int = 10
    """Of 200 deliveries at once."""
    paced_webhooks: int = 1000
    waiting: int = 3000
    backlogs: tuple[tuple[str, int, bool], ...] = tuple(
        product(("telegram", "whatsapp"), (1, 4), (True, False))
    )
    """Platform, processes, Redis."""
    flat_times: int = 100
    sizes: tuple[Size, ...] = (
        Size(),
        Size(chats=100_000),
        Size(100_000, waiting=100_000),
        *(Size(100_000, 100_000, ended) for ended in (10_000, 100_000, 1_000_000)),
    )


FULL = Scale()
QUICK = Scale(
    times=1,
    job=Job(messages=1000, chats=100),
    agents=Job(messages=1000, chats=250, agent=0.2, at_once=250),
    paced=Job(messages=200, rate=50.0),
    bursts=3,
    paced_webhooks=150,
    waiting=300,
    backlogs=(("telegram", 1, True),),
    flat_times=20,
    sizes=(Size(), Size(2_000, 2_000), Size(2_000, 2_000, 20_000)),
)
