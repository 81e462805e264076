"""The floor: the least SQL that does the job, with the driver alone.

A message is inserted unless it is known, claimed in the order of its chat under a lease, and its
reply is recorded with its end, by whoever still holds it. Nothing else of what Answerback promises
is here. On PostgreSQL each move is one statement and one commit, on a few connections beside each
other; on SQLite, which has one writer, those that wait share a commit.

`python -m benchmarks.floor produce|work|both URL JOB`
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from typing import Any

import psycopg
import pysqlite3.dbapi2 as sqlite3

from benchmarks.job import Answers, Job, finish, ready, spread, text_of
from benchmarks.meters import Counter

SCHEMA = """
CREATE TABLE jobs (id {id} PRIMARY KEY, chat bigint NOT NULL, request_id text NOT NULL UNIQUE,
    text text NOT NULL, state text NOT NULL DEFAULT 'waiting', holder bigint,
    leased_until float8, reply text, ended_at float8);
CREATE INDEX jobs_chat ON jobs (chat, id) WHERE state <> 'ended';
CREATE INDEX jobs_open ON jobs (id) WHERE state <> 'ended'
"""
_INSERT = """INSERT INTO jobs (chat, request_id, text) VALUES (%(chat)s, %(request)s, %(text)s)
ON CONFLICT (request_id) DO NOTHING"""
_CLAIM = """UPDATE jobs SET state = 'running', holder = %(me)s, leased_until = %(now)s + 15
WHERE id IN (SELECT id FROM jobs AS j
    WHERE state <> 'ended' AND (state = 'waiting' OR leased_until < %(now)s) AND NOT EXISTS (
        SELECT 1 FROM jobs AS e WHERE e.chat = j.chat AND e.id < j.id AND e.state <> 'ended')
    ORDER BY id LIMIT %(room)s FOR UPDATE SKIP LOCKED)
RETURNING id, text"""
_FINISH = """UPDATE jobs SET state = 'ended', reply = %(text)s, ended_at = %(now)s, holder = NULL
WHERE id = %(id)s AND state = 'running' AND holder = %(me)s"""

CONNECTIONS, GROUP = 8, 32  # of each process to PostgreSQL; moves of SQLite that share a commit


class Store:
    """One connection. `group` moves go into one transaction, which `together` begins."""

    def __init__(self, url: str) -> None:
        self.group = GROUP if url.startswith("sqlite") else 1
        self._db = open_database(url)

    @contextmanager
    def together(self) -> Iterator[None]:
        if self.group > 1:
            self._db.execute("BEGIN IMMEDIATE")
        yield
        if self.group > 1:
            self._db.execute("COMMIT")

    def insert(self, chat: int, number: int) -> None:
        self._run(_INSERT, chat=chat, request=f"m{number}", text=text_of(chat, number))

    def claim(self, room: int, me: int) -> list[tuple[int, str]]:
        return sorted(self._run(_CLAIM, me=me, now=time.time(), room=min(self.group, room)))

    def finish(self, job: int, text: str, me: int) -> bool:
        return bool(self._run(_FINISH, id=job, text=text, now=time.time(), me=me).rowcount)

    def _run(self, sql: str, **values: object) -> Any:
        if self.group > 1:
            sql = re.sub(r"%\((\w+)\)s", r":\1", sql.replace("FOR UPDATE SKIP LOCKED", ""))
        return self._db.execute(sql, values)


def open_database(url: str) -> Any:
    """A connection that commits every statement unless a transaction was begun."""
    if not url.startswith("sqlite"):
        return psycopg.connect(url, autocommit=True, prepare_threshold=0)
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    return connection


def create(url: str) -> None:
    """The table of an empty database."""
    key = "integer" if url.startswith("sqlite") else "bigint GENERATED ALWAYS AS IDENTITY"
    with closing(open_database(url)) as connection:
        for statement in SCHEMA.format(id=key).split(";"):
            connection.execute(statement)


def produce(store: Store, job: Job, lane: int, lanes: int, taken: list[float]) -> Iterator[None]:
    """Hand in the messages of one lane; `taken` gets the seconds that each waited for."""
    lines, began = job.lane(lane, lanes), time.monotonic()
    while group := list(itertools.islice(lines, store.group)):
        if job.rate:
            time.sleep(max(0.0, began + group[0][1] / job.rate - time.monotonic()))
        asked = time.monotonic()
        with store.together():
            for chat, number in group:
                store.insert(chat, number)
        taken += [time.monotonic() - asked] * len(group)
        yield


def work(store: Store, job: Job, room: int, answers: Answers, me: int) -> Iterator[None]:
    """Claim, let the agent's time pass, record the reply, until everything is answered."""
    held: deque[tuple[float, int, str]] = deque()
    while len(answers.shown) < job.messages:
        claimed = store.claim(room - len(held), me) if len(held) < room else []
        held += [(time.monotonic() + job.agent, *found) for found in claimed]
        due = sum(at <= time.monotonic() for at, _, _ in itertools.islice(held, store.group))
        with store.together() if due else nullcontext():
            done = [held.popleft()[1:] for _ in range(due)]
            won = [text for number, text in done if store.finish(number, text, me)]
        for text in won:
            answers.show(text)
        if not (claimed or due):
            time.sleep(0.002)
        yield


def main(part: str, url: str, job: Job) -> None:
    """Do one part of the job, or on SQLite both in one thread."""
    counter, answers, taken = Counter.installed(), Answers(job), list[float]()
    count, lanes = 1 if part == "both" else CONNECTIONS, list[Iterator[None]]()
    for n, store in enumerate(Store(url) for _ in range(count)):
        if part != "work":
            lanes.append(produce(store, job, n, count, taken))
        if part != "produce":
            lanes.append(work(store, job, job.concurrency // count, answers, os.getpid() * 100 + n))
    ready()
    counter.begin()
    began = time.monotonic()
    if part == "both":
        deque(itertools.zip_longest(*lanes), 0)
    else:
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(deque, lanes))
    finish(counter.result() | {"began": began, "taken": spread(taken)} | answers.result())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Job.read(sys.argv[3]))
