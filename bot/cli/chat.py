"""The terminal chat: lines in, answers out, through the whole pipeline."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Callable

from bot.domain.errors import DatabaseUnavailable
from bot.flows.handover import hand_over
from bot.wiring import Parts, Process, Settings, running, typed
from bot.wiring.signals import stop_signals
from storage import report
from storage.wakeup import READY

PROMPT = "you> "
_HELLO = (
    "Talk to the agent; /help lists commands, Ctrl-D leaves.\n"
    "Everything you type is stored first: kill this at any time and start it again."
)


async def chat(settings: Settings) -> None:
    """Chat on standard input and output. With piped input: answer every line, wait for what
    is pending, return. Raises ConfigurationError, DatabaseUnavailable."""
    interactive = sys.stdin.isatty()
    parts = Parts(terminal=_terminal(interactive=interactive))
    async with running(settings, parts=parts) as process:
        if interactive:
            sys.stdout.write(f"{_HELLO}\n{PROMPT}")
            sys.stdout.flush()
        with stop_signals(process) as stop:
            stopping = asyncio.create_task(stop.wait(), name="stopping")
            talking = asyncio.create_task(_talk(process, interactive=interactive), name="talking")
            await asyncio.wait((stopping, talking), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            talking.cancel()
            await hand_over(process.desk, process.worker, settings.shutdown_grace)
        if not talking.cancelled() and talking.done():
            with contextlib.suppress(asyncio.CancelledError):
                talking.result()


def _terminal(*, interactive: bool) -> Callable[[str], None]:
    """What puts an answer before the person; raises OSError when nobody can see it."""

    def write(text: str) -> None:
        sys.stdout.write(f"\r{text}\n{PROMPT}" if interactive else f"{text}\n")
        sys.stdout.flush()

    return write


async def _talk(process: Process, *, interactive: bool) -> None:
    """Record every line, then wait until all of them have their answer."""
    conversation = process.rt.clock.token()
    number = 0
    async for line in _lines():
        number += 1
        if line.strip():
            await _record(process, line, f"{conversation}-{number}")
            if not interactive:
                await _settled(process)
        elif interactive:
            sys.stdout.write(PROMPT)
            sys.stdout.flush()
    await _settled(process)


async def _record(process: Process, line: str, number: str) -> None:
    """Store a line, however long the database is away: a terminal does not send again."""
    while True:
        try:
            await typed(process, line, number)
        except DatabaseUnavailable as error:
            sys.stderr.write(f"{error}; trying again\n")
            await process.rt.clock.sleep(1.0)
        else:
            return


async def _settled(process: Process) -> None:
    """Wait until nothing of the terminal's chat is pending."""
    account = process.ids["console"]
    while True:
        async with process.rt.wakeups.expecting(READY) as told:
            if not await process.rt.db.read(report.pending_in_account, account):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await told.wait()


async def _lines() -> AsyncIterator[str]:
    """Standard input, line by line, read in a thread that the process does not wait for."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\r\n"))
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line
