"""Dumps of a PostgreSQL database by its own programs, and putting one into an empty database."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import URL

from bot.domain.ports import Clock
from storage.backup.whole import BackupFailed, marking
from storage.schema.migrate import NEWEST, schema_of

_READ_AT_ONCE = 65_536
_DUMPED = b"PostgreSQL database dump complete"
_REFUSE_NEWER = """
DO $$ DECLARE found text := (SELECT version_num FROM public.alembic_version); BEGIN
    IF found > '{newest}' THEN
        RAISE EXCEPTION 'it is at schema %, newer than {newest}: use the newer Answerback', found;
    END IF;
END $$;
"""


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


def dump(parsed: URL, part: Path, made_at: float) -> None:
    """Write pg_dump's SQL, compressed, and one statement more. Raises BackupFailed."""
    words = [_program("pg_dump"), "--no-owner", "--no-privileges"]
    with _reached(parsed) as place, gzip.open(part, "wb") as out, _telling() as said:
        with subprocess.Popen([*words, place], stdout=subprocess.PIPE, stderr=said) as dumping:
            assert dumping.stdout is not None
            shutil.copyfileobj(dumping.stdout, out)
        if dumping.returncode:
            raise BackupFailed(f"pg_dump failed: {_last(said)}{_advice(_last(said))}")
        out.write(_mark(made_at))


def load(url: str, parsed: URL, source: Path, clock: Clock) -> None:
    """Put everything in, in one transaction, marked within it: also a dump that somebody else made.
    psql commits at our word alone: it reads our death as the end of its input. Raises
    BackupFailed."""
    if schema_of(url) is not None:
        raise BackupFailed(
            "the database has tables of Answerback already: make an empty one (createdb) and "
            "point DATABASE_URL there"
        )
    words = [_program("psql"), "--no-psqlrc", "--quiet", "--output=/dev/null"]
    words += ["--set=ON_ERROR_STOP=1", "--set=VERBOSITY=terse", "--file=-"]
    with _reached(parsed) as place, _telling() as said, _unpacked(source) as unpacked:
        with subprocess.Popen([*words, place], stdin=subprocess.PIPE, stderr=said) as loading:
            assert loading.stdin is not None
            try:
                loading.stdin.write(b"BEGIN;\n")
                _feed(unpacked, loading.stdin, source)
                loading.stdin.write(_last_words(clock))
                loading.stdin.close()
            except BrokenPipeError:
                pass  # it says why
            except BaseException:
                loading.kill()
                raise
        if loading.returncode:
            raise BackupFailed(f"psql could not put {source} back: {_last(said)}")


def _feed(sql: IO[bytes], psql: IO[bytes], source: Path) -> None:
    """Hand on the whole of a dump. Raises BackupFailed when its end is missing."""
    end = b""
    try:
        while read := sql.read(_READ_AT_ONCE):
            psql.write(read)
            end = (end + read)[-_READ_AT_ONCE:]
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise BackupFailed(f"{source} is damaged: {error}") from error
    if _DUMPED not in end:
        raise BackupFailed(f"{source} is no whole dump of PostgreSQL: its end is missing")


def _last_words(clock: Clock) -> bytes:
    """The end of what psql is told."""
    return _REFUSE_NEWER.format(newest=NEWEST).encode() + _mark(clock.wall()) + b"COMMIT;\n"


def _mark(made_at: float) -> bytes:
    """The last statements of a dump, which leaves no schema to be searched."""
    path = "SELECT pg_catalog.set_config('search_path', 'public', false);"
    return f"\n{path}\n{marking(made_at)};\n".encode()


@contextmanager
def _unpacked(source: Path) -> Iterator[IO[bytes]]:
    """The SQL of a dump, compressed or not."""
    with source.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.open(raw, "rb") as unpacked:
            yield unpacked  # type: ignore[misc]  # it reads as any file does


@contextmanager
def _telling() -> Iterator[IO[bytes]]:
    """A place for a program to say what went wrong."""
    with tempfile.TemporaryFile() as said:
        yield said


def _advice(why: str) -> str:
    """A step to take where pg_dump is older than the server, which it refuses."""
    if "pg_dump version" not in why:
        return ""
    return (
        ". It must not be older than the server: install the client of the server's version and "
        "put its folder first into PATH"
    )


def _last(said: IO[bytes]) -> str:
    """The last line that a program said."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
