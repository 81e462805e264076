"""Refusals of PostgreSQL's own programs and of the system, each in words that help."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from bot.clock import SystemClock
from storage import backup
from storage.backup import BackupFailed
from storage.backup.postgres_dumps import dump
from storage.engine.database import parsed_url

REFUSES = """#!/bin/sh
echo 'pg_dump: error: aborting because of server version mismatch' >&2
echo 'pg_dump: detail: server version: 18.6; pg_dump version: 15.18' >&2
exit 1
"""


def test_a_pg_dump_that_is_too_old_says_which_one_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pg_dump"
    program.write_text(REFUSES, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    url = parsed_url("postgresql://127.0.0.1:1/answerback")
    with pytest.raises(BackupFailed, match=r"18\.6; .*install the client of the server's version"):
        dump(url, tmp_path / "part", made_at=0.0)


TELLS = """#!/bin/sh
echo "$0 $@" >> "$TOLD"
env >> "$TOLD"
echo '-- PostgreSQL database dump complete'
"""


def test_no_password_is_among_a_programs_words_or_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pg_dump"
    program.write_text(TELLS, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    dump(
        parsed_url("postgresql://ann:s3cret%2Fword@127.0.0.1:1/answerback"),
        tmp_path / "part",
        made_at=0.0,
    )
    told = (tmp_path / "told").read_text()
    assert "ann@127.0.0.1" in told
    assert "s3cret" not in told


@pytest.mark.parametrize("url", ["sqlite:///{}/own.db", "postgresql://127.0.0.1:1/answerback"])
def test_a_backup_that_this_user_may_not_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"as root made it")

    def refused(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(shutil, "copyfile", refused)
    with pytest.raises(BackupFailed, match=r"copy\.db can't be read: Permission denied"):
        backup.put_back(url.format(tmp_path), copy, SystemClock())


def test_a_folder_in_which_no_backup_can_be_put_back_is_named(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"a copy")
    with pytest.raises(BackupFailed, match=r"copy\.db/folder can't be made \(Not a directory\)"):
        backup.put_back(f"sqlite:///{copy}/folder/own.db", copy, SystemClock())
