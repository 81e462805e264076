"""Sizes of a run: the whole one, and the short form of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.job import Job


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of one run."""

    times: int = 3
    """Runs of which the median counts."""
    job: Job = field(default_factory=Job)
    agents: Job = field(default_factory=lambda: Job(agent=0.2, at_once=250))
    paced: Job = field(default_factory=lambda: Job(messages=1000, rate=50.0))


FULL = Scale()
QUICK = Scale(
    times=1,
    job=Job(messages=1000, chats=100),
    agents=Job(messages=1000, chats=250, agent=0.2, at_once=250),
    paced=Job(messages=200, rate=50.0),
)
