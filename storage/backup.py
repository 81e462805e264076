"""Backups of either database, made while others write, and putting one back.

A backup says of itself that it is one (`retention.mark_restored`), however it is put back: who
begins to work on it first settles what may have been done since.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
import stat
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL

from bot.domain.ports import Clock
from storage import retention
from storage.engine.database import Database, DatabaseSettings, parsed_url
from storage.schema.migrate import NEWEST, revisions

_READ_AT_ONCE = 65_536
_DUMPED = b"PostgreSQL database dump complete"
_PATIENCE = 30.0
"""Seconds to wait for somebody's lock on the file."""


class BackupFailed(Exception):
    """Nothing was made or put back; the text says why, and the fix."""


@dataclass(frozen=True, slots=True)
class PutBack:
    """A database that was put back. `aside` is where the one before it went, of SQLite."""

    aside: Path | None


def make(url: str, target: Path, clock: Clock) -> int:
    """Write a backup of the database to a file that is not there yet; returns its bytes. Others
    go on writing meanwhile. Raises BackupFailed."""
    parsed = parsed_url(url)
    if target.exists():
        raise BackupFailed(f"{target} is there already: name another file")
    made_at = clock.wall()
    with _whole(target) as part:
        if parsed.get_backend_name() == "sqlite":
            _copy_file(Path(str(parsed.database)), part, made_at)
        else:
            _dump(parsed, part, made_at)
    return target.stat().st_size


def put_back(url: str, source: Path, clock: Clock) -> PutBack:
    """Put a backup in the place of a SQLite file, or into an empty database of PostgreSQL. Raises
    BackupFailed."""
    if not source.is_file():
        raise BackupFailed(f"there is no file {source}")
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return PutBack(_replace_file(source, Path(str(parsed.database)), clock))
    _load(url, parsed, source, clock)
    return PutBack(None)


def mark(url: str, clock: Clock) -> None:
    """Have a database say that it came from a backup, when another program put it back. Raises
    DatabaseUnavailable."""
    db = Database(DatabaseSettings(url, pool=1), clock)
    try:
        db.now_sync(retention.mark_restored, clock.wall())
    finally:
        db.close()


