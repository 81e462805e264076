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

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from bot.domain.errors import DatabaseUnavailable

T = TypeVar("T")

_GROUP = 64
"""At most so many transactions share a commit."""
_GROUP_SECONDS = 0.05
"""No more join a group that has been at work for so long: whoever comes next, the lease first
of all, waits for one job and one commit."""


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

    def fail(self, error: BaseException) -> None:
        """Tell the caller, unless it has left."""
        if self.done.running() or self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Outcome:
    job: _Job
    result: Any
    error: Exception | None

    def tell(self) -> None:
        """Let the caller go on: the commit is done."""
        if self.error is None:
            self.job.done.set_result(self.result)
        else:
            self.job.done.set_exception(self.error)


class SqliteWriter:
    """Runs jobs one after the other in a thread of its own; a group shares one commit.

    A job that raises is undone by itself. A group whose commit fails is undone whole, and all
    its callers get DatabaseUnavailable. `monotonic` tells seconds.
    """

    def __init__(self, engine: Engine, monotonic: Callable[[], float]) -> None:
        self._engine = engine
        self._monotonic = monotonic
        self._queue: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._door = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="db-write", daemon=True)
        self._thread.start()

    async def submit(self, run: Callable[[Connection], T], urgency: Urgency) -> T:
        """Run the job and return its result after the commit. A caller that is cancelled
        before the job began takes it along."""
        return await asyncio.wrap_future(self._put(run, urgency))

    def submit_sync(self, run: Callable[[Connection], T], urgency: Urgency) -> T:
        """The same, for a thread without an event loop."""
        return self._put(run, urgency).result()

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        with self._door:
            if self._closed:
                return
            self._closed = True
            self._enqueue(lambda _tx: None, Urgency.CLOSE)
        self._thread.join()

    def _put(self, run: Callable[[Connection], T], urgency: Urgency) -> Future[T]:
        with self._door:
            if self._closed:
                raise DatabaseUnavailable("the database was closed")
            return self._enqueue(run, urgency)

    def _enqueue(self, run: Callable[[Connection], T], urgency: Urgency) -> Future[T]:
        done: Future[T] = Future()
        self._queue.put(_Job(urgency, next(self._numbers), run, done))
        return done

    def _loop(self) -> None:
        while (job := self._queue.get()).urgency is not Urgency.CLOSE:
            try:
                self._commit_group(job)
            except (sqlite3.Error, SQLAlchemyError) as error:
                self._refuse(job, error)

    def _refuse(self, job: _Job, error: Exception) -> None:
        """SQLite can't be written now: whoever waits learns it at once, not one by one. Who comes
        later has a try of their own."""
        failure = DatabaseUnavailable(f"SQLite did not take the write: {error}")
        failure.__cause__ = error
        waiting = [self._next() for _ in range(self._queue.qsize())]
        for refused in (job, *waiting):
            if refused is not None:
                refused.fail(failure)

    def _next(self) -> _Job | None:
        try:
            job = self._queue.get_nowait()
        except queue.Empty:
            return None
        if job.urgency is Urgency.CLOSE:
            self._queue.put(job)
            return None
        return job

    def _commit_group(self, first: _Job) -> None:
        """Run the job, and those that wait behind it, in one transaction, each in a savepoint;
        then tell how each ended. Raises when the transaction could not be begun."""
        with self._engine.connect() as tx:
            raw: sqlite3.Connection = tx.connection.driver_connection
            raw.execute("BEGIN IMMEDIATE")
            outcomes: list[_Outcome] = []
            try:
                self._run_group(tx, first, outcomes)
                raw.execute("COMMIT")
            except BaseException as error:
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
                failure = DatabaseUnavailable(f"SQLite did not take the write: {error}")
                failure.__cause__ = error
                for outcome in outcomes:
                    outcome.job.done.set_exception(failure)
                if not isinstance(error, sqlite3.Error | SQLAlchemyError):
                    raise
                return
        for outcome in outcomes:
            outcome.tell()

    def _run_group(self, tx: Connection, first: _Job, outcomes: list[_Outcome]) -> None:
        until = self._monotonic() + _GROUP_SECONDS
        job: _Job | None = first
        while job is not None:
            if job.done.set_running_or_notify_cancel():
                outcomes.append(_Outcome(job, None, None))
                outcomes[-1] = _in_savepoint(tx, job)
            full = len(outcomes) >= _GROUP or self._monotonic() >= until
            job = None if full else self._next()


def _in_savepoint(tx: Connection, job: _Job) -> _Outcome:
    raw: sqlite3.Connection = tx.connection.driver_connection
    raw.execute("SAVEPOINT job")
    try:
        outcome = _Outcome(job, job.run(tx), None)
    except Exception as error:  # noqa: BLE001 - the edge of the task: it belongs to the caller
        raw.execute("ROLLBACK TO job")
        outcome = _Outcome(job, None, error)
    raw.execute("RELEASE job")
    return outcome
