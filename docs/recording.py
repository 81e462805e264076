"""Record docs/demo.svg: `make recording` types into a real terminal, and really kills.

A shell on a pseudo-terminal starts `answerback up` without credentials, in an empty folder.
Somebody writes a message, another terminal kills the process in the third step, it is started
again.
Drawn is what an emulator of the terminal shows at each moment, with the seconds since the begin.
Waits are shortened in the picture, and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self
from xml.sax.saxutils import escape

import pyte

from bot.clock import SystemClock

_CLOCK = SystemClock()
PICTURE = Path(__file__).parent / "demo.svg"
QUESTION = "Where is my pizza?"
COLUMNS, LINES = 80, 29
_PATIENCE = 120.0
"""Seconds that something may take until it is on the screen."""
_LONGEST = 0.6
"""Seconds for which the picture stands still at most, however long nothing happened."""
_LAST = 6.0
"""Seconds for which its last moment stands."""
_LETTER, _LINE, _MARGIN, _BAR, _ASIDE = 7.9, 17, 16, 30, 62
_COLORS = {"cyan": "c", "green": "g"}
_STYLE = (
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#d8dee6;white-space:pre}.c{fill:#79c0d8}.g{fill:#7ee29a}.b{font-weight:700}"
    ".q{fill:#93a1b0}.r{fill:#ff9c8f}.f{visibility:hidden;animation-timing-function:step-end;"
    "animation-iteration-count:infinite}.e{visibility:visible}"
    "@media (prefers-reduced-motion:reduce){.f{animation:none!important}}"
)

_SAID = "A message is written, its process is killed, and the next process answers it."

Piece = tuple[str, str]
"""A text and its classes."""
Row = tuple[Piece, ...]


@dataclass(frozen=True)
class Frame:
    """The screen `at` a moment, in seconds, and the row of the other terminal."""

    at: float
    rows: tuple[Row, ...]
    other: Row


@dataclass
class Recorder:
    """A shell on a pseudo-terminal, in a folder of its own."""

    folder: Path
    other: str = ""
    frames: list[Frame] = field(default_factory=list)
    _screen: pyte.Screen = field(default_factory=lambda: pyte.Screen(COLUMNS, LINES))

    def __enter__(self) -> Self:
        path = f"{Path(sys.executable).parent}:{os.defpath}"
        environment = {"PATH": path, "HOME": str(self.folder), "TERM": "xterm-256color"}
        environment |= {"PS1": "$ ", "LC_ALL": "C.UTF-8", "BASH_SILENCE_DEPRECATION_WARNING": "1"}
        shell = shutil.which("bash")
        assert shell, "a shell that says what was killed is needed: bash"
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(self.folder)
            os.execve(shell, [shell, "--norc", "--noprofile", "-i"], environment)  # noqa: S606 - a shell is shown
        size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)
        self._stream = pyte.ByteStream(self._screen)
        self._began = _CLOCK.monotonic()
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.terminal)  # Who sits at it is told, and leaves.
        os.waitpid(self.pid, 0)

    @property
    def display(self) -> Sequence[str]:
        """The screen's rows, as text."""
        return self._screen.display

    def until(self, shown: Callable[[Sequence[str]], bool]) -> None:
        """Look on until the screen is as wanted. Raises TimeoutError."""
        ends = _CLOCK.monotonic() + _PATIENCE
        while not shown(self._screen.display):
            if _CLOCK.monotonic() > ends:
                raise TimeoutError("\n".join(self._screen.display))
            self.look(0.05)

    def look(self, seconds: float) -> None:
        """Take what is written within so many seconds."""
        ends = _CLOCK.monotonic() + seconds
        while (left := ends - _CLOCK.monotonic()) > 0:
            ready, _, _ = select.select([self.terminal], [], [], left)
            if ready:
                self._stream.feed(os.read(self.terminal, 65_536))
        self._frame()

    def type(self, text: str) -> None:
        """Type word by word, and enter it."""
        for word in re.findall(r"\S+ ?", text):
            os.write(self.terminal, word.encode())
            self.look(0.25)
        os.write(self.terminal, b"\n")

    def elsewhere(self, *command: str) -> None:
        """Run a command in another terminal."""
        self.other = f"$ {' '.join(command)}"
        self._frame()
        subprocess.run(command, check=True)  # noqa: S603 - our own words

    def _frame(self) -> None:
        rows = tuple(self._row(at) for at in range(LINES))
        other: Row = ((self.other, "r b"),) if self.other else (("$ ", "q"),)
        frame = Frame(_CLOCK.monotonic() - self._began, rows, other)
        if not self.frames or (frame.rows, frame.other) != (
            self.frames[-1].rows,
            self.frames[-1].other,
        ):
            self.frames.append(frame)

    def _row(self, at: int) -> Row:
        pieces: list[Piece] = []
        line = self._screen.buffer[at]
        for column in range(COLUMNS):
            cell = line[column]
            classes = " ".join(
                name
                for name in (_COLORS.get(cell.fg, ""), "b" if cell.bold else "")
                if name and cell.data != " "
            )
            if pieces and pieces[-1][1] == classes:
                pieces[-1] = (pieces[-1][0] + cell.data, classes)
            else:
                pieces.append((cell.data, classes))
        while pieces and not pieces[-1][0].strip():
            pieces.pop()
        if pieces:
            pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
        return tuple(pieces)


