"""Give every door and parser generated inputs: `make fuzz ARGS='--inputs 1000000 --seed 7'`.

Two processes or as many as there are processors, half of them on PostgreSQL. `--only NAME` keeps to
the targets whose name contains it. Ends with 1 when anything was found.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from random import SystemRandom

from tests.fuzz.million import dumped, loaded, report, run, together


def main() -> int:
    """Begin the processes, and tell what they found; or be one of them."""
    asked = _asked()
    logging.getLogger().addHandler(logging.NullHandler())
    if asked.part is not None:
        kind = "postgresql" if asked.part % 2 else "sqlite"
        bench = run(asked.inputs, asked.seed, kind, asked.part, asked.parts, asked.only)
        sys.stdout.write(dumped(bench))
        return 0
    began = time.monotonic()
    print(f"seed {asked.seed}", flush=True)
    words = [sys.executable, "-m", "tests.fuzz", "--inputs", str(asked.inputs)]
    words += ["--seed", str(asked.seed), "--parts", str(asked.parts), f"--only={asked.only}"]
    begun = [
        subprocess.Popen([*words, "--part", str(part)], stdout=subprocess.PIPE, text=True)
        for part in range(asked.parts)
    ]
    told = [process.communicate()[0] for process in begun]
    broke = [process.returncode for process in begun if process.returncode]
    benches = [loaded(one) for one in told if one]
    whole = together(benches, asked.seed)
    report(whole)
    for bench in benches:
        print("in memory after each round, MB:", *(f"{size / 1e6:.0f}" for size in bench.resident))
    print(f"{time.monotonic() - began:.0f} s, {len(broke)} of {asked.parts} processes broke off")
    return 1 if whole.findings or broke else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--parts", type=int, default=max(2, os.cpu_count() or 2))
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", metavar="NAME")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
