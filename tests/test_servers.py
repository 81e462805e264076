"""Servers for every other test: they start anywhere and leave nothing behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
import redis

from tests.servers import Postgres, ServerUnavailable, Stop, Valkey
from tests.servers.postgres import public_copy

STARTER = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background ignores it.
from tests.servers import Postgres, Valkey
with Postgres() as postgres, Valkey() as valkey:
    print(*(pid for server in (postgres, valkey) for pid in (server.pid, server.watchdog_pid)))
    print(postgres.folder, postgres.data_folder, valkey.folder, flush=True)
    signal.pause()
"""


def _wait_for_the_end_of(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([process], [], [], 20)[0], f"process {pid} is still there"
    finally:
        os.close(process)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_servers_end_with_the_process_that_started_them(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        folders = [Path(os.fsdecode(name)) for name in starter.stdout.readline().split()]
        assert all(folder.is_dir() for folder in folders)
        starter.send_signal(how)
    for pid in pids:
        _wait_for_the_end_of(pid)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("how", list(Stop))
def test_a_commit_outlives_the_server_that_took_it(postgres: Postgres, how: Stop) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT 1 AS row")
        postgres.restart(how)
    with psycopg.connect(postgres.url()) as connection:
        assert connection.execute("SELECT row FROM kept").fetchall() == [(1,)]


def test_a_restarted_valkey_has_forgotten_everything(valkey: Valkey, valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url) as client:
        client.set("key", "value")
        valkey.restart(Stop.KILL)
        assert client.get("key") is None


def test_both_servers_also_listen_on_a_port_of_their_own() -> None:
    with Postgres(tcp=True) as postgres, Valkey(tcp=True) as valkey:
        with psycopg.connect(postgres.tcp_url()) as by_port:
            assert by_port.execute("SELECT 1").fetchone() == (1,)
        with psycopg.connect(postgres.url()) as by_socket:
            assert by_socket.execute("SELECT 1").fetchone() == (1,)
        with redis.Redis.from_url(valkey.tcp_url()) as client:
            assert client.ping()


def test_a_deep_temporary_folder_does_not_make_the_socket_path_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with Valkey() as valkey:
        valkey.flush()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs that nobody else can run")
def test_root_starts_programs_that_lie_in_a_private_folder(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (postgres.programs.parent / "share").exists():
        pytest.skip("the system's PostgreSQL can't be copied")
    tmp_path.chmod(0o700)
    monkeypatch.setenv("PG_BIN", str(public_copy(postgres.programs, tmp_path / "private")))
    with Postgres() as private, psycopg.connect(private.url()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_missing_program_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(ServerUnavailable, match="PG_BIN"):
        Postgres()
    monkeypatch.setenv("VALKEY_BIN", str(tmp_path / "valkey-server"))
    with pytest.raises(ServerUnavailable, match="VALKEY_BIN"):
        Valkey()
