"""The terminal as the chat writes to it: with a person or without, moving the cursor or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from bot.operations.reports.phrases import safe

PROMPT = "you> "
ANSWER = "bot> "

Write = Callable[[str], None]


class Terminal(Protocol):
    """The place where a person types, as the chat writes to it. Each method raises OSError when it
    is gone. At a `lasting` one a person goes on writing while answers are made."""

    lasting: bool

    def welcome(self, runs: Sequence[str], hints: Sequence[str]) -> None:
        """Say what runs here and what may be done with it, and show the prompt."""

    def entered(self) -> None:
        """The person has entered a line: show the prompt again."""

    def left(self) -> None:
        """The person types no more."""

    def answer(self, text: str) -> None:
        """Show what the agent says."""

    def tell(self, text: str) -> None:
        """Show a line that stays, in the place of what `show` has shown last."""

    def show(self, name: str, text: str) -> None:
        """Show a line of this name in the place of the last one, until there is another."""

    def disturbed(self) -> None:
        """Somebody else has written: the last line is no longer where it was."""


class Piped:
    """No person: answers are printed as they are. What runs is noted beside them, and if the notes
    are `watched` also what is done."""

    lasting = False

    def __init__(self, write: Write, note: Write, *, watched: bool) -> None:
        self._write = write
        self._note = note
        self._watched = watched

    def welcome(self, runs: Sequence[str], hints: Sequence[str]) -> None:
        self._note("".join(f"{line}\n" for line in runs))

    def entered(self) -> None:
        """There is no prompt."""

    def left(self) -> None:
        """There was no person."""

    def answer(self, text: str) -> None:
        self._write(f"{text}\n")

    def tell(self, text: str) -> None:
        if self._watched:
            self._note(f"{safe(text)}\n")

    def show(self, name: str, text: str) -> None:
        """Nothing: no line could take the place of one that is not the last."""

    def disturbed(self) -> None:
        """Nothing is shown that could have moved."""


class Plain:
    """A terminal that can only go on: each line pushes the prompt down. A line about work is shown
    when it begins."""

    lasting = True

    def __init__(self, write: Write) -> None:
        self._write = write
        self._shown = ""

    def welcome(self, runs: Sequence[str], hints: Sequence[str]) -> None:
        self._below("\n".join([*runs, *hints]))

    def entered(self) -> None:
        self._write(f"\r{PROMPT}")

    def left(self) -> None:
        self._write("\n")

    def answer(self, text: str) -> None:
        self._below(ANSWER + safe(text, lines=True))

    def tell(self, text: str) -> None:
        self._shown = ""
        self._below(safe(text))

    def show(self, name: str, text: str) -> None:
        if name != self._shown:
            self._shown = name
            self._below(safe(text))

    def disturbed(self) -> None:
        """No line is changed here."""

    def _below(self, text: str) -> None:
        self._write(f"\r{text}\n{PROMPT}")


def terminal() -> Terminal:
    """The terminal of this process, as much as it can do."""
    if sys.stdin is None or not sys.stdin.isatty():
        watched = sys.stderr is not None and sys.stderr.isatty()
        return Piped(write, _note, watched=watched)
    from bot.cli.talk.screen import screen  # noqa: PLC0415 - rich, which a pipe does without

    return screen() or Plain(write)


def write(text: str) -> None:
    """Write to standard output. Raises OSError. No buffer is in between: what was written
    is out, and what a broken pipe refused is not tried again at the program's end."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    left = text.encode(sys.stdout.encoding or "utf-8", "replace")
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


def _note(text: str) -> None:
    """Say something that is no answer, where it disturbs none."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(text)