def record() -> Sequence[Frame]:
    """The frames of a run that is killed and goes on."""
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder)) as recorder:
        recorder.until(lambda rows: rows[0].startswith("$"))
        recorder.type("answerback up")
        recorder.until(lambda rows: any(row.startswith("you>") for row in rows))
        recorder.look(1.0)
        recorder.type(QUESTION)
        recorder.until(lambda rows: any("write: at work, 4 s" in row for row in rows))
        found = (row.partition("kill -9 ")[2].split() for row in recorder.display)
        recorder.elsewhere("kill", "-9", next(words[0] for words in found if words))
        recorder.until(lambda rows: any("Killed" in row for row in rows))
        recorder.look(1.0)
        recorder.type("answerback up")
        recorder.until(lambda rows: any("(attempt 2)" in row for row in rows))
        recorder.look(0.5)
        os.write(recorder.terminal, b"\x04")
        frames = list(recorder.frames)
        recorder.until(lambda rows: rows[_last(rows)].startswith("$"))
    return frames


def _last(rows: Sequence[str]) -> int:
    return max(at for at, row in enumerate(rows) if row.strip())


def draw(frames: Sequence[Frame]) -> str:
    """The frames as SVG that moves by its style alone."""
    starts = [0.0]
    for before, frame in pairwise(frames):
        starts.append(starts[-1] + min(_LONGEST, frame.at - before.at))
    ends = [*starts[1:], starts[-1] + _LAST]
    whole = ends[-1]
    shown: dict[tuple[float, float], list[str]] = defaultdict(list)
    for line in range(LINES):
        y = _BAR + _LINE * (line + 1)
        for begin, end, row in _held([frame.rows[line] for frame in frames], starts, ends):
            if row:
                shown[begin, end].append(_text(row, y))
    aside = _BAR + _LINE * LINES + 22
    for begin, end, row in _held([frame.other for frame in frames], starts, ends):
        shown[begin, end].append(_text(row, aside + 40))
    for begin, end, mark in _held([f"{int(frame.at)} s" for frame in frames], starts, ends):
        shown[begin, end].append(_mark(mark))
    wide = round(COLUMNS * _LETTER) + 2 * _MARGIN
    high = aside + _ASIDE
    moves: list[str] = []
    body: list[str] = []
    for number, ((begin, end), texts) in enumerate(sorted(shown.items())):
        classes = "f e" if end == whole else "f"
        if begin == 0.0 and end == whole:
            body.append(f"<g>{''.join(texts)}</g>")
            continue
        moves.append(_moment(number, begin / whole, end / whole))
        body.append(f'<g class="{classes}" style="animation-name:m{number}">{"".join(texts)}</g>')
    said = f'width="{wide}" role="img" aria-label="{_SAID}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" {said}>',
        f"<style>{_STYLE}.f{{animation-duration:{whole:.1f}s}}{''.join(moves)}</style>",
        _window(0, 0, wide, aside - 10, "a terminal"),
        _window(0, aside, wide, _ASIDE - 4, "another terminal"),
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _held(
    values: Sequence[object], starts: Sequence[float], ends: Sequence[float]
) -> Sequence[tuple[float, float, object]]:
    """Each value that stays for some frames, with its begin and its end."""
    found: list[tuple[float, float, object]] = []
    for value, begin, end in zip(values, starts, ends, strict=True):
        if found and found[-1][2] == value:
            found[-1] = (found[-1][0], end, value)
        else:
            found.append((begin, end, value))
    return found


def _moment(number: int, begin: float, end: float) -> str:
    """Seen from the share `begin` of the whole time to `end`."""
    steps = ["0%{visibility:hidden}"] if begin else []
    steps.append(f"{begin:.2%}{{visibility:visible}}")
    if end < 1:
        steps.append(f"{end:.2%}{{visibility:hidden}}")
    return f"@keyframes m{number}{{{''.join(steps)}}}"


def _text(row: object, y: float) -> str:
    assert isinstance(row, tuple)
    pieces = [
        f'<tspan class="{classes}">{escape(text)}</tspan>' if classes else escape(text)
        for text, classes in row
    ]
    return f'<text x="{_MARGIN}" y="{y}" xml:space="preserve">{"".join(pieces)}</text>'


def _mark(seconds: object) -> str:
    x = round(COLUMNS * _LETTER) + _MARGIN
    return f'<text class="q" x="{x}" y="20" text-anchor="end">{seconds}</text>'


def _window(x: float, y: float, wide: float, high: float, name: str) -> str:
    return (
        f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{wide - 1}" height="{high - 1}" rx="8"'
        f' fill="#161b22" stroke="#3b4654"/>'
        f'<text class="q" x="{_MARGIN}" y="{y + 20}">{name}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(record()), encoding="utf-8")
