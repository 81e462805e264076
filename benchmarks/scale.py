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
    agents: Job = field(default_factory=lambda: Job(agent=0.2))
    paced: Job = field(default_factory=lambda: Job(messages=1000, rate=50.0))
    bursts: int = 10
    """Of 200 deliveries at once."""
    paced_webhooks: int = 1000
    """50 a second."""
    waiting: int = 3000
    """Messages of a backlog."""
    backlogs: tuple[tuple[str, int, bool], ...] = tuple(
        product(("telegram", "whatsapp"), (1, 4), (True, False))
    )
    """Platform, processes, Redis."""
    in_flight: int = 10_000
    """Turns of one process."""
    followers: int = 5000
    """Clients that follow a chat in one process."""
    told: int = 50
    """Answers on their way to one that follows."""
    questions: int = 1000
    """About a turn."""
    starts: int = 5
    calls: int = 5
    """Of each command."""
    wakeups: int = 20
    """0 leaves out what follows a process's end, too."""
    flat_times: int = 100
    """Of everything at each of the sizes."""
    sizes: tuple[Size, ...] = (
        Size(),
        Size(chats=100_000),
        Size(100_000, waiting=100_000),
        *(Size(100_000, 100_000, ended) for ended in (100_000, 1_000_000)),
    )


FULL = Scale()
QUICK = Scale(
    times=1,
    job=Job(messages=1000, chats=100),
    agents=Job(messages=600, chats=200, agent=0.2),
    paced=Job(messages=100, rate=50.0),
    bursts=3,
    paced_webhooks=100,
    waiting=300,
    backlogs=(("telegram", 1, True),),
    in_flight=1000,
    followers=500,
    told=10,
    questions=200,
    starts=1,
    wakeups=0,
    flat_times=10,
    sizes=(Size(), Size(2_000, 2_000, 20_000)),
)
