"""Traces: a port that does nothing unless tracing is configured.

A *story* is everything that happens to one run, in whichever process: its spans form one trace. The
trace's id is computed from the story's name alone, so no process has to tell it to another, and a
run that is taken over continues the same trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from bot.observability.context import Fact


class Span(Protocol):
    """A span that is open."""

    def tell(self, **facts: Fact) -> None:
        """Add attributes: names and numbers of ours, never a person's text, address or phone
        number."""
        ...


class Tracer(Protocol):
    """Makes spans. Never raises, never waits."""

    @property
    def listens(self) -> bool:
        """False if spans are discarded, so that callers need not prepare any."""
        ...

    def span(self, name: str, story: str = "", **facts: Fact) -> AbstractContextManager[Span]:
        """A span around the body, as a child of the open span. With a `story` to whose trace the
        open span does not belong, the span joins that trace instead. With neither a story nor an
        open span it begins a trace of its own."""
        ...

    def first(self, name: str, story: str, seconds: float, **facts: Fact) -> None:
        """Write the root span of a story, which ends now and took `seconds`. It is written
        afterwards because a run has no name until it is committed."""
        ...

    def close(self) -> None:
        """Send what is left, for a few seconds at most. Blocks."""
        ...


class NoTracer:
    """The tracer of a process without tracing; also the only span that it gives."""

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
    """The story of a run. `account` is the account's own name at its platform, without which runs
    of two installations with the same number would share a story."""
    return f"run {account} {run}"


def story_of_request(account: str, request_id: str) -> str:
    """The story of a message for which no run of its own was made."""
    return f"request {account} {request_id}"
