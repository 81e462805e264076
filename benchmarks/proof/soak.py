"""`make soak`: an hour at half of what is possible, half of it on each database, and a look at
everything that could grow meanwhile.

First thousands of messages come within a second, and the pace at which they are answered, once all
are at it and before the last few, is what is possible; then comes half of that rate. Nothing goes
wrong here. Memory, handles and threads of every process and the rows of every table are read now
and then. The rule says what is flat. The exit code is 1 if anything is not, or if a message was
lost. A whole run writes docs/proof.md and its picture.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from benchmarks.proof import report
from benchmarks.proof.curves import Curve, drawn
from benchmarks.proof.disks import own_mounts
from benchmarks.proof.grounds import Database, storm_on
from benchmarks.proof.ours import Answerback
from benchmarks.proof.plan import Load, draw
from benchmarks.proof.storm import Found, Storm
from benchmarks.report import progress

MINUTES = 60.0
PICTURE = report.PAGE.with_name("soak.svg")
_AT_ONCE = Load(rate=6000.0, chats=480, long=0.0, stumbles=0.0, in_vain=0.0)
"""As many as are sent within a second, in so many chats that none of them has to wait for its own
platform's pace alone."""
_FROM, _TO = 0.1, 0.8
"""The shares of all answers between which the pace counts."""
_MEGABYTES = 4096
"""The room on the disk of the database, where a small one is mounted."""
_COUNTS_EVERY = 0.25
"""Seconds."""
_LOOKS = 180
_WARM = 0.25
"""The share of the time that is not looked at: there is made all that is made once."""
MEMORY, COUNT, ROWS = 0.05, 0.10, 0.10
"""The most that may be gained from the warm-up to the end: these shares of memory, of handles and
threads (or one), and of the rows a message."""
_TELLS = 10.0
"""Minutes from which on a soak tells something: connections are kept for more than one."""
_FEW = 200
"""Rows; of a table with fewer none is made for each message."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look, at a second of the soak. Memory in bytes, of each process by its place; `messages`
    are those that were taken by then."""

    at: float
    resident: Sequence[int]
    proportional: Sequence[int]
    handles: Sequence[int]
    threads: Sequence[int]
    rows: Mapping[str, int]
    stored: int
    messages: int


@dataclass
class Soaked:
    """One soak. `capacity` and `rate` in messages a second."""

    capacity: float
    rate: float
    found: Found
    looks: list[Look] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Judged:
    """One thing that could grow: its median, what the slope behind the warm-up adds to it until the
    end, and whether that is flat."""

    name: str
    median: float
    gained: float
    flat: bool


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs: one outlier moves nothing. A few thousand pairs
    tell as much as all."""
    pairs = [(a, b) for a, b in combinations(points, 2) if b[0] > a[0]]
    if len(pairs) > 5000:
        pairs = random.Random(0).sample(pairs, 5000)
    return statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs) if pairs else 0.0


def judge_curve(name: str, points: Sequence[tuple[float, float]], most: float) -> Judged:
    """Flat is what gains no more than `most` of itself."""
    warm = [p for p in points if p[0] >= _WARM * points[-1][0]]
    median = statistics.median(value for _, value in warm)
    gained = slope(warm) * (warm[-1][0] - warm[0][0])
    return Judged(name, median, gained, gained <= most * median)


def judge_count(name: str, points: Sequence[tuple[float, float]]) -> Judged:
    """Flat is what gains no more than a share of itself, or one."""
    judged = judge_curve(name, points, COUNT)
    return Judged(name, judged.median, judged.gained, judged.flat or judged.gained <= 1.0)


def judge_rows(looks: Sequence[Look]) -> Sequence[Judged]:
    """Rows are kept, so tables grow with the messages: flat is what makes no more a message in the
    second half of the time than in the first."""
    warm = [look for look in looks if look.at >= _WARM * looks[-1].at]
    begin, middle, end = warm[0], warm[len(warm) // 2], warm[-1]
    found = []
    for table, last in sorted(end.rows.items()):
        if last >= _FEW and middle.messages > begin.messages and end.messages > middle.messages:
            early = (middle.rows[table] - begin.rows[table]) / (middle.messages - begin.messages)
            late = (last - middle.rows[table]) / (end.messages - middle.messages)
            flat = late <= early * (1 + ROWS) + 0.01
            found.append(Judged(f"rows a message, {table}", early, late - early, flat))
    return found


def judged(looks: Sequence[Look]) -> Sequence[Judged]:
    """Everything that could grow."""
    found: list[Judged] = []
    for place in range(min(len(look.resident) for look in looks)):
        memory = [(look.at, look.resident[place] / 1e6) for look in looks]
        own = [(look.at, look.proportional[place] / 1e6) for look in looks]
        handles = [(look.at, float(look.handles[place])) for look in looks]
        threads = [(look.at, float(look.threads[place])) for look in looks]
        found += [
            judge_curve(f"MB resident, process {place + 1}", memory, MEMORY),
            judge_curve(f"MB of its own share, process {place + 1}", own, MEMORY),
            judge_count(f"handles, process {place + 1}", handles),
            judge_count(f"threads, process {place + 1}", threads),
        ]
    return [*found, *judge_rows(looks)]


async def soak(database: Database, seed: int, minutes: float) -> Soaked:
    """Find the capacity, and soak at half of it."""
    platforms = Answerback.platforms
    plan = draw(seed, 1.0, platforms, {}, _AT_ONCE)
    async with storm_on(database, plan, Answerback, megabytes=_MEGABYTES) as storm:
        points: list[tuple[float, int]] = []
        counting = asyncio.create_task(_count_often(storm, points))
        try:
            await storm.rage()
        finally:
            counting.cancel()
    capacity = pace(points, len(plan.sayings))
    progress(f"{database}: {capacity:.0f} messages a second")
    half = Load(rate=capacity / 2, chats=_AT_ONCE.chats, stumbles=0.0, in_vain=0.0)
    plan = draw(seed, 60 * minutes, platforms, {}, half)
    async with storm_on(database, plan, Answerback, megabytes=_MEGABYTES) as storm:
        soaked = Soaked(capacity, half.rate, storm.found)
        looking = asyncio.create_task(_look_often(storm, soaked, 60 * minutes / _LOOKS))
        try:
            await storm.rage()
        finally:
            looking.cancel()
    return soaked


def pace(points: Sequence[tuple[float, int]], of_all: int) -> float:
    """Messages a second, from `points` of a second and the answers by then. Raises ValueError if
    too few were answered to tell."""
    within = [point for point in points if _FROM * of_all <= point[1] <= _TO * of_all]
    if len(within) < 2 or within[-1][1] == within[0][1]:
        raise ValueError(f"of {of_all} messages too few were seen answered: {points[-1:]}")
    (began, first), (ended, last) = within[0], within[-1]
    return (last - first) / (ended - began)


async def _count_often(storm: Storm, points: list[tuple[float, int]]) -> None:
    while True:
        if (answered := await storm.contestant.answered()) is not None:
            points.append((time.monotonic(), answered))
        await asyncio.sleep(_COUNTS_EVERY)


async def _look_often(storm: Storm, soaked: Soaked, every: float) -> None:
    while not storm.chats:
        await asyncio.sleep(0.1)
    began = time.monotonic()
    while True:
        soaked.looks.append(await _look(storm, time.monotonic() - began))
        await asyncio.sleep(every)


async def _look(storm: Storm, at: float) -> Look:
    pids = [place.now.pid for place in storm.places if place.now is not None]
    folders = [Path("/proc") / str(pid) for pid in pids]
    return Look(
        at,
        [_kilobytes(folder / "smaps_rollup", "Rss") * 1000 for folder in folders],
        [_kilobytes(folder / "smaps_rollup", "Pss") * 1000 for folder in folders],
        [len([*(folder / "fd").iterdir()]) for folder in folders],
        [_kilobytes(folder / "status", "Threads") for folder in folders],
        await storm.contestant.rows(),
        await storm.contestant.stored_bytes(),
        sum(len(chat.taken) for chat in storm.chats),
    )


def _kilobytes(file: Path, name: str) -> int:
    """A number in one of the kernel's tables."""
    lines = file.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def curves(soaked: Mapping[str, Soaked]) -> Sequence[Curve]:
    """The curves of the picture."""
    found = []
    for database, one in soaked.items():
        at = [look.at / 60 for look in one.looks]
        for name, values in (
            ("MB of the largest process", [max(look.resident) / 1e6 for look in one.looks]),
            ("handles of a process, at most", [max(look.handles) for look in one.looks]),
            ("threads of a process, at most", [max(look.threads) for look in one.looks]),
            ("MB of the database", [look.stored / 1e6 for look in one.looks]),
        ):
            found.append(Curve(f"{database}: {name}", list(zip(at, values, strict=True))))
    return found


