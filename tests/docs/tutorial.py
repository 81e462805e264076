"""A reader of a tutorial: types its commands into terminals, writes its files, and talks in the
chat, in the order of the page.

A fenced block is one of these:

* `sh`: typed into the terminal that its title names, without one into the first;
* `text` behind it: lines that it prints, in order and among others; `...` stands for anything;
* `text` with a title: the chat, where `You:` write and `Bot:` is what is answered;
* any other: a file of the reader's folder, with its name as the title.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from tests.e2e.forking import ROOT
from tests.limits import until

_FENCE = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_ENDED, _FAILED = "-- the block has ended", "-- a command failed:"
_KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> Sequence[Block]:
    """The fenced blocks, in order."""
    return [Block(*found) for found in _FENCE.findall(page.read_text(encoding="utf-8"))]


class Chat(Protocol):
    """The platform's side of a tutorial."""

    async def write(self, text: str) -> None:
        """Send this as the person."""

    def heard(self) -> Sequence[str]:
        """All that the person was sent, in order."""


@dataclass
class Terminal:
    """A shell, and all that was printed in it."""

    process: asyncio.subprocess.Process
    folder: Path
    lifeline: int
    printed: str = ""
    blocks: int = 0
    seen: int = 0
    _reader: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, environment: Mapping[str, str], folder: Path) -> Terminal:
        """A shell that begins in the checkout; `folder` is for what is typed. All that runs in it
        ends when the test's process does, however that ends."""
        theirs, lifeline = os.pipe()
        process = await asyncio.create_subprocess_exec(
            "bash",
            "--norc",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            pass_fds=(theirs,),
        )
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(f"(read -r -u {theirs}; kill -9 0) & exec {theirs}<&-\n".encode())
        terminal = cls(process, folder, lifeline)
        terminal._reader = asyncio.create_task(terminal._read(), name="terminal")
        return terminal

    async def type(self, text: str) -> None:
        """Run these lines, once those before have ended."""
        await self.idle()
        self.blocks += 1
        self.seen = len(self.printed)
        script = self.folder / f"typed-{self.process.pid}-{self.blocks}.sh"
        script.write_text(f"trap 'echo {_FAILED} $?' ERR\n{text}", encoding="utf-8")
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(f". {script} </dev/null\nprintf '\\n%s\\n' '{_ENDED}'\n".encode())
        await stdin.drain()

    async def idle(self) -> None:
        """Wait until all that was typed has ended, well or by a kill."""
        await until(self._is_idle)
        failed = {
            int(code) for code in re.findall(rf"^{_FAILED} (\d+)$", self.printed, re.MULTILINE)
        }
        assert failed <= {_KILLED}, self.printed

    async def shows(self, expected: str) -> None:
        """Wait until the last lines that were typed have printed these lines, among others."""
        wanted = re.compile(".*".join(map(_pattern, expected.strip("\n").split("\n"))), re.DOTALL)

        def shown() -> bool:
            return wanted.search(self._last()) is not None

        await until(lambda: shown() or self._is_idle() or self.process.returncode is not None)
        assert shown(), f"not printed:\n{expected}\nbut:\n{self._last()}"

    def _last(self) -> str:
        return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", self.printed[self.seen :])

    def _is_idle(self) -> bool:
        ended = len(re.findall(rf"^{_ENDED}$", self.printed, re.MULTILINE))
        return ended == self.blocks or self.process.returncode is not None

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while piece := await self.process.stdout.read(65_536):
            self.printed += piece.decode(errors="replace")

    async def close(self) -> None:
        """End the shell and all that runs in it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self.lifeline)
        await self.process.wait()
        assert self._reader is not None
        await self._reader


_SERVES = "first terminal"


def _pattern(line: str) -> str:
    return r"[^\n]*".join(re.escape(piece) for piece in line.split("..."))


@dataclass
class Reader:
    """Somebody who follows a tutorial. `instead` is what they put for the words of the page that
    only they can know: tokens, addresses. `served` is told where the bot listens."""

    home: Path
    chat: Chat
    environment: Mapping[str, str]
    instead: Mapping[str, str]
    served: Callable[[str], None] = lambda _url: None
    terminals: dict[str, Terminal] = field(default_factory=dict)
    _heard: int = 0

    async def follow(self, page: Path) -> None:
        """Do all that the page says. The terminals' contents are shown when that failed."""
        found = blocks(page)
        try:
            for block, following in pairwise([*found, Block("", "", "")]):
                await self._do(block, following)
            for title, terminal in self.terminals.items():
                if title != _SERVES:
                    await terminal.idle()
        finally:
            for title, terminal in self.terminals.items():
                await terminal.close()
                print(f"--- {title}\n{terminal.printed}")

    async def _do(self, block: Block, following: Block) -> None:
        match block:
            case Block("sh", title, text):
                terminal = await self._terminal(title or _SERVES)
                await terminal.type(text)
                if following.language == "text" and not following.title:
                    await terminal.shows(self._mine(following.text))
                    self._tell(terminal)
                else:
                    await terminal.idle()
            case Block("text", "", _):
                pass  # It was waited for with the command before it.
            case Block("text", _, text):
                await self._talk(text)
            case Block(language, title, text):
                assert title, f"a block of {language} without a title is for nobody"
                [folder] = [path for path in self.home.iterdir() if path.is_dir()]
                (folder / title).write_text(self._mine(text), encoding="utf-8")

    def _tell(self, terminal: Terminal) -> None:
        if places := re.findall(r"listens on (http://\S+)", terminal.printed):
            self.served(places[-1])

    async def _terminal(self, title: str) -> Terminal:
        if title not in self.terminals:
            self.terminals[title] = await Terminal.open(self.environment, self.home)
        return self.terminals[title]

    async def _talk(self, text: str) -> None:
        for line in text.splitlines():
            who, _, said = line.partition(": ")
            if who == "You":
                await self.chat.write(said)
                continue
            assert who == "Bot", line
            await until(lambda: len(self.chat.heard()) > self._heard)
            assert re.fullmatch(_pattern(said), self.chat.heard()[self._heard]), self.chat.heard()
            self._heard += 1

    def _mine(self, text: str) -> str:
        for theirs, mine in self.instead.items():
            text = text.replace(theirs, mine)
        return text


def environment(home: Path, **more: str) -> dict[str, str]:
    """A reader's: nothing of ours but what stands in for the providers' addresses. `make` only says
    what it would do, since the program is installed where a test runs."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "MAKEFLAGS": "--dry-run",
        "PORT": "0",
        **more,
    }
