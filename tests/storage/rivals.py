"""Two transactions on PostgreSQL at the same time, one of which waits for the other's rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from storage.statements.tx import Tx
from tests.limits import PATIENCE
from tests.storage.kit import Hand, connected

P = ParamSpec("P")
T = TypeVar("T")

_BLOCKED = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@dataclass
class First:
    """The transaction that came first and has not ended yet."""

    hand: Hand
    tx: Tx
    second: ThreadPoolExecutor

    def do(self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One more move in the open transaction."""
        return move(self.tx, *args, **kwargs)

    def rival(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Begin a second transaction elsewhere; returns when it waits for the first."""
        waiting = self.second.submit(partial(self.hand.do, move, *args, **kwargs))
        pulse = threading.Event()
        for _ in range(int(PATIENCE / 0.01)):
            if waiting.done() or self.hand.value(_BLOCKED) > 0:
                break
            pulse.wait(0.01)
        assert not waiting.done(), "it did not wait"
        return waiting

    def commit(self) -> None:
        self.tx.connection.commit()

    def rollback(self) -> None:
        self.tx.connection.rollback()


@contextmanager
def first(hand: Hand) -> Iterator[First]:
    """A transaction on a connection of its own."""
    with ThreadPoolExecutor(2) as second, connected(hand.url, hand.clock) as tx:
        tx.run("BEGIN")
        try:
            yield First(hand, tx, second)
        finally:
            tx.connection.rollback()


def outcome(waiting: Future[Any]) -> Any:
    """The outcome of the second transaction: its result, or the error that it raised."""
    error = waiting.exception(PATIENCE)
    return waiting.result() if error is None else type(error)