def told(soaked: Mapping[str, Soaked]) -> str:
    """The tables, for a page and a terminal."""
    lines = []
    for database, one in soaked.items():
        verdict = one.found.verdict
        possible = f"{one.capacity:.0f} messages a second are possible, {one.rate:.0f} came"
        judged_wrong = f"{verdict.messages:,} messages, {len(verdict.findings)} findings"
        lines += [
            "",
            f"**{database}**: {possible}; {judged_wrong} of the judge.",
            "",
            "| | median | gained behind the warm-up | |",
            "|---|--:|--:|---|",
        ]
        lines += [
            f"| {j.name} | {j.median:.2f} | {j.gained:+.2f} | {'flat' if j.flat else '**grows**'} |"
            for j in judged(one.looks)
        ]
    return "\n".join(lines).strip()


def main() -> None:
    """Read the options, soak, tell."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.proof.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--minutes", type=float, default=MINUTES, help="in all")
    options.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    options.add_argument("--only", type=Database, choices=[*Database], help="this database alone")
    options.add_argument("--page", action="store_true", help="write the page in any case")
    asked = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # What runs is ended, then we.
    own_mounts()
    databases = [asked.only] if asked.only else [*Database]
    soaked: dict[str, Soaked] = {}
    for database in databases:
        one = asyncio.run(soak(database, asked.seed, asked.minutes / len(databases)))
        soaked[database.value] = one
        progress(told({database.value: one}))  # Half an hour's figures do not wait for the other's.
    text = (
        f"{asked.minutes:g} minutes in all, seed {asked.seed}, {report.where()}.\n\n{told(soaked)}"
    )
    print(text)
    if (asked.minutes >= MINUTES and not asked.only) or asked.page:
        PICTURE.write_text(drawn(curves(soaked)), encoding="utf-8")
        report.write("the soak", f"{text}\n\n![What could grow]({PICTURE.name})")
    wrong = [one for s in soaked.values() for one in s.found.verdict.findings]
    grows = [one for s in soaked.values() for one in judged(s.looks) if not one.flat]
    if asked.minutes < _TELLS * len(databases):
        print(f"under {_TELLS:.0f} minutes on each database the slopes are those of connections")
        grows = []
    for problem in (*wrong, *grows):
        print(f"does not hold: {problem}")
    sys.exit(1 if wrong or grows else 0)


if __name__ == "__main__":
    main()
