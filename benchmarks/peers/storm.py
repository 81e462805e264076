"""`make prove-peers`: Answerback's storm for the bots of other libraries, and one table of all.

One seed for all of them: the same people say the same, on Telegram alone, and the same befalls the
processes and Telegram. A whole run, two thirds of an hour, writes its table into docs/proof.md: a
contestant takes its minutes, and some more until nobody sends anything any more.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.contestants import Arq, Dbos, Naive, Ours, Peer, Taskiq
from benchmarks.proof import report
from benchmarks.proof.disks import own_mounts
from benchmarks.proof.grounds import Database, storm_on
from benchmarks.proof.judge import UNCERTAIN, Outcome, Wrong
from benchmarks.proof.plan import Kind, Load, draw
from benchmarks.proof.storm import Found
from benchmarks.report import progress

MINUTES = 6.0
_SECTION = "the same storm by others"
_FAULTS_OF_PROCESSES = (Kind.KILL, Kind.FREEZE, Kind.RESTART, Kind.HAND_OVER)


@dataclass(frozen=True, slots=True)
class Terms:
    """The promises of its documentation on a message, and the settings that were not tried."""

    loses: str
    doubles: str
    order: str
    source: str
    untried: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One who goes through the storm."""

    enter: type[Peer | Ours]
    terms: Terms


ENTRIES: Mapping[str, Entry] = {
    "ours": Entry(
        Ours,
        Terms(
            "every message that was taken is answered, or the person is told",
            "a send whose outcome is unknown is not repeated unasked",
            "within a chat",
            "[guarantees](guarantees.md)",
        ),
    ),
    "naive": Entry(
        Naive,
        Terms(
            "nothing: updates wait in memory, network errors are for each bot to deal with",
            "repeats no call by itself but behind a 429",
            "none with `concurrent_updates`; without, one update at a time for all chats",
            "its wiki on [network errors](https://github.com/python-telegram-bot/python-telegram-bot"
            "/wiki/Handling-network-errors) and [flood limits](https://github.com/python-telegram-bot"
            "/python-telegram-bot/wiki/Avoiding-flood-limits), its updater",
            "an own `BaseUpdateProcessor` for order within a chat; sends that are repeated",
        ),
    ),
    "arq": Entry(
        Arq,
        Terms(
            "a job stays in Redis until it succeeded or failed",
            "jobs may run more than once: they should bear that",
            "none",
            "[its page](https://arq-docs.helpmanual.io/): the warning on pessimistic execution",
            "a lock for each chat; a record of what was sent",
        ),
    ),
    "taskiq": Entry(
        Taskiq,
        Terms(
            "a message of the stream that nobody acknowledged is taken by another worker",
            "does not look whether a task's id comes twice",
            "none",
            "[acknowledgements](https://taskiq-python.github.io/guide/cli.html), its broker's code",
            "RabbitMQ or NATS as broker; a source of schedules for late retries",
        ),
    ),
    "dbos": Entry(
        Dbos,
        Terms(
            "a workflow always runs to its end, once its executor is back",
            "a workflow once for its id; a step at least once",
            "one workflow at a time of a partition, first in, first out",
            "[recovery](https://docs.dbos.dev/production/workflow-recovery), "
            "[queues](https://docs.dbos.dev/python/tutorials/queue-tutorial)",
            "Conductor, which gives a dead executor's workflows to others",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one contestant."""

    name: str
    messages: int
    kills: int
    others: int
    """Other misfortunes of its processes: frozen, told to stop, handed over."""
    outcomes: Mapping[Outcome, int]
    wrongs: Mapping[Wrong, int]

    @staticmethod
    def of(name: str, found: Found) -> Line:
        """The figures of a storm."""
        verdict, befell = found.verdict, found.befell
        return Line(
            name,
            verdict.messages,
            befell[Kind.KILL],
            sum(befell[kind] for kind in _FAULTS_OF_PROCESSES) - befell[Kind.KILL],
            dict(verdict.outcomes),
            Counter(one.wrong for one in verdict.findings),
        )

    @property
    def cells(self) -> Sequence[str]:
        """The row of the table."""
        uncertain = sum(self._of(one) for one in UNCERTAIN)
        counts = [self.messages, self.kills, self.others]
        counts += [self.wrongs.get(w, 0) for w in (Wrong.LOST, Wrong.DOUBLED, Wrong.ORDER)]
        counts += [uncertain, self._of(Outcome.NEEDLESS), self._of(Outcome.IN_VAIN)]
        return [self.name, *(f"{count:,}" for count in counts)]

    def _of(self, outcome: Outcome) -> int:
        return self.outcomes.get(outcome, 0)


HEADS = (
    *("", "messages", "killed (-9)", "frozen, stopped, handed over", "lost", "doubled"),
    *("out of order", "uncertain, and said so", "apologised without need", "agent failed, told"),
)


async def measure(entry: Entry, seed: int, minutes: float, load: Load) -> Line:
    """One storm."""
    enter = entry.enter
    plan = draw(seed, 60 * minutes, enter.platforms, enter.kinds, load)
    progress(f"{enter.name}: {len(plan.sayings):,} messages, {plan.of(Kind.KILL)} kills")
    redis = enter.durable_redis
    async with storm_on(Database.POSTGRESQL, plan, enter, durable_redis=redis) as storm:
        line = Line.of(enter.name, await storm.rage())
    progress(", ".join(f"{h or 'of'} {c}" for h, c in zip(HEADS, line.cells, strict=True)))
    return line


def table(lines: Sequence[Line]) -> str:
    """The figures, for people and for the page."""
    rows = [HEADS, ("---", *("--:" for _ in HEADS[1:])), *(line.cells for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def promises(entries: Sequence[Entry]) -> str:
    """The promises of each, as a table."""
    heads = ("", "of losing", "of doubling", "of order", "where it says so", "not tried")
    rows = [heads, tuple("---" for _ in heads)]
    for entry in entries:
        terms = entry.terms
        said = (terms.loses, terms.doubles, terms.order, terms.source, terms.untried)
        rows.append((entry.enter.name, *said))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Read the options, let it storm on each, tell."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.storm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--minutes", type=float, default=MINUTES, help="of storm for each")
    options.add_argument("--seed", type=int, default=3)
    options.add_argument("--rate", type=float, default=Load().rate, help="messages a second")
    options.add_argument("--page", action="store_true", help="write the page in any case")
    options.add_argument("--only", choices=[*ENTRIES], nargs="+", default=[*ENTRIES])
    asked = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # What runs is ended, then we.
    own_mounts()
    chosen = [ENTRIES[name] for name in asked.only]

    async def all_of_them() -> Sequence[Line]:
        load = Load(rate=asked.rate)
        return [await measure(entry, asked.seed, asked.minutes, load) for entry in chosen]

    figures = table(asyncio.run(all_of_them()))
    told = f"Seed {asked.seed}, {asked.minutes:g} minutes of storm for each, {report.where()}."
    print(f"{told}\n\n{figures}")
    if asked.page or (asked.only == [*ENTRIES] and asked.minutes >= MINUTES):
        report.write(_SECTION, f"{told}\n\n{figures}\n\n{promises(chosen)}")


if __name__ == "__main__":
    main()
