"""A fake in its own process, for as long as somebody wants it."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable

from tests.fakes.server import FakeProvider


def main(make: Callable[[int], FakeProvider]) -> None:
    """Serve on `--port` (0: any), print the URL, and stop at SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=make.__doc__)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(make, parser.parse_args().port))


async def _serve(make: Callable[[int], FakeProvider], port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with make(port) as fake:
        print(fake.url, flush=True)
        await stop.wait()
