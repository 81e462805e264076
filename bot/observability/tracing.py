"""Traces: a port that does nothing until somebody wants traces.

A *story* is everything that happens to one run, whichever process does it: its spans are one
trace. The trace's id follows from the story's name alone, so that no process has to tell
another, and a run that is taken over goes on in the same trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from bot.observability.context import Fact


class Span(Protocol):
    """A span that is open."""

    def tell(self, **facts: Fact) -> None:
        """Add attributes: names and numbers of ours, never a text, an address or a number."""
        ...


class Tracer(Protocol):
    """Makes spans. Never raises, never waits."""

    @property
    def listens(self) -> bool:
        """False when every span goes nowhere, so that nobody needs to name one."""
        ...

    def span(self, name: str, story: str = "", **facts: Fact) -> AbstractContextManager[Span]:
        """A span around the body, within the one that is open here. `story` names the trace
        that it belongs to when none of it is open; without one it begins its own."""
        ...

    def first(self, name: str, story: str, seconds: float, **facts: Fact) -> None:
        """The span from which a story's other spans hang. It ends now and took `seconds`: a
        run has no name before it is committed."""
        ...

    def close(self) -> None:
        """Send what is left, for a few seconds at most. Blocks."""
        ...


class NoTracer:
    """The tracer of a process that nobody traces, and its spans."""

    listens = False

    @contextmanager
    def span(self, name: str, story: str = "", **facts: Fact) -> Iterator[Span]:
        yield self

    def first(self, name: str, story: str, seconds: float, **facts: Fact) -> None:
        return

    def tell(self, **facts: Fact) -> None:
        return

    def close(self) -> None:
        return


def story_of(account: str, run: int) -> str:
    """The story of a run. `account` is the account's own name at its platform: runs of two
    installations may have the same number."""
    return f"run {account} {run}"


def story_of_request(account: str, request_id: str) -> str:
    """The story of a message that made no run of its own."""
    return f"request {account} {request_id}"
