"""`make prove`: load on every platform while processes are killed and everything else goes wrong.

54 minutes of storm, half on PostgreSQL and half on SQLite, and a few until all is settled. Nothing
leaves 127.0.0.1. The seed repeats the plan: who writes what, and what befalls whom and when. The
exit code is 1 if anything was lost, doubled, swapped, or anybody misled. A whole run writes its
table into docs/proof.md.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module

from benchmarks.proof import report
from benchmarks.proof.contestant import Contestant
from benchmarks.proof.disks import own_mounts
from benchmarks.proof.grounds import Database, storm_on
from benchmarks.proof.plan import Kind, Load, draw
from benchmarks.proof.storm import Found, Storm
from benchmarks.report import progress

MINUTES = 54.0
_TELLS_EVERY = 20.0


async def prove(
    enter: type[Contestant], seed: int, minutes: float, databases: Sequence[Database], load: Load
) -> Mapping[str, Found]:
    """One storm on each of these databases, one after the other."""
    found = {}
    for database in databases:
        seconds = 60 * minutes / len(databases)
        plan = draw(seed, seconds, enter.platforms, load=load)
        kills = plan.of(Kind.KILL)
        progress(f"{database}, seed {seed}: {len(plan.sayings):,} messages, {kills} kills")
        async with storm_on(database, plan, enter) as storm:
            telling = asyncio.create_task(_tell(storm))
            try:
                found[database.value] = await storm.rage()
            finally:
                telling.cancel()
    return found


async def _tell(storm: Storm) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(_TELLS_EVERY)
        befell = storm.found.befell
        others = befell.total() - befell[Kind.KILL]
        at = time.monotonic() - began
        progress(f"{at:5.0f} s: {befell[Kind.KILL]} kills, {others} other misfortunes")


def contestant(name: str) -> type[Contestant]:
    """The class `module:Name`. Raises ImportError."""
    module, _, wanted = name.partition(":")
    found: type[Contestant] = getattr(import_module(module), wanted)
    return found


def main() -> None:
    """Read the options, let it storm, tell."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--minutes", type=float, default=MINUTES, help="of storm, in all")
    options.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    options.add_argument("--only", type=Database, choices=[*Database], help="this database alone")
    options.add_argument("--rate", type=float, default=8.0, help="messages a second")
    options.add_argument("--contestant", default="benchmarks.proof.ours:Answerback")
    options.add_argument("--page", action="store_true", help="write the page in any case")
    asked = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # What runs is ended, then we.
    if not own_mounts():
        progress("nothing can be mounted here: a full disk is played by limits and read-only")
    databases = [asked.only] if asked.only else [*Database]
    load, enter = Load(rate=asked.rate), contestant(asked.contestant)
    found = asyncio.run(prove(enter, asked.seed, asked.minutes, databases, load))
    whole = asked.minutes >= MINUTES and not asked.only
    told = f"seed {asked.seed}, {asked.minutes:g} minutes of storm, {report.where()}"
    print(f"{told}\n\n{report.printed(found)}")
    problems = report.holds(found, whole=whole)
    for database, one in found.items():
        for finding in one.verdict.findings:
            print(f"  {database}: {finding.wrong}: {finding.name}: {finding.why}")
        for story in one.stories:
            print(f"  {database}: {story}")
        for words, times in Counter(one.record.last_words).items():
            print(f"  {database}: ended by itself, {times} times: {words}")
        for note in one.notes:
            print(f"  {database}: {note}")
    for problem in problems:
        print(f"does not hold: {problem}")
    if whole or asked.page:
        report.write("the storm", f"{told[:1].upper()}{told[1:]}.\n\n{report.markdown(found)}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
