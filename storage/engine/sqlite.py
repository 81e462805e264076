"""SQLite: one writer thread, which commits all waiting jobs together, and a few readers.

The writer takes what is queued, most urgent first, runs each function in a savepoint and commits
them together: one fsync for all that wait. A function that raises is undone by itself; a group
whose commit fails is undone whole, and all its callers get DatabaseUnavailable.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL

from bot.domain.errors import DatabaseUnavailable
from bot.domain.ports import Clock
from storage.engine import read_only
from storage.statements.clock import LEASE_CLOCK_FUNCTION, LEASE_NOW_FUNCTION, NOW_FUNCTION
from storage.statements.tx import SQLITE, StatementFailed, Tx

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that the writer waits for another process to finish its transaction."""
_GROUP = 64
"""The most jobs that share a commit."""
_GROUP_SECONDS = 0.05
"""Seconds after which no more jobs join a group, so that whoever comes next, above all the lease,
waits for one job and one commit only."""
_READERS = 2
SEALED = "the database is sealed"
"""The message with which triggers refuse a change (`storage/schema/seal.py`). Nothing else in the
driver's error distinguishes it from a constraint."""

# A list is bound as JSON, for `json_each`. Not escaped: what is no Unicode must not get in.
sqlite3.register_adapter(list, partial(json.dumps, ensure_ascii=False))


def connect(url: URL, clock: Clock) -> Any:
    """One connection with our clock functions, in autocommit mode: transactions are begun
    explicitly. Raises sqlite3.Error; DatabaseUnavailable for a file that we may not write."""
    place = Path(str(url.database))
    if not read_only.may_write(place):
        raise DatabaseUnavailable(read_only.refusal(place))
    (file, *_), options = SQLITE.create_connect_args(url)
    raw = sqlite3.connect(
        file,
        **{"timeout": PATIENCE, "cached_statements": 500, **options},
        isolation_level=None,
    )
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA foreign_keys = ON")
    _tell_time(raw, clock)
    return raw


def _tell_time(raw: Any, clock: Clock) -> None:
    raw.create_function(NOW_FUNCTION, 0, clock.wall)
    raw.create_function(LEASE_NOW_FUNCTION, 0, lambda: clock.boot()[1])
    raw.create_function(LEASE_CLOCK_FUNCTION, 0, lambda: clock.boot()[0])


def _told(error: Exception, tx: Tx | None) -> Exception:
    """The error to raise for that of a job: DatabaseUnavailable if trying later may help."""
    if isinstance(error, sqlite3.OperationalError | sqlite3.InterfaceError):
        return DatabaseUnavailable(f"SQLite does not answer: {error}")
    if isinstance(error, sqlite3.IntegrityError) and str(error) == SEALED:
        return DatabaseUnavailable(f"SQLite does not take it: {error}")
    if isinstance(error, sqlite3.Error):
        # SQLite names columns and no values.
        failed = StatementFailed(error, f": {error}", "" if tx is None else tx.statement)
        return failed.with_traceback(error.__traceback__)
    return error


class _Urgency(IntEnum):
    """The order in which the writer takes jobs."""

    LEASE = 0
    WORK = 1
    CLOSE = 2


@dataclass(order=True)
class _Job:
    urgency: _Urgency
    number: int
    run: Callable[[Tx], Any] = field(compare=False)
    done: Future[Any] = field(compare=False)

    def fail(self, error: BaseException) -> None:
        """Give the caller the error, unless it has left or was told."""
        if self.done.running() or (
            not self.done.done() and self.done.set_running_or_notify_cancel()
        ):
            self.done.set_exception(error)


