"""Places in which a process of the contestant lives, dies and lives again, as under systemd."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from benchmarks.proof.contestant import Contestant, Held
from benchmarks.stage import spawn
from tests.ports import own_port

_AGAIN = 0.3
"""Seconds until a process that ended by itself is started again."""
_READY_WITHIN = 30.0
_LEAVES_WITHIN = 30.0


@dataclass
class Living:
    """One process. `asked_to_end` says that its end is of our making."""

    process: Process
    url: str
    frozen: bool = False
    asked_to_end: bool = False
    born: float = field(default_factory=monotonic)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return monotonic() - self.born

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it is there to be sent one."""
        tell(self.process, number)


def tell(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process, if it is there. Its own `send_signal` would look first whether it
    has ended, and so take its exit code from whoever waits for that."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


@dataclass
class Record:
    """The fates of the processes."""

    starts: int = 0
    last_words: list[str] = field(default_factory=list)
    """Those of processes that ended by themselves, each with its exit code."""
    left_too_late: int = 0


@dataclass
class Place:
    """One place. Its process has another port at each start: an old one may still leave."""

    number: int
    contestant: Contestant
    record: Record
    now: Living | None = None
    pause: float = 0.0
    """Seconds until whoever dies next is started again."""
    _ports: tuple[int, int] = field(default_factory=lambda: (own_port(), own_port()))
    _turn: int = 0
    _successor: Living | None = None
    """Whoever is started beside `now`, until it works."""
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One end at a time."""

    async def keep(self) -> None:
        """Have a process here, for ever."""
        try:
            self.now = await self._start()
            while True:
                living = self.now
                await living.process.wait()
                if self.now is living and self._successor not in (None, living):
                    self.now = self._successor  # It died before it was asked to leave.
                if self.now is not living:
                    continue  # It was succeeded before it left.
                self._begun.clear()
                if not living.asked_to_end:
                    said = f"{living.process.returncode}: {self._last_line()}"
                    self.record.last_words.append(said)
                    self.pause = _AGAIN
                await asyncio.sleep(self.pause)
                self.now = await self._start()
        finally:
            if self.now is not None:
                self.now.signal(signal.SIGKILL)
                await self.now.process.wait()

    @property
    def _log(self) -> Path:
        return self.contestant.ground.folder / f"log-{self.number}"

    def _last_line(self) -> str:
        return "".join(self._log.read_text(errors="replace").splitlines()[-1:])

    async def _start(self) -> Living:
        self._turn += 1
        port = self._ports[self._turn % 2]
        start = self.contestant.start(self.number, port)
        with self._log.open("ab") as log:
            process = await spawn(
                *start.command,
                cwd=self.contestant.ground.folder,
                env={"PATH": os.defpath, **start.environment},
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.record.starts += 1
        self._begun.set()
        return Living(process, f"http://127.0.0.1:{port}")

    async def someone(self) -> Living:
        """The process here, as soon as there is one."""
        while self.now is None or not self.now.running:
            await self._begun.wait()
            await asyncio.sleep(0.01)
        return self.now

    async def kill(self, pause: float) -> tuple[float, Held | None]:
        """SIGKILL; the moment of the death, and what was held. It stays dead for `pause`."""
        async with self._ending:
            living = await self.someone()
            self.pause = max(pause, 0.05)  # Long enough to read what it held.
            living.asked_to_end = True
            living.signal(signal.SIGKILL)
            await living.process.wait()
            died = monotonic()
            return died, await self.contestant.held_by(living.pid)

    async def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so long; somebody may kill it meanwhile."""
        living = await self.someone()
        living.signal(signal.SIGSTOP)
        living.frozen = True
        await asyncio.sleep(seconds)
        living.signal(signal.SIGCONT)
        living.frozen = False

    async def restart(self, pause: float) -> None:
        """SIGTERM, wait for its end, start the next one."""
        async with self._ending:
            living = await self.someone()
            self.pause = pause
            living.asked_to_end = True
            await self._leave(living)

    async def hand_over(self) -> None:
        """Start the next one beside it, and let the old one leave when the new one works."""
        async with self._ending:
            old = await self.someone()
            self._successor = new = await self._start()
            with suppress(TimeoutError):
                async with asyncio.timeout(_READY_WITHIN):
                    while new.running and not await self.contestant.ready(new.url):
                        await asyncio.sleep(0.1)
            old.asked_to_end = True
            self._successor = None
            if self.now is old:
                self.now = new
            await self._leave(old)

    async def _leave(self, living: Living) -> None:
        living.signal(signal.SIGCONT)  # Whoever is frozen cannot leave.
        living.frozen = False
        living.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_LEAVES_WITHIN):
                await living.process.wait()
        except TimeoutError:
            self.record.left_too_late += 1
            living.signal(signal.SIGKILL)
            await living.process.wait()
