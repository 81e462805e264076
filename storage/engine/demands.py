"""The demands on a database: asked at every start and by `doctor`, each with its fix.

A start is refused for whatever would lose a message or do its work twice; the rest is worth a
warning. Asking needs none of our tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.findings import Finding, Level, fine
from bot.domain.ports import Clock
from storage.engine import copy_lock, read_only
from storage.engine.database import parsed_url
from storage.engine.sqlite import PATIENCE

_READ_COMMITTED = "read committed"
_SAFE_SQLITE = (3, 51, 3)
"""Earlier versions can corrupt a WAL file when two connections write and checkpoint at once."""
_SAFE_POSTGRES = (14, 0)
_ROOM = 10
"""Connections that should be left."""
_SLOW = 0.25
_CLOCK_OFF = 2.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """A database as it presents itself. `refusal` says why nothing can be written, empty where
    something can, and `foreign` that it is this user alone who may not; `room` counts the
    connections that are left, None without such a bound; `took` are the seconds that a question
    took, and its clock is `ahead` of ours by seconds."""

    product: str
    version: tuple[int, ...]
    encoding: str = "UTF8"
    isolation: str = _READ_COMMITTED
    shares_sessions: bool = False
    refusal: str = ""
    foreign: bool = False
    durable: bool = True
    room: int | None = None
    took: float = 0.0
    ahead: float = 0.0

    @property
    def number(self) -> str:
        return ".".join(map(str, self.version))


@dataclass(frozen=True, slots=True)
class _Demand:
    """One thing that a database must offer. `well` and `wrong` say what was found."""

    name: str
    met: Callable[[DatabaseFacts], bool]
    well: str
    wrong: str
    fix: str
    level: Level = Level.PROBLEM

    def judged(self, facts: DatabaseFacts) -> Finding:
        if self.met(facts):
            return fine(self.name, self.well.format(f=facts))
        return Finding(self.name, self.level, self.wrong.format(f=facts), self.fix)


_DEMANDS = (
    _Demand(
        "database",
        lambda f: f.product != "SQLite" or f.version >= _SAFE_SQLITE,
        "{f.product} {f.number}",
        "SQLite {f.number} can corrupt its write-ahead log",
        "install pysqlite3 0.6.1 or newer",
    ),
    _Demand(
        "database version",
        lambda f: f.product != "PostgreSQL" or f.version >= _SAFE_POSTGRES,
        "{f.number} is known to work",
        "PostgreSQL {f.number} is older than any that is tested",
        "use PostgreSQL 14 or newer",
        Level.WARNING,
    ),
    _Demand(
        "database sessions",
        lambda f: not f.shares_sessions,
        "each connection has a session of its own",
        "a pooler in transaction mode stands before the database: locks and sessions do not hold",
        "point DATABASE_URL at the server itself, or set the pooler to session mode",
    ),
    _Demand(
        "database encoding",
        lambda f: f.encoding == "UTF8",
        "{f.encoding}",
        "the database's encoding is {f.encoding}: it can't hold every text",
        "create one with ENCODING 'UTF8' TEMPLATE template0, and name it in DATABASE_URL",
    ),
    _Demand(
        "database isolation",
        lambda f: f.isolation == _READ_COMMITTED,
        "{f.isolation}",
        "its transactions are {f.isolation}, whatever they ask for",
        "use a server that offers 'read committed', as PostgreSQL does",
    ),
    _Demand(
        "database writes",
        lambda f: not f.refusal or f.foreign,
        "it can be written",
        "it can't be written: {f.refusal}",
        "make room on its disk, end what holds it (a backup, a copy), let this user write, and "
        "name the primary in DATABASE_URL",
    ),
    _Demand(
        "database rights",
        lambda f: not f.foreign,
        "this user may write it",
        "{f.refusal}",
        "or let this user write",
    ),
    _Demand(
        "database durability",
        lambda f: f.durable,
        "a commit outlives the server",
        "fsync or synchronous_commit is off: a message that was acknowledged may be lost",
        "switch both on",
        Level.WARNING,
    ),
    _Demand(
        "connections",
        lambda f: f.room is None or f.room >= _ROOM,
        "enough are left",
        "only {f.room} are left",
        "raise max_connections, or lower DATABASE_POOL",
        Level.WARNING,
    ),
    _Demand(
        "database latency",
        lambda f: f.took <= _SLOW,
        "{f.took:.4f} s for a question",
        "{f.took:.2f} s for a question",
        "a database in the same network answers in a thousandth",
        Level.WARNING,
    ),
    _Demand(
        "clock",
        lambda f: abs(f.ahead) <= _CLOCK_OFF,
        "the database's is {f.ahead:+.2f} s from this machine's",
        "the database's is {f.ahead:+.2f} s from this machine's",
        "synchronise both machines (NTP)",
        Level.WARNING,
    ),
)


def judge(facts: DatabaseFacts) -> Sequence[Finding]:
    """The finding of every demand."""
    return [demand.judged(facts) for demand in _DEMANDS]


def refuse_unfit(url: str, clock: Clock) -> Sequence[Finding]:
    """The warnings about a database that may be used. Raises ConfigurationError, with the fix,
    about any other; DatabaseUnavailable."""
    found = judge(facts_of(url, clock))
    for finding in found:
        if finding.level is Level.PROBLEM:
            raise ConfigurationError(f"DATABASE_URL: {finding.says}; {finding.fix}")
    return [finding for finding in found if finding.level is Level.WARNING]


def facts_of(url: str, clock: Clock) -> DatabaseFacts:
    """Ask a database. A file of SQLite that is not there yet has no faults. Raises
    ConfigurationError, DatabaseUnavailable."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _of_file(Path(str(parsed.database)), clock)
    from storage.engine import server  # noqa: PLC0415 - its driver, only where it is used

    return server.facts_of(parsed, clock)


def refusal_of(url: str) -> str:
    """The reason that a write is refused now, found by one that leaves nothing behind; empty where
    none is. Raises ConfigurationError, DatabaseUnavailable."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _refused_by_file(Path(str(parsed.database)))
    from storage.engine import server  # noqa: PLC0415 - as above

    return server.refusal_of(parsed)


def unreachable(url: URL, error: BaseException | None) -> DatabaseUnavailable:
    """The error for what was met on the way to this database."""
    place = url.set(query={}).render_as_string(hide_password=True)
    why = str(error).partition("\n")[0]
    return DatabaseUnavailable(f"DATABASE_URL: {place} can't be used now: {why}")


def _of_file(file: Path, clock: Clock) -> DatabaseFacts:
    version, began = tuple(sqlite3.sqlite_version_info), clock.monotonic()
    refusal = _refused_by_file(file) if read_only.exists(file) else ""
    took = clock.monotonic() - began
    foreign = not read_only.may_write(file) and read_only.belongs_to_another(file)
    return DatabaseFacts("SQLite", version, refusal=refusal, foreign=foreign, took=took)


def _refused_by_file(file: Path) -> str:
    if not read_only.may_write(file):
        return read_only.refusal(file)
    if copy_lock.is_file_held(file):
        return copy_lock.AT_WORK
    try:
        with closing(sqlite3.connect(file, timeout=PATIENCE, isolation_level=None)) as raw:
            raw.execute("BEGIN IMMEDIATE")
            # Written as it is: a page and a commit, that no disk which is full would take.
            [(number,)] = raw.execute("PRAGMA user_version").fetchall()
            raw.execute(f"PRAGMA user_version = {int(number)}")
            raw.execute("COMMIT")
    except sqlite3.Error as error:
        return str(error)
    return ""