class Sqlite:
    """Transactions on one file, as `Database` hands them in."""

    def __init__(self, url: URL, clock: Clock, on_broken: Callable[[], object]) -> None:
        self._connect = partial(connect, url, clock)
        self._file = Path(str(url.database))
        self._writes = read_only.may_write(self._file)
        self._clock = clock
        self._writer = _Writer(self._connect, self._file, clock.monotonic, on_broken)
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="db-read")

    async def write(self, job: Callable[[Tx], T]) -> T:
        """Run the job and return its result after the commit. A caller that is cancelled
        before the job began takes it along."""
        return await asyncio.wrap_future(self._writer.submit(job, _Urgency.WORK))

    async def renew(self, job: Callable[[Tx], T]) -> T:
        """Run the job before all work that waits."""
        return await asyncio.wrap_future(self._writer.submit(job, _Urgency.LEASE))

    def write_sync(self, job: Callable[[Tx], T]) -> T:
        """Run the job, for a thread without an event loop."""
        return self._writer.submit(job, _Urgency.WORK).result()

    async def read(self, job: Callable[[Tx], T]) -> T:
        """Run the job on one snapshot."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, partial(self._read, job))

    async def ask(self, job: Callable[[Tx], T]) -> T:
        """Run a job of one statement."""
        return await self.read(job)

    def close(self) -> None:
        """Finish what is queued and let go of every connection."""
        self._writer.close()
        self._readers.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()

    def _read(self, job: Callable[[Tx], T]) -> T:
        tx: Tx | None = None

        def asked(connection: Any) -> T:
            nonlocal tx
            tx = Tx(connection, SQLITE)
            connection.execute("BEGIN")
            try:
                return job(tx)
            finally:
                connection.execute("ROLLBACK")

        def asked_without_writing(connection: Any) -> T:
            _tell_time(connection, self._clock)
            return asked(connection)

        try:
            if not self._writes:
                return read_only.read(self._file, asked_without_writing, PATIENCE)
            with self._reader() as connection:
                return asked(connection)
        except sqlite3.Error as error:
            raise _told(error, tx) from None

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)


class _Writer:
    """The thread that writes. Whatever ends it fails everybody who waits, and is told to
    `on_broken`; so does another file in the place of ours, such as a backup that was put back."""

    def __init__(
        self,
        connect_: Callable[[], Any],
        file: Path,
        monotonic: Callable[[], float],
        on_broken: Callable[[], object],
    ) -> None:
        self._connect = connect_
        self._file = file
        self._number: int | None = None
        """The inode of the file that is written, once it is opened."""
        self._monotonic = monotonic
        self._on_broken = on_broken
        self._queue: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._door = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="db-write", daemon=True)
        self._thread.start()

    def submit(self, run: Callable[[Tx], T], urgency: _Urgency) -> Future[T]:
        """Queue a job. Raises DatabaseUnavailable when the writer has ended."""
        with self._door:
            if self._closed:
                raise DatabaseUnavailable("the database was closed")
            return self._enqueue(run, urgency)

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._enqueue(lambda _tx: None, _Urgency.CLOSE)
        self._thread.join()

    def _enqueue(self, run: Callable[[Tx], T], urgency: _Urgency) -> Future[T]:
        done: Future[T] = Future()
        self._queue.put(_Job(urgency, next(self._numbers), run, done))
        return done

    def _loop(self) -> None:
        connection: Any = None
        job: _Job | None = None
        try:
            while (job := self._queue.get()).urgency is not _Urgency.CLOSE:
                try:
                    connection = connection or self._opened()
                    connection.execute("BEGIN IMMEDIATE")
                except Exception as error:  # noqa: BLE001 - whatever it is, callers must not wait
                    self._refuse(job, error)
                    continue
                self._stay_or_raise()
                if not self._commit_group(connection, job):
                    connection.close()  # and undo what it holds
                    connection = None
        except BaseException as error:
            # A job ended the thread: who waits, and who comes later, must not wait for ever.
            with self._door:
                self._closed = True
            self._refuse(job, error)
            self._on_broken()
            raise
        finally:
            if connection is not None:
                connection.close()

    def _opened(self) -> Any:
        before = _inode(self._file)
        connection = self._connect()
        if self._number is None:
            self._number = before or _inode(self._file)
        return connection

    def _stay_or_raise(self) -> None:
        """Write to no file that lost its name: nobody reads it there. Raises
        DatabaseUnavailable, which ends the thread."""
        if _inode(self._file) != self._number:
            raise DatabaseUnavailable(
                f"another file than before stands at {self._file}: this process has to start anew"
            )

    def _refuse(self, job: _Job | None, error: BaseException) -> None:
        """Nothing can be written now: whoever waits learns it at once, not one by one. Who comes
        later has a try of their own."""
        waiting = [self._next() for _ in range(self._queue.qsize())]
        for refused in (job, *waiting):
            if refused is not None:
                refused.fail(_not_taken(error))

    def _next(self) -> _Job | None:
        try:
            job = self._queue.get_nowait()
        except queue.Empty:
            return None
        if job.urgency is _Urgency.CLOSE:
            self._queue.put(job)
            return None
        return job

    def _commit_group(self, connection: Any, first: _Job) -> bool:
        """Run the job, and those that wait behind it, in the open transaction, each in a
        savepoint; then tell how each ended. False: the whole group failed."""
        begun: list[_Job] = []
        outcomes: list[Callable[[], None]] = []
        try:
            self._run_group(Tx(connection, SQLITE), first, begun, outcomes)
            connection.execute("COMMIT")
        except BaseException as error:
            for job in begun:
                job.fail(_not_taken(error))
            if isinstance(error, Exception):
                return False
            raise
        for tell in outcomes:
            tell()
        return True

    def _run_group(
        self, tx: Tx, first: _Job, begun: list[_Job], outcomes: list[Callable[[], None]]
    ) -> None:
        until = self._monotonic() + _GROUP_SECONDS
        job: _Job | None = first
        while job is not None:
            if job.done.set_running_or_notify_cancel():
                begun.append(job)
                outcomes.append(_in_savepoint(tx, job))
            full = len(outcomes) >= _GROUP or self._monotonic() >= until
            job = None if full else self._next()


def _in_savepoint(tx: Tx, job: _Job) -> Callable[[], None]:
    """Run the job; returns how to tell its caller, once the commit is done."""
    tx.connection.execute("SAVEPOINT job")
    try:
        tell = partial(job.done.set_result, job.run(tx))
    except Exception as error:  # noqa: BLE001 - the edge of the task: it belongs to the caller
        tx.connection.execute("ROLLBACK TO job")
        tell = partial(job.done.set_exception, _told(error, tx))
    tx.connection.execute("RELEASE job")
    return tell


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def _not_taken(error: BaseException) -> DatabaseUnavailable:
    if isinstance(error, DatabaseUnavailable):
        return error
    failure = DatabaseUnavailable(f"SQLite did not take the write: {error}")
    failure.__cause__ = error
    return failure
