"""The whole pipeline beside the floor: a producer and a worker as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import floor
from benchmarks.job import Job
from benchmarks.meters import PostgresMeter, cpu_seconds, stages
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, new_database, spawn
from storage.schema.migrate import upgrade
from tests.e2e.forking import ROOT

LONGEST = 600.0


@dataclass
class Program:
    """A program of a benchmark that speaks as `benchmarks.job` has it."""

    process: asyncio.subprocess.Process

    async def ready(self) -> None:
        """Wait until it is set up."""
        await self._line()

    def go(self) -> None:
        """Give it the word: to begin, and in the end to leave."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    async def result(self) -> Figures:
        """Its report. Raises RuntimeError when it ended without."""
        told: Figures = json.loads(await self._line())
        return told

    async def _line(self) -> bytes:
        assert self.process.stdout is not None
        async with asyncio.timeout(LONGEST):
            line = await self.process.stdout.readline()
        if not line:
            raise RuntimeError("a program of the benchmark ended; what it said is above")
        return line


@asynccontextmanager
async def started(command: Sequence[str]) -> AsyncIterator[Program]:
    """This program, until the body ends."""
    process = await spawn(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    try:
        yield Program(process)
        async with asyncio.timeout(60):
            await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def run(
    commands: Sequence[Sequence[str]], servers: Servers, job: Job, *, strict: bool = True
) -> Figures:
    """The job by these programs: the worker first and the producer last, or one that does both.
    Its cost counts the programs and the servers. Raises RuntimeError when an answer was lost, or
    doubled or out of order where `strict`."""
    async with AsyncExitStack() as stack:
        programs = [await stack.enter_async_context(started(c)) for c in commands]
        for program in programs:
            await program.ready()
        pids = [*(p.process.pid for p in programs), *servers.pids]
        before = cpu_seconds(pids)
        for program in programs:
            program.go()
        results = [await program.result() for program in programs]
        cpu = cpu_seconds(pids) - before
        for program in programs:
            program.go()
    done, handed_in = results[0], results[-1]
    broken = strict and (done["doubled"] or done["out_of_order"])
    if broken or done["answered"] != job.messages:
        raise RuntimeError(f"the job was not done: {done}")
    return {
        "rate": job.messages / (done["ended"] - handed_in["began"]),
        "cpu_ms": 1000 * cpu / job.messages,
        "round_trips": sum(r.get("trips", 0) for r in results) / job.messages,
        "commits": sum(r.get("commits", 0) for r in results) / job.messages,
        "wal_bytes": sum(r.get("written", 0) for r in results) / job.messages,
        "taken_p50_ms": handed_in["taken"]["p50_ms"],
        "taken_p99_ms": handed_in["taken"]["p99_ms"],
        "answered_p50_ms": done["p50_ms"],
        "answered_p99_ms": done["p99_ms"],
        "refused": handed_in.get("refused", 0),
        "out_of_order": done["out_of_order"],
    }


def _program(module: str, part: str, *words: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.{module}", part, *words]


async def postgresql(module: str, servers: Servers, job: Job) -> Figures:
    """`floor` or `process` on a new database of PostgreSQL."""
    url = new_database(servers.postgres)
    await asyncio.to_thread(floor.create if module == "floor" else upgrade, url)
    words = [url, str(job)] if module == "floor" else [url, servers.valkey.url(), str(job)]
    meter = PostgresMeter.of(servers.postgres, url)
    commands = [_program(module, part, *words) for part in ("work", "produce")]
    figures = await run(commands, servers, job)
    commits, log = await meter.read()
    figures |= stages(url) if module == "process" else {}
    return figures | {"commits": commits / job.messages, "wal_bytes": log / job.messages}


async def sqlite(module: str, servers: Servers, job: Job) -> Figures:
    """`floor` or `process` on a new file of SQLite, in one process."""
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        await asyncio.to_thread(floor.create if module == "floor" else upgrade, url)
        words = [url, str(job)] if module == "floor" else [url, "", str(job)]
        figures = await run([_program(module, "both", *words)], replace(servers, pids=()), job)
        return figures | (stages(url) if module == "process" else {})


KINDS = {"postgresql": postgresql, "sqlite": sqlite}


async def beside_floor(servers: Servers, kind: str, job: Job, times: int) -> Figures:
    """Medians of the product's figures, and of the floor's, measured in turn."""
    ours, floors = [], []
    for number in range(times):
        floors.append(await KINDS[kind]("floor", servers, job))
        ours.append(await KINDS[kind]("process", servers, job))
        rate, least = ours[-1]["rate"], floors[-1]["rate"]
        took = f"an agent of {job.agent * 1000:.0f} ms"
        progress(f"{kind}, {took}, {number + 1} of {times}: {rate:.0f}/s, floor {least:.0f}/s")
    ours_median, floor_median = _medians(ours), _medians(floors)
    return ours_median | {
        "floor": floor_median["rate"],
        "ratio": ours_median["rate"] / floor_median["rate"],
        "floor_figures": floor_median,
    }


def _medians(runs: Sequence[Figures]) -> Figures:
    return {name: statistics.median(r[name] for r in runs) for name in runs[0]}


async def pipeline(servers: Servers, scale: Scale) -> Figures:
    """As many messages as are taken, and an agent that takes no time."""
    return {kind: await beside_floor(servers, kind, scale.job, scale.times) for kind in KINDS}


async def agents(servers: Servers, scale: Scale) -> Figures:
    """Agents that take 200 ms, 200 of them together."""
    return {kind: await beside_floor(servers, kind, scale.agents, scale.times) for kind in KINDS}


async def latency(servers: Servers, scale: Scale) -> Figures:
    """50 messages a second."""
    return {kind: await beside_floor(servers, kind, scale.paced, 1) for kind in KINDS}
