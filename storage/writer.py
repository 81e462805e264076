"""SQLite's one writer: a thread, a queue of transactions, one commit for those that wait."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from bot.domain.errors import DatabaseUnavailable

T = TypeVar("T")

_GROUP = 32
"""At most so many transactions share a commit: their sum stays far under 200 ms."""


class Urgency(IntEnum):
    """What goes first."""

    LEASE = 0
    WORK = 1
    CLOSE = 2


@dataclass(order=True)
class _Job:
    urgency: Urgency
    number: int
    run: Callable[[Connection], Any] = field(compare=False)
    done: Future[Any] = field(compare=False)


class SqliteWriter:
    """Runs jobs one after the other in a thread of its own; a group shares one commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="db-write", daemon=True)
        self._thread.start()

    async def submit(self, run: Callable[[Connection], T], urgency: Urgency) -> T:
        """Run the job and return its result after the commit."""
        return await asyncio.wrap_future(self._put(run, urgency))

    def submit_sync(self, run: Callable[[Connection], T], urgency: Urgency) -> T:
        """The same, for a thread without an event loop."""
        return self._put(run, urgency).result()

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        if not self._closed:
            self._put(lambda _tx: None, Urgency.CLOSE)
            self._closed = True
            self._thread.join()

    def _put(self, run: Callable[[Connection], T], urgency: Urgency) -> Future[T]:
        if self._closed:
            raise DatabaseUnavailable("the database was closed")
        done: Future[T] = Future()
        self._queue.put(_Job(urgency, next(self._numbers), run, done))
        return done

    def _loop(self) -> None:
        closing = False
        while not closing:
            group = [self._queue.get()]
            while len(group) < _GROUP:
                try:
                    group.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            closing = any(job.urgency is Urgency.CLOSE for job in group)
            self._commit_group([j for j in group if j.done.set_running_or_notify_cancel()])

    def _commit_group(self, group: list[_Job]) -> None:
        """Run the jobs in one transaction, each in a savepoint, and tell how each ended."""
        outcomes: list[tuple[_Job, Any, BaseException | None]] = []
        try:
            with self._engine.connect() as tx:
                tx.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    outcomes = [(job, *_in_savepoint(tx, job)) for job in group]
                    tx.exec_driver_sql("COMMIT")
                except BaseException:
                    if tx.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
                        tx.exec_driver_sql("ROLLBACK")
                    raise
        except DBAPIError as error:
            failure = DatabaseUnavailable(f"SQLite did not take the write: {error.orig}")
            failure.__cause__ = error
            outcomes = [(job, None, failure) for job in group]
        for job, result, failed in outcomes:
            if failed is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(failed)


def _in_savepoint(tx: Connection, job: _Job) -> tuple[Any, BaseException | None]:
    tx.exec_driver_sql("SAVEPOINT job")
    try:
        result = job.run(tx)
    except Exception as error:  # noqa: BLE001 - the edge of the task: it belongs to the caller
        tx.exec_driver_sql("ROLLBACK TO job")
        tx.exec_driver_sql("RELEASE job")
        return None, error
    tx.exec_driver_sql("RELEASE job")
    return result, None
