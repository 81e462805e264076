"""`python -m benchmarks`: load on this machine, one figure a line. Nothing leaves 127.0.0.1."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal

from benchmarks import pipeline, takeover, webhooks
from benchmarks.figures import show
from tests.servers import Postgres, Valkey

PARTS = ("webhooks", "pipeline", "wakeups", "takeover")


async def run(parts: set[str], messages: int) -> None:
    """Measure these parts, with so many messages where many are needed."""
    show("machine", f"{os.cpu_count()} cores, Python {platform.python_version()}")
    with Postgres(durable=True) as postgres, Valkey() as valkey:
        databases = (("SQLite", None), ("PostgreSQL", postgres))
        if "webhooks" in parts:
            for name, server in databases:
                await webhooks.measure(name, server, messages)
        if "pipeline" in parts:
            for name, server in databases:
                await pipeline.measure(name, server, messages)
        if "wakeups" in parts:
            await takeover.wake_ups(postgres, valkey, 40)
            await takeover.wake_ups(postgres, None, 15)
        if "takeover" in parts:
            await takeover.after(postgres, signal.SIGTERM)
            await takeover.after(postgres, signal.SIGKILL)
            short = {"LEASE_SECONDS": "3", "HEARTBEAT_SECONDS": "1"}
            await takeover.after(postgres, signal.SIGKILL, **short)


def main() -> None:
    """Read the options and run."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--messages", type=int, default=2000, help="per load test")
    options.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    asked = options.parse_args()
    asyncio.run(run(set(asked.only), asked.messages))


if __name__ == "__main__":
    main()
