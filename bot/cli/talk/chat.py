"""The terminal chat: lines in, answers out, through the whole pipeline."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from bot.cli.session import program
from bot.cli.talk.terminal import Terminal, terminal
from bot.cli.talk.work import WorkFollower
from bot.domain.errors import DatabaseUnavailable
from bot.runs.shutdown import shut_down
from bot.supervisor import beside
from bot.wiring import Parts, Process, Settings, at_the_terminal, running, site, typed
from bot.wiring.about import about
from bot.wiring.signals import Stop, stop_signals
from storage import holders
from storage.notify import READY
from storage.views import runs as run_views

_LEAVING = "leaving; what is pending is answered at the next start (Ctrl-C again: at once)\n"


async def chat(settings: Settings, *, pages: bool = False) -> None:
    """Chat on standard input and output. If input is piped, answer every line, wait for pending
    answers, and return. With `pages`, a browser of this machine can talk to the same agent too.
    Raises ConfigurationError, DatabaseUnavailable."""
    settings = at_the_terminal(settings)
    shown = terminal()
    talk = _Talk(shown)
    # A run that the start recovers is shown below the welcome, with its question; it is not also
    # logged above it.
    recovering = logging.getLogger("answerback.recover")
    recovering.setLevel(logging.ERROR)
    with stop_signals() as stop, _told_of_logs(shown):
        async with (
            running(settings, parts=Parts(terminal=talk.answer, pages=pages)) as process,
            _served(process, settings) as page,
        ):
            stop.works(process)
            talk.begin(process, [*_pages(page), *await others(process)])
            recovering.setLevel(logging.NOTSET)
            async with beside("progress", talk.follower.follow()):
                await _until_told(talk.take_lines(), stop, shown)
                process.send_followers_away()
                await shut_down(process.ctx, process.worker, settings.shutdown_grace)


class _Disturbing(logging.Handler):
    """Tells a terminal that a line of the log was written between its own lines."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        self._terminal.disturbed()


@contextmanager
def _told_of_logs(terminal: Terminal) -> Iterator[None]:
    handler = _Disturbing(terminal)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def hints(settings: Settings, pid: int, called: str) -> Sequence[str]:
    """The commands worth knowing, for the lines above the first prompt. `pid` is the process, and
    `called` is the command by which it was started."""
    commands = "/help lists commands, Ctrl-D leaves."
    kill, seconds = f"kill -9 {pid}", f"{settings.demo_seconds:g} s"
    if settings.agent != "demo":
        return [f"Everything you type is stored first: {kill}, and start it again.", commands]
    return [
        f"This agent works {seconds} on a message, in three steps; the second costs money.",
        f"Write something, and meanwhile in another terminal: {kill}",
        "Then start it again: the answer comes, and nothing is paid for twice.",
        f"To see all of that done and told: {called} demo kill",
        commands,
    ]


def _pages(page: str) -> Sequence[str]:
    return [f"The same agent in a browser of this machine: {page}"] if page else []


async def others(process: Process) -> Sequence[str]:
    """A warning if other processes may answer what is typed here: a chat in another window has its
    own agent, and shows the answers there. Empty if there are none. Raises DatabaseUnavailable."""
    lease = process.lease
    found = await process.rt.db.read(holders.living_beside, lease.terms.seconds, lease.name)
    if not found:
        return []
    pids = ", ".join(str(other.pid) for other in found)
    return [
        f"This database is in use by another process too ({pids}). If that is a chat,",
        "an answer may come there, and from its agent: end it first.",
    ]


@asynccontextmanager
async def _served(process: Process, settings: Settings) -> AsyncIterator[str]:
    """Serve the page beside the terminal, on loopback: at PORT, or if that is taken at any free
    port. Yields the page's address; empty if there is no page."""
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


async def _until_told(talk: Coroutine[None, None, None], stop: Stop, shown: Terminal) -> None:
    """Run the conversation until it ends by itself or a signal comes."""
    stopping = asyncio.create_task(stop.told.wait(), name="stopping")
    talking = asyncio.create_task(talk, name="talking")
    await asyncio.wait((stopping, talking), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if talking.done():
        talking.result()
        return
    shown.disturbed()
    sys.stderr.write(f"\n{_LEAVING}")
    talking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await talking


class _Talk:
    """The conversation at a terminal: lines in, answers out, once it has begun."""

    process: Process
    follower: WorkFollower

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._begun = asyncio.Event()

    def begin(self, process: Process, notes: Sequence[str]) -> None:
        """Welcome the person, with these notes. No answer is shown before that."""
        self.process = process
        self._conversation = process.rt.clock.token()[:16]
        self.follower = WorkFollower(process, self._terminal, self._conversation)
        runs = [about(process), *notes]
        with contextlib.suppress(OSError):
            self._terminal.welcome(runs, hints(process.settings, os.getpid(), program()))
        self._begun.set()

    async def answer(self, text: str, number: str) -> None:
        """Show an answer to the line of this number. Raises OSError."""
        await self._begun.wait()
        await self.follower.answer(text, number)

    async def take_lines(self) -> None:
        """Record every line, then wait until all of them have their answer."""
        number = 0
        async for line in _lines():
            number += 1
            with contextlib.suppress(OSError):
                self._terminal.entered()
            if line.strip():
                await _record(self.process, line, f"{self._conversation}-{number}")
                if not self._terminal.lasting:
                    await _settled(self.process)
        with contextlib.suppress(OSError):
            self._terminal.left()
        await _settled(self.process)


async def _record(process: Process, line: str, number: str) -> None:
    """Store a line. While the database is away, try again: unlike a platform, a terminal does not
    deliver a line a second time."""
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
    """The lines of standard input. They are read in a thread for which the process does not wait
    at its end."""
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
    """Hand over the lines of standard input, and None at its end. It is read without Python's
    buffered reader: a thread blocked in that keeps the interpreter from ending."""
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
    """The next bytes of the input; empty at its end, or if it is gone. Blocks."""
    try:
        return os.read(0, 65_536)
    except OSError:
        return b""
