"""The terminal chat: lines in, answers out, through the whole pipeline."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from bot.domain.errors import DatabaseUnavailable
from bot.runs.shutdown import shut_down
from bot.wiring import Parts, Process, Settings, running, site, typed
from bot.wiring.signals import Stop, stop_signals
from storage.notify import READY
from storage.views import runs as run_views

PROMPT = "you> "
_HELLO = (
    "Talk to the agent; /help lists commands, Ctrl-D leaves.\n"
    "Everything you type is stored first: kill this at any time and start it again."
)
_LEAVING = "leaving; what is pending is answered at the next start (Ctrl-C again: at once)\n"


async def chat(settings: Settings, *, pages: bool = False) -> None:
    """Chat on standard input and output. With piped input: answer every line, wait for what
    is pending, return. With `pages` the same agent is met in a browser of this machine too.
    Raises ConfigurationError, DatabaseUnavailable."""
    interactive = sys.stdin is not None and sys.stdin.isatty()

    def answer(text: str) -> None:
        _show(f"\r{text}\n{PROMPT}" if interactive else f"{text}\n")

    parts = Parts(terminal=answer, pages=pages)
    with stop_signals() as stop:
        async with running(settings, parts=parts) as process, _served(process, settings) as page:
            stop.works(process)
            if page:
                sys.stderr.write(f"The same agent in a browser of this machine: {page}\n")
            if interactive:
                _show(f"{_HELLO}\n{PROMPT}")
            await _until_told(_talk(process, interactive=interactive), stop)
            process.send_followers_away()
            await shut_down(process.ctx, process.worker, settings.shutdown_grace)


@asynccontextmanager
async def _served(process: Process, settings: Settings) -> AsyncIterator[str]:
    """Serve what is beside the terminal, on loopback and at PORT or, if that is taken, anywhere:
    the address of its page, empty for none."""
    pages = [e.pages for e in process.endpoints.values() if e.pages is not None]
    if not pages:
        yield ""
        return
    from bot.http import build_app  # noqa: PLC0415 - a web server, only where one serves
    from bot.main import listen_on_loopback, listening  # noqa: PLC0415 - as above

    listener = listen_on_loopback(settings.port)
    host, port = listener.getsockname()[:2]
    async with listening(build_app(site(process)), listener) as server:
        yield f"http://{host}:{port}{pages[0].path}/"
        await server.close()


async def _until_told(talk: Coroutine[None, None, None], stop: Stop) -> None:
    """Talk until that ends by itself or a signal comes."""
    stopping = asyncio.create_task(stop.told.wait(), name="stopping")
    talking = asyncio.create_task(talk, name="talking")
    await asyncio.wait((stopping, talking), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if talking.done():
        talking.result()
        return
    sys.stderr.write(f"\n{_LEAVING}")
    talking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await talking


def _show(text: str) -> None:
    """Write to standard output. Raises OSError. No buffer is in between: what was written
    is out, and what a broken pipe refused is not tried again at the program's end."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    left = text.encode(sys.stdout.encoding or "utf-8", "replace")
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


async def _talk(process: Process, *, interactive: bool) -> None:
    """Record every line, then wait until all of them have their answer."""
    conversation = process.rt.clock.token()[:16]
    number = 0
    async for line in _lines():
        number += 1
        if line.strip():
            await _record(process, line, f"{conversation}-{number}")
            if not interactive:
                await _settled(process)
        elif interactive:
            _show(PROMPT)
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
    account, rt = process.terminal, process.rt
    pending = True
    while pending:
        with contextlib.suppress(DatabaseUnavailable):
            pending = await rt.db.read(run_views.pending_in_account, account)
        if pending:
            await rt.wakeups.wait(READY, 0.5)


async def _lines() -> AsyncIterator[str]:
    """Standard input, line by line, read in a thread that the process does not wait for."""
    if sys.stdin is None:
        return
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def hand(line: str | None) -> bool:
        try:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        except RuntimeError:  # the loop is closed: nobody listens any more
            return False
        return True

    reading = threading.Thread(target=_read, args=(hand,), name="stdin", daemon=True)
    reading.start()
    while (line := await lines.get()) is not None:
        yield line


def _read(hand: Callable[[str | None], bool]) -> None:
    """Hand over the lines of standard input and at its end None. Past Python's own reader:
    a thread that waits in that one keeps the interpreter from ending."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    held = ""
    while chunk := _chunk():
        *lines, held = (held + decoder.decode(chunk)).split("\n")
        for line in lines:
            if not hand(line.rstrip("\r")):
                return
    held += decoder.decode(b"", final=True)
    if held:
        hand(held)
    hand(None)


def _chunk() -> bytes:
    """Bytes that can be read now; none at the end of the input, or when it is gone."""
    try:
        return os.read(0, 65_536)
    except OSError:
        return b""
