"""The file of a backup, which is all on the disk or not there, and says that it is one."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.schema.tables.processes import RESTORED


class BackupFailed(Exception):
    """Nothing was made or put back; the text says why, and the fix."""


@contextmanager
def whole(target: Path, like: os.stat_result | None = None) -> Iterator[Path]:
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


_MARK = """INSERT INTO retention (what, id, at) VALUES ('{name}', 0, {at})
    ON CONFLICT (what) DO UPDATE SET id = 0, at = excluded.at WHERE retention.id = 1"""


def marking(made_at: float) -> str:
    """The statement by which a copy says that it is one, as `retention.mark_restored` does."""
    return _MARK.format(name=RESTORED, at=float(made_at))