@contextmanager
def _whole(target: Path, like: os.stat_result | None = None) -> Iterator[Path]:
    """A file beside the target, for us alone to read, which takes its name once it is whole and on
    the disk. `like`: whose it is to be. Raises BackupFailed."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise BackupFailed(f"{target} can't be written: {error.strerror}") from error
    os.close(number)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        if like is not None:
            _give(part, like)
        part.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise BackupFailed(f"{target} can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _give(part: Path, like: os.stat_result) -> None:
    """Have a file be read and written by those who could read and write the one before it."""
    if stat.S_ISREG(like.st_mode):
        part.chmod(stat.S_IMODE(like.st_mode))
    if os.geteuid() == 0:
        os.chown(part, like.st_uid, like.st_gid)


def _sync_folder(folder: Path) -> None:
    """Have the disk keep the names of a folder."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _copy_file(file: Path, part: Path, made_at: float) -> None:
    """Copy what is committed, without pages that hold only what was deleted."""
    if not file.exists():
        raise BackupFailed(f"there is no database file {file}")
    try:
        with _opened(file) as database:
            database.execute("VACUUM INTO ?", (str(part),))
        with _opened(part) as copy:
            _check(copy, part)
            _mark_file(copy, made_at)
    except sqlite3.Error as error:
        raise BackupFailed(f"SQLite could not copy {file}: {error}") from error


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(str(file), timeout=_PATIENCE, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


_MARK = """INSERT INTO retention (what, id, at) VALUES ('{name}', 0, {at})
    ON CONFLICT (what) DO UPDATE SET id = 0, at = excluded.at WHERE retention.id = 1"""


def _marking(made_at: float) -> str:
    return _MARK.format(name=retention.RESTORED, at=float(made_at))


def _mark_file(copy: sqlite3.Connection, made_at: float) -> None:
    copy.execute(_marking(made_at))


def _check(copy: sqlite3.Connection, file: Path) -> str:
    """The schema of a copy that is whole. Raises BackupFailed."""
    try:
        [(said,)] = copy.execute("PRAGMA integrity_check(1)").fetchall()
        [(revision,)] = copy.execute("SELECT version_num FROM alembic_version").fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise BackupFailed(f"{file} is no database of Answerback: {error}") from error
    if said != "ok":
        raise BackupFailed(f"{file} is damaged: {said}")
    return str(revision)


def _replace_file(source: Path, file: Path, clock: Clock) -> Path | None:
    """Check the backup, put the file that is there aside, and a copy of the backup in its place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    like = (file if file.exists() else file.parent).stat()
    with _nobody_works(file), _whole(file, like) as part:
        try:
            shutil.copyfile(source, part)
            _refuse_cut(part, source)
            with _opened(part) as copy:
                _refuse_newer(source, _check(copy, source))
                _mark_file(copy, clock.wall())
        except sqlite3.Error as error:
            raise BackupFailed(f"{source} can't be read: {error}") from error
        # Its log goes with it: beside another file it would destroy that.
        return _put_aside(file, clock)


def _refuse_cut(part: Path, source: Path) -> None:
    """Refuse a file that is shorter than its header says: SQLite takes the rest as zeros."""
    with part.open("rb") as raw:
        header = raw.read(100)
    page, pages = int.from_bytes(header[16:18]), int.from_bytes(header[28:32])
    if not header.startswith(b"SQLite format 3\0"):
        raise BackupFailed(f"{source} is no database of SQLite")
    if part.stat().st_size < (65_536 if page == 1 else page) * pages:
        raise BackupFailed(f"{source} is damaged: its end is missing")


def _refuse_newer(source: Path, revision: str) -> None:
    if revision > NEWEST:
        raise BackupFailed(
            f"{source} is at schema {revision}, newer than {NEWEST}: use the newer Answerback"
        )


def _put_aside(file: Path, clock: Clock) -> Path | None:
    if not file.exists():
        return None
    aside = file.with_name(f"{file.name}.before-{int(clock.wall())}")
    for end in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            file.with_name(file.name + end).rename(aside.with_name(aside.name + end))
    return aside


@contextmanager
def _nobody_works(file: Path) -> Iterator[None]:
    """Hold every name that a process has had on this file. Raises BackupFailed when one works."""
    held: list[IO[str]] = []
    try:
        for lock in file.parent.glob(f"{file.name}.*.lock"):
            held.append(lock.open("a", encoding="ascii"))
            try:
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                name = lock.name.removeprefix(f"{file.name}.").removesuffix(".lock")
                raise BackupFailed(
                    f"{name} works on {file}: stop the service, then run this again"
                ) from error
        yield
    finally:
        for handle in held:
            handle.close()


@contextmanager
def _reached(parsed: URL) -> Iterator[str]:
    """The database as PostgreSQL's own programs take it: no password is among a program's
    arguments, which everybody on the machine can read."""
    plain = parsed.set(drivername="postgresql")
    if not parsed.password:
        yield plain.render_as_string()
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="answerback-") as passes:
        escaped = str(parsed.password).replace("\\", "\\\\").replace(":", "\\:")
        passes.write(f"*:*:*:*:{escaped}\n")
        passes.flush()
        # `set` has no way to take a password off.
        bare = URL.create(
            plain.drivername,
            plain.username,
            None,
            plain.host,
            plain.port,
            plain.database,
            plain.query,
        )
        yield bare.update_query_dict({"passfile": passes.name}).render_as_string()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BackupFailed(
            f"{name} is not installed here; it comes with PostgreSQL's client. In compose.yaml's "
            "set-up use deploy/backup.sh and deploy/restore.sh"
        )
    return found


def _dump(parsed: URL, part: Path, made_at: float) -> None:
    """pg_dump's SQL, compressed, and one statement more."""
    words = [_program("pg_dump"), "--no-owner", "--no-privileges"]
    with _reached(parsed) as place, gzip.open(part, "wb") as out, _telling() as said:
        with subprocess.Popen([*words, place], stdout=subprocess.PIPE, stderr=said) as dump:
            assert dump.stdout is not None
            shutil.copyfileobj(dump.stdout, out)
        if dump.returncode:
            raise BackupFailed(f"pg_dump failed: {_last(said)}")
        out.write(f"\n{_search_path()}{_marking(made_at)};\n".encode())


def _load(url: str, parsed: URL, source: Path, clock: Clock) -> None:
    """Everything in one transaction, marked within it: also a dump that somebody else made."""
    if revisions(url)[0] is not None:
        raise BackupFailed(
            "the database has tables of Answerback already: make an empty one (createdb) and "
            "point DATABASE_URL there"
        )
    words = [_program("psql"), "--no-psqlrc", "--quiet", "--output=/dev/null"]
    words += ["--single-transaction", "--set=ON_ERROR_STOP=1", "--file=-"]
    with _reached(parsed) as place, _telling() as said, _unpacked(source) as dump:
        with subprocess.Popen([*words, place], stdin=subprocess.PIPE, stderr=said) as loading:
            assert loading.stdin is not None
            try:
                _feed(dump, loading.stdin, source)
                marking = f"\n{_search_path()}{_marking(clock.wall())};\n"
                loading.stdin.write(marking.encode())
                loading.stdin.close()
            except BrokenPipeError:
                pass  # it says why
            except BaseException:
                loading.kill()  # or it would commit the half that it has
                raise
        if loading.returncode:
            raise BackupFailed(f"psql could not put {source} back: {_last(said)}")


def _feed(dump: IO[bytes], psql: IO[bytes], source: Path) -> None:
    """Hand on the whole of a dump. Raises BackupFailed when its end is missing."""
    end = b""
    try:
        while read := dump.read(_READ_AT_ONCE):
            psql.write(read)
            end = (end + read)[-_READ_AT_ONCE:]
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise BackupFailed(f"{source} is damaged: {error}") from error
    if _DUMPED not in end:
        raise BackupFailed(f"{source} is no whole dump of PostgreSQL: its end is missing")


def _search_path() -> str:
    """A dump leaves no schema to be searched."""
    return "SELECT pg_catalog.set_config('search_path', 'public', false);\n"


@contextmanager
def _unpacked(source: Path) -> Iterator[IO[bytes]]:
    """The SQL of a dump, compressed or not."""
    with source.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.open(raw, "rb") as dump:
            yield dump  # type: ignore[misc]  # it reads as any file does


@contextmanager
def _telling() -> Iterator[IO[bytes]]:
    """Where a program says what went wrong."""
    with tempfile.TemporaryFile() as said:
        yield said


def _last(said: IO[bytes]) -> str:
    """The last line that a program said."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
