"""An exception out of a builder's code: its places in that code, and as much of its message as may
be told.

A builder at a terminal sees the whole exception. A log gets its type, the places in the builder's
own files, and its message if that holds no words of the turn. The message of an exception that came
through none of these files is never told: it may be a provider's, and quote anything.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from bot.domain.errors import AnswerbackError, ForOperators
from bot.observability.quoting import Spoken
from bot.observability.redaction import explain, frames, is_installed, is_ours, led_to, scrub

_MOST_PLACES = 8
_MOST_CAUSES = 4
_LONGEST = 300
"""The most characters of an exception's message in a line."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception, and the words of the turn in which it was raised."""

    error: BaseException
    spoken: Spoken

    @property
    def said(self) -> str:
        """The exception's type, and its message if that may be told."""
        return self._told(self.error)

    @property
    def causes(self) -> str:
        """The errors that led to the exception, each told like it."""
        led = islice(led_to(self.error), _MOST_CAUSES)
        return " < ".join(map(self._told, led))

    @property
    def places(self) -> str:
        """The places in the builder's code that the exception came through; if there are none, the
        places in all code."""
        return places(self.error) or frames(self.error)

    def __str__(self) -> str:
        where = places(self.error)
        return f"{self.said} ({where})" if where else self.said

    def _told(self, error: BaseException) -> str:
        known = explain(error)
        if isinstance(error, ForOperators) or known != type(error).__qualname__:
            return known
        if not isinstance(error, AnswerbackError) and not places(self.error):
            return known
        try:
            words = str(error)
        except Exception:  # noqa: BLE001 - the agent's edge: an exception that can't be told
            return known
        if not words.strip() or self.spoken.quoted_in(words):
            return known
        line = " ".join(words.split())
        return f"{known}: {scrub(line if len(line) <= _LONGEST else f'{line[:_LONGEST]}...')}"


def places(error: BaseException) -> str:
    """The places in the builder's files that the exception came through, or if there are none,
    those of the first error that led to it and has some: `file:line function`, innermost last."""
    for found in (error, *led_to(error)):
        steps = [
            f"{_file(frame.f_code.co_filename)}:{line} {frame.f_code.co_qualname}"
            for frame, line in traceback.walk_tb(found.__traceback__)
            if _is_builders(frame.f_globals.get("__name__", ""), frame.f_code.co_filename)
        ]
        if steps:
            return " > ".join(steps[-_MOST_PLACES:])
    return ""


def whole(error: BaseException) -> str:
    """The traceback as Python prints it, beginning with the builder's code. For a syntax error of
    the builder's file, only the line."""
    if isinstance(error, SyntaxError) and not places(error):
        return "".join(traceback.format_exception_only(error)).rstrip()
    began = error.__traceback__
    while began is not None:
        frame = began.tb_frame
        if _is_builders(frame.f_globals.get("__name__", ""), frame.f_code.co_filename):
            break
        began = began.tb_next
    lines = traceback.TracebackException(type(error), error, began or error.__traceback__).format()
    return "".join(lines).rstrip()


def _is_builders(module: str, file: str) -> bool:
    return not is_ours(module) and not is_installed(file)


@cache
def _file(name: str) -> str:
    """The file's path without the part that is private to this machine: relative to the entry of
    `sys.path` from which it was imported."""
    file = Path(name)
    roots = [Path(entry or Path.cwd()) for entry in sys.path]
    found = [file.relative_to(root) for root in roots if file.is_relative_to(root)]
    return min((path.as_posix() for path in found), key=len, default=file.name)
