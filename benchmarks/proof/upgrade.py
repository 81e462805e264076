"""`make bench-upgrade`: upgrades one process at a time, and the way back, under load.

Processes of the last release are killed, stopped and handed over, and those of this version come in
their places; then the other way round, again and again, so that both work on one PostgreSQL most of
the time. The same plan without an upgrade stands beside it: what people wait longer, the upgrade
costs. With `--contestant benchmarks.proof.upgrade:Upgraded`, `make prove` lets everything else go
wrong at the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.job import quantile
from benchmarks.proof.contestant import Start
from benchmarks.proof.grounds import Database, storm_on
from benchmarks.proof.judge import Claim, Outcome, Wrong
from benchmarks.proof.ours import Answerback
from benchmarks.proof.plan import Kind, Load, draw
from benchmarks.proof.storm import Found
from benchmarks.report import show
from bot.version import our_version
from tests.releases import last_release

_STARTS = 9
"""Until the next upgrade or way back begins: each place is met three times, as a rule."""
_PER_MINUTE = {Kind.KILL: 6.0, Kind.RESTART: 4.0, Kind.HAND_OVER: 8.0}
_WAITED = """SELECT min(o.sent_at) - min(i.received_at)
    FROM outbox o JOIN inbound i ON i.run = o.run
    WHERE o.kind = 'reply' AND o.sent_at IS NOT NULL GROUP BY o.run"""


@dataclass
class Timed(Answerback):
    """Answerback, and the seconds that its people waited for their answers."""

    waited: list[float] = field(default_factory=list)

    async def claims(self) -> Mapping[str, Claim]:
        self.waited = sorted(seconds for [seconds] in await self._surely(_WAITED))
        half, most = quantile(self.waited, 0.5), quantile(self.waited, 0.99)
        self.notes.append(f"answers came after {half:.2f} s (p50), {most:.2f} s (p99)")
        return await super().claims()


@dataclass
class Upgraded(Timed):
    """Answerback while it is upgraded from the last release and put back, over and over."""

    starts: Counter[str] = field(default_factory=Counter)

    def start(self, place: int, port: int) -> Start:
        begun = self.starts.total()
        start = super().start(place, port)
        if (begun - self.places) // _STARTS % 2 == 0 and begun >= self.places:
            self.starts[our_version()] += 1
            return start
        release = last_release()
        self.starts[release.version] += 1
        path = os.pathsep.join([str(release.code()), start.environment["PYTHONPATH"]])
        return Start(start.command, {**start.environment, "PYTHONPATH": path})

    async def claims(self) -> Mapping[str, Claim]:
        claims = await super().claims()
        told = ", ".join(f"{times} of {version}" for version, times in sorted(self.starts.items()))
        self.notes.append(f"processes started: {told}")
        return claims


async def _storm(seed: int, minutes: float, load: Load, enter: type[Timed]) -> Found:
    plan = draw(seed, 60 * minutes, enter.platforms, _PER_MINUTE, load)
    async with storm_on(Database.POSTGRESQL, plan, enter) as storm:
        return await storm.rage()


def _tell(name: str, found: Found) -> bool:
    """Print it; True if nothing is wrong."""
    verdict = found.verdict
    show(name, f"{verdict.messages:,} messages, {found.record.starts} processes")
    for kind in _PER_MINUTE:
        show(f"  {kind.value}", str(found.befell[kind]))
    for wrong in Wrong:
        show(f"  {wrong}", str(verdict.wrong(wrong)))
    show("  uncertain", str(verdict.uncertain))
    show("  apologised without need", str(verdict.outcomes[Outcome.NEEDLESS]))
    show("  ended by themselves", str(len(found.record.last_words)))
    for note in found.notes:
        print(f"  {note}")
    for finding in verdict.findings:
        print(f"  {finding.wrong}: {finding.name}: {finding.why}")
    return not verdict.findings


def main() -> None:
    """Read the options, upgrade and go back, tell; exit code 1 when anything is wrong."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.proof.upgrade",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    options.add_argument("--rate", type=float, default=12.0, help="messages a second")
    asked = options.parse_args()
    last_release().code()
    show("seed", str(asked.seed))
    well = True
    for name, enter in (("one version", Timed), ("two versions", Upgraded)):
        found = asyncio.run(_storm(asked.seed, asked.minutes, Load(rate=asked.rate), enter))
        well = _tell(name, found) and well
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
