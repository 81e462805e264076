"""`python -m benchmarks`: every figure beside its floor or its limit, in one table.

Nothing leaves 127.0.0.1. A whole run takes about half an hour and writes docs/benchmarks.md with
its plots; `--quick` is a short form of it that writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks import pipeline, report
from benchmarks.report import Figures
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.stage import Servers, servers

Part = Callable[[Servers, Scale], Awaitable[Figures]]
PARTS: dict[str, Part] = {
    "pipeline": pipeline.pipeline,
    "latency": pipeline.latency,
    "agents_200ms": pipeline.agents,
}


async def measure(parts: Sequence[str], scale: Scale) -> Figures:
    """Measure these parts, one after the other."""
    found: Figures = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "command": f"make bench ARGS='{' '.join(sys.argv[1:])}'" if sys.argv[1:] else "make bench",
    }
    with servers() as both:
        for part in parts:
            found[part] = await PARTS[part](both, scale)
    return found


def main() -> None:
    """Read the options, measure, and tell."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--quick", action="store_true", help="a short form, under two minutes")
    options.add_argument("--only", choices=list(PARTS), nargs="+", default=list(PARTS))
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options.add_argument("--load", type=Path, metavar="FILE", help="take them from there instead")
    asked = options.parse_args()
    if asked.load:
        figures = json.loads(asked.load.read_text())
    else:
        figures = asyncio.run(measure(asked.only, QUICK if asked.quick else FULL))
    report.table(figures)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
