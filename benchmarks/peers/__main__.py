"""`python -m benchmarks.peers`: the same job by the floor, by Answerback, and by its peers.

The same driver hands in the same messages on the same servers, one after the other; each peer
runs in an environment of its own (`make bench-peers` installs them). The table says too what none
of this load shows: what each does not promise.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import pipeline
from benchmarks.job import Job
from benchmarks.meters import PostgresMeter
from benchmarks.report import Figures, progress
from benchmarks.stage import Servers, new_database, servers
from tests.e2e.forking import ROOT

PAGE = Path(__file__).with_name("README.md")


@dataclass(frozen=True, slots=True)
class Promises:
    """Its own words on the order within a chat, of a message that comes twice, and of an answer
    that was sent when the process was killed, before that was recorded."""

    order: str
    dedupe: str
    kill: str


PEERS = {
    "arq": Promises(
        "no", "while the job's result is kept, an hour", "the job is run again: the answer doubles"
    ),
    "taskiq": Promises("no", "no", "the task is run again, after ten minutes: the answer doubles"),
    "procrastinate": Promises(
        "yes, by a lock a chat",
        "while the job waits (queueing lock)",
        "the job stays as it is until own code retries it: then the answer doubles",
    ),
    "pgqueuer": Promises(
        "no", "until the job is done", "the job is picked again: the answer doubles"
    ),
    "dbos": Promises(
        "yes, by a partition a chat",
        "yes, by the workflow's id",
        "the step is run again: the answer doubles",
    ),
}
OURS = {
    "the floor": Promises("yes", "yes", "the message is claimed again: the answer doubles"),
    "Answerback": Promises(
        "yes", "yes", "not sent again unasked: the platform's records are asked, or the person is"
    ),
}


async def measure(names: Sequence[str], job: Job, times: int) -> dict[str, Figures]:
    """Medians of everybody's figures; all run in turn, so that the machine's moods are shared."""
    found: dict[str, list[Figures]] = {}
    with servers() as both:
        for _ in range(times):
            for name in (*OURS, *names):
                figures = await _one(name, both, job)
                found.setdefault(name, []).append(figures)
                rate, cpu = figures["rate"], figures["cpu_ms"]
                progress(f"{name}: {rate:.0f}/s, {cpu:.2f} ms of CPU a message")
    return {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in found.items()
    }


async def _one(name: str, both: Servers, job: Job) -> Figures:
    if name in OURS:
        program = "process" if name == "Answerback" else "floor"
        return await pipeline.postgresql(program, both, job)
    both.valkey.flush()
    url = new_database(both.postgres)
    meter = PostgresMeter.of(both.postgres, url)
    python = str(ROOT / ".venv-peers" / name / "bin" / "python")
    words = [python, "-m", "benchmarks.peers.program", name]
    commands = [[*words, part, url, both.valkey.url(), str(job)] for part in ("work", "produce")]
    figures = await pipeline.run(commands, both, job, strict=False)
    commits, log = await meter.read()
    return figures | {"commits": commits / job.messages, "wal_bytes": log / job.messages}


def page(found: dict[str, Figures], job: Job, times: int) -> str:
    """The table, for people and for the page."""
    head = (
        *("", "messages a second", "of the floor", "ms of CPU", "commits", "bytes of log"),
        *("out of order", "order of a chat", "a message twice", "killed after the send"),
    )
    rows = [head, tuple("---" for _ in head)]
    for name, figures in found.items():
        promises = (OURS | PEERS)[name]
        cells = [f"{figures['rate']:.0f}", f"{figures['rate'] / found['the floor']['rate']:.2f}"]
        cells += [f"{figures['cpu_ms']:.2f}", f"{figures['commits']:.2f}"]
        cells += [f"{figures['wal_bytes']:.0f}", f"{figures['out_of_order']:.0f}"]
        rows.append((name, *cells, promises.order, promises.dedupe, promises.kill))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return _PAGE.format(table=table, times=times, messages=job.messages, chats=job.chats)


_PAGE = """# The same job, by others

{messages:,} messages of {chats} chats, a producer and a worker as processes of their own, an agent
that takes no time, 200 at once; PostgreSQL waits for the disk; medians of {times}. CPU is that of
all processes together, a message; arq and taskiq keep their jobs in Redis, which does not wait for
a disk. The columns at the right are what each says of itself, and what each leaves to its user;
an agent that takes no time seldom shows an order that is not promised.

`make bench-peers` installs them, measures, and writes this page.

{table}
"""


def main() -> None:
    """Read the options, measure, tell."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    options.add_argument("--messages", type=int, default=5000)
    options.add_argument("--times", type=int, default=3)
    options.add_argument("--only", choices=list(PEERS), nargs="+", default=list(PEERS))
    asked = options.parse_args()
    job = Job(messages=asked.messages)
    written = page(asyncio.run(measure(asked.only, job, asked.times)), job, asked.times)
    print(written)
    if asked.only == list(PEERS):
        PAGE.write_text(written)


if __name__ == "__main__":
    main()
