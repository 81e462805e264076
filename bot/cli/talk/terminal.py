"""The terminals that the chat can write to: with or without a person, with or without a cursor that
can be moved."""

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
    """The chat's view of the place where a person types. Each method raises OSError if the terminal
    is gone. `lasting`: a person goes on typing while answers are made."""

    lasting: bool

    def welcome(self, runs: Sequence[str], hints: Sequence[str]) -> None:
        """Show what runs here and the hints on using it, and then the prompt."""

    def entered(self) -> None:
        """The person has entered a line: show the prompt again."""

    def left(self) -> None:
        """The person has ended the input."""

    def answer(self, text: str) -> None:
        """Show an answer of the agent."""

    def tell(self, text: str) -> None:
        """Show a line that stays, in the place of the last line that `show` has shown."""

    def show(self, name: str, text: str) -> None:
        """Show a line that the next `show` or `tell` replaces. Lines of one `name` are versions of
        the same line."""

    def disturbed(self) -> None:
        """Something else has written to the terminal: the last line is no longer where it was."""


class Piped:
    """Input without a person. Answers are printed as they are, and notes say what runs here; if
    somebody sees the notes (`watched`), they tell of the work too."""

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
        """Do nothing: a printed line can't be replaced."""

    def disturbed(self) -> None:
        """Do nothing: no line is ever replaced."""


class Plain:
    """A terminal whose cursor can't be moved: each line is written below the last, and the prompt
    again below it. A line about work is shown once, when the work begins."""

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
        """Do nothing: no line is ever replaced."""

    def _below(self, text: str) -> None:
        self._write(f"\r{text}\n{PROMPT}")


def terminal() -> Terminal:
    """The terminal of this process: the most capable kind that it supports."""
    if sys.stdin is None or not sys.stdin.isatty():
        watched = sys.stderr is not None and sys.stderr.isatty()
        return Piped(write, _note, watched=watched)
    from bot.cli.talk.screen import screen  # noqa: PLC0415 - rich, which a pipe does without

    return screen() or Plain(write)


def write(text: str) -> None:
    """Write to standard output, unbuffered. Raises OSError. So nothing is left in a buffer that
    Python would try to write to a broken pipe again when the program ends."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    left = text.encode(sys.stdout.encoding or "utf-8", "replace")
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


def _note(text: str) -> None:
    """Write a note, which is no answer, to standard error."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(text)
