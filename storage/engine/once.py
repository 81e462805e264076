"""A move without a key, made once although the answer to its commit gets lost.

Most moves find out by their own rows that they were made: a fence, a state, a unique key. Words
that an operator writes have nothing of the kind. PostgreSQL remembers what became of a
transaction, so that one whose connection broke is asked after before it is made again. SQLite is
in this process: its commits always answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from bot.domain.errors import DatabaseUnavailable
from storage.statements.tx import Tx

T = TypeVar("T")

_NUMBER = "SELECT pg_current_xact_id_if_assigned()::text"
_FATE = "SELECT pg_xact_status(%(number)s::text::xid8)"
_LOOK_AGAIN = "SELECT pg_sleep(0.1)"
_LOOKS = 20
"""For a session that the server has not found to be gone yet."""


class Once(Generic[T]):
    """Runs a job, and knows at the next try whether the try before went through."""

    def __init__(self, job: Callable[[Tx], T]) -> None:
        self._job = job
        self._tried: tuple[str, T] | None = None

    def __call__(self, tx: Tx) -> T:
        if self._tried is not None and _committed(tx, self._tried[0]):
            return self._tried[1]
        self._tried = None
        result = self._job(tx)
        [(number,)] = tx.run(_NUMBER)
        if number is not None:  # else it changed nothing
            self._tried = (number, result)
        return result


def _committed(tx: Tx, number: str) -> bool:
    """Tell whether that transaction went through. Raises DatabaseUnavailable while nobody knows."""
    for _ in range(_LOOKS):
        [(fate,)] = tx.run(_FATE, {"number": number})
        if fate != "in progress":
            return bool(fate == "committed")
        tx.run(_LOOK_AGAIN)
    raise DatabaseUnavailable("the database does not tell whether this was done: look before more")
