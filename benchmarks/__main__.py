"""`python -m benchmarks`: every figure beside its floor or its limit, in one table.

Nothing leaves 127.0.0.1. A whole run takes about half an hour and writes docs/benchmarks.md with
its plots; `--quick` is a short form of it that writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import uvloop

from benchmarks import (
    backlog,
    commands,
    doorway,
    flat,
    life,
    operator,
    pages,
    pipeline,
    plot,
    report,
    turns,
)
from benchmarks.report import Figures
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.stage import Servers, servers

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PICTURE = PAGE.with_suffix(".svg")
Part = Callable[[Servers, Scale], Awaitable[Figures]]
PARTS: dict[str, Part] = {
    "pipeline": pipeline.pipeline,
    "latency": pipeline.latency,
    "agents_200ms": pipeline.agents,
    "doorway": doorway.doorway,
    "backlog": backlog.backlog,
    "flat": flat.flat,
    "turns": turns.turns,
    "pages": pages.pages,
    "operator": operator.operator,
    "start": life.start,
    "commands": commands.commands,
    "takeover": life.takeover,
}


async def measure(parts: Sequence[str], scale: Scale) -> Figures:
    """Measure these parts, one after the other."""
    found: Figures = {"machine": f"{os.cpu_count()} cores, Python {platform.python_version()}"}
    with servers() as both:
        for part in parts:
            found[part] = await PARTS[part](both, scale)
    return found


def main() -> None:
    """Read the options, measure, and tell."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--quick", action="store_true", help="a short form, under two minutes")
    options.add_argument("--only", choices=list(PARTS), nargs="+", default=[], help="these parts")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options.add_argument("--load", type=Path, metavar="FILE", help="take them from there instead")
    options.add_argument("--page", action="store_true", help="write the page in any case")
    asked = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # What runs is ended, then we.
    if asked.load:
        figures = json.loads(asked.load.read_text())
    else:
        scale = QUICK if asked.quick else FULL
        figures = uvloop.run(measure(asked.only or [*PARTS], scale))
        words = [*(["--quick"] if asked.quick else []), *(asked.only and ["--only", *asked.only])]
        figures["command"] = "make bench" + (f" ARGS='{' '.join(words)}'" if words else "")
    report.table(figures)
    if asked.page or not (asked.quick or asked.load or asked.only):
        PICTURE.write_text(plot.plot(figures))
        PAGE.write_text(report.page(figures, PICTURE.name))
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
