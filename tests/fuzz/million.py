"""All targets, as one process gives them their inputs, and what the processes say together."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from storage.schema.migrate import upgrade
from tests.fuzz.engine import Bench, Finding, Tally, Target
from tests.fuzz.targets import configuration, described, outgoing, parsers, rendering, routes
from tests.servers import Postgres, memory_disk

SHARES = 1_227
"""The shares of all targets together."""
BATCH = 200
"""Inputs of a target between two looks at the clock of whoever watches."""
_ROUND = 20_000
"""Inputs of all targets on one database: then it is thrown away, for its size."""
_HANGS_AFTER = 600.0
"""Seconds; a batch that takes longer is told with the place where it stands, and ends all."""


class Databases:
    """Empty migrated databases of one kind, one after the other."""

    def __init__(self, kind: str, folder: Path, stack: ExitStack) -> None:
        self.template = folder / "template.db"
        upgrade(f"sqlite:///{self.template}")
        self._folder = folder
        self._server = stack.enter_context(Postgres()) if kind == "postgresql" else None
        if self._server is not None:
            upgrade(self._server.copy("template1", "migrated"))

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The address of one, while the body runs."""
        if self._server is not None:
            yield self._server.copy("migrated", "fuzzed")
            self._server.drop("fuzzed")
            return
        with TemporaryDirectory(dir=self._folder) as place:
            file = Path(place) / "answerback.db"
            shutil.copyfile(self.template, file)
            yield f"sqlite:///{file}"


def run(inputs: int, seed: int, kind: str, part: int, parts: int, only: str = "") -> Bench:
    """Give all targets whose name contains `only` this part of so many inputs."""
    bench = Bench(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(dir=memory_disk())))
        databases = Databases(kind, folder, stack)
        gc.collect()
        gc.freeze()  # What is imported stays, and need not be looked through again and again.
        alone(bench, folder, databases.template, inputs, (part, parts), only)
        left: dict[str, range] = {}
        while True:
            with databases.empty() as url:
                run_routes(bench, url, inputs, (part, parts), only, left)
            bench.resident.append(resident())
            if not any(map(len, left.values())):
                break
    return bench


_ALL = 0, 1
"""All inputs: the first part of one."""


def alone(
    bench: Bench,
    folder: Path,
    template: Path,
    inputs: int,
    mine: tuple[int, int] = _ALL,
    only: str = "",
) -> set[str]:
    """Give their inputs to the targets that need no process; returns their names. `folder` is for
    their files, `template` a database at the newest schema."""
    place = folder / "configuration"
    place.mkdir()
    targets = [
        *parsers.targets(),
        *outgoing.targets(),
        *rendering.targets(),
        *configuration.targets(place, template),
    ]
    targets = [target for target in targets if only in target.name]

    async def each() -> None:
        for target in targets:
            numbers = _numbers(target, inputs, *mine)
            for at in range(0, len(numbers), BATCH):
                await _watched(bench, target, numbers[at : at + BATCH])

    asyncio.run(each())
    return {target.name for target in targets}


def run_routes(
    bench: Bench,
    url: str,
    inputs: int,
    mine: tuple[int, int] = _ALL,
    only: str = "",
    left: dict[str, range] | None = None,
) -> set[str]:
    """Give a round of inputs to the routes of a process on this database, which is empty; returns
    their names. `left` are the numbers that are still to come, by target."""
    waiting = {} if left is None else left

    async def each() -> set[str]:
        async with routes.staged(url) as stage:
            found = [*routes.targets(stage), *described.targets(stage)]
            targets = [target for target in found if only in target.name]
            for target in targets:
                waiting.setdefault(target.name, _numbers(target, inputs, *mine))
            done = 0
            while done < _ROUND and any(map(len, waiting.values())):
                for target in targets:
                    numbers = waiting[target.name]
                    waiting[target.name] = numbers[BATCH:]
                    done += len(numbers[:BATCH])
                    await _watched(bench, target, numbers[:BATCH])
            return {target.name for target in targets}

    return asyncio.run(each())


def _numbers(target: Target, inputs: int, part: int, parts: int) -> range:
    return range(part, inputs * target.share // SHARES, parts)


async def _watched(bench: Bench, target: Target, numbers: range) -> None:
    faulthandler.dump_traceback_later(_HANGS_AFTER, exit=True)
    await bench.run(target, numbers)
    faulthandler.cancel_dump_traceback_later()


def resident() -> int:
    """The bytes of this process that are in memory, after the garbage is gone; 0 where nobody
    tells."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def dumped(bench: Bench) -> str:
    """The findings and figures of a process, for the one that began it."""
    return json.dumps(
        {
            "seed": bench.seed,
            "tallies": {name: vars(tally) for name, tally in bench.tallies.items()},
            "findings": [vars(finding) for finding in bench.findings],
            "resident": bench.resident,
        }
    )


def loaded(told: str) -> Bench:
    """The same, read."""
    value: dict[str, Any] = json.loads(told)
    tallies = {
        name: Tally(**{**tally, "became": Counter(tally["became"])})
        for name, tally in value["tallies"].items()
    }
    return Bench(
        value["seed"], tallies, [Finding(**f) for f in value["findings"]], value["resident"]
    )


def together(benches: Sequence[Bench], seed: int) -> Bench:
    """The findings and figures of several processes."""
    whole = Bench(seed)
    for bench in benches:
        for name, tally in bench.tallies.items():
            whole.tallies.setdefault(name, Tally()).add(tally)
        whole.findings += bench.findings
    return whole


def report(bench: Bench, write: Any = sys.stdout.write) -> None:
    """A line for each target, and every cause once."""
    row = "{:32} {:>9} {:>9} {:>9} {:>8}  {}\n"
    write(row.format("", "inputs", "mean ms", "most ms", "most MB", "what became of them"))
    for name, tally in bench.tallies.items():
        became = ", ".join(f"{n} {what}" for what, n in tally.became.most_common(5))
        mean = 1000 * tally.seconds / max(1, tally.inputs)
        most, heavy = f"{1000 * tally.slowest:.0f}", f"{tally.heaviest / 1e6:.1f}"
        write(row.format(name, tally.inputs, f"{mean:.2f}", most, heavy, became))
    total = sum(tally.inputs for tally in bench.tallies.values())
    write(f"\n{total} inputs, seed {bench.seed}, {len(bench.findings)} findings\n")
    seen: set[tuple[str, str]] = set()
    for finding in bench.findings:
        cause = (
            finding.target,
            finding.trace.strip().splitlines()[-1] if finding.trace else finding.what,
        )
        if cause not in seen:
            seen.add(cause)
            write(
                f"\n{finding.target}, input {finding.number}: {finding.what}\n  {finding.given}\n"
            )
            write("".join(f"  | {line}\n" for line in finding.trace.splitlines()[-14:]))
