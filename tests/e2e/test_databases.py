"""Databases that can't serve, or not just now: said at the start, by `doctor` and by `stuck`."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from tests.cli.asking import Told, call
from tests.e2e.processes import Ground, Program, open_ground
from tests.fakes import faults
from tests.fakes.recording import Json
from tests.fakes.updates import Person
from tests.kit.conversation import people
from tests.kit.pooler import pooled
from tests.limits import until
from tests.servers import Postgres

ADA = Person(700_100_251)
EVA = Person(700_100_252)
_HOLD = """import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()"""


def problems(examined: Told) -> dict[str, str]:
    """The faults that `doctor --json` found: each in its words, with the fix."""
    assert examined.code == 1, examined.out
    return {f["name"]: f"{f['says']}; {f['fix']}" for f in examined.json if f["level"] == "problem"}


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Another program has the file for itself, as a backup does."""
    words = [sys.executable, "-c", _HOLD, str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        yield
        holder.stdin.close()


async def refused(program: Program, updates: list[Json]) -> None:
    for update in updates:
        answer = await program.post_update(update)
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)


async def readiness(program: Program) -> httpx.Response:
    return await program.get("/readyz")


def file_of(ground: Ground) -> Path:
    return Path(ground.world.database_url.removeprefix("sqlite:///"))


@pytest.mark.long
async def test_b125_a_file_that_somebody_holds_loses_nothing(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    program = await ground.serve(COMMIT_WITHIN="0.2")
    turn = ground.agent.fail("turn", faults.held_before_storing())
    await program.takes(EVA.text("under way"))
    await ground.agent.wait_for(ground.agent.turns)
    updates = [ADA.text(f"number {n}") for n in range(5)]
    with held(file_of(ground)):
        await refused(program, updates)
        assert "locked" in problems(await call(ground, "doctor", "--json"))["database writes"]
        seen = await call(ground, "stuck", "--offline", "--json")
        assert "locked" in str([item["why"] for item in seen.json])
        turn.release()
    await until(program.is_ready)
    for update in updates:
        await program.takes(update)
    await ground.world.settled()
    assert ground.world.telegram.texts(EVA.number) == ["re: under way"]
    said = " ".join(ground.world.telegram.texts(ADA.number))
    assert [said.count(f"number {n}") for n in range(5)] == [1] * 5


def mounted(*words: str | Path) -> None:
    """Call `mount`, which root alone may do, and not everywhere."""
    program = shutil.which("mount")
    if os.geteuid() != 0 or program is None:
        pytest.skip("root alone may mount a disk")
    if subprocess.run([program, *words], check=False).returncode != 0:
        pytest.skip("nobody may mount a disk here")


@pytest.fixture
def read_only(sqlite_ground: Ground) -> Iterator[Path]:
    """The folder of the database, on a disk that went read only as one with errors does."""
    folder = file_of(sqlite_ground).parent
    mounted("--bind", folder, folder)
    mounted("-o", "remount,ro,bind", folder)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


async def test_b125_a_disk_that_is_read_only_is_named(
    sqlite_ground: Ground, read_only: Path
) -> None:
    ground = sqlite_ground
    found = problems(await call(ground, "doctor", "--json"))
    assert f"{read_only} can't be written" in found["disk"]
    assert "it can't be written" in found["database writes"]
    stuck = await call(ground, "stuck", "--offline", "--json")
    assert [item["kind"] for item in stuck.json] == ["database unfit"]
    started = await ground.spawn("serve")
    assert await started.ended() == 2
    assert "it can't be written" in started.output
    nowhere = f"sqlite:///{read_only}/new.db"
    found = problems(await call(ground, "doctor", "--json", DATABASE_URL=nowhere))
    assert f"{read_only} can't be written" in found["disk"]


async def test_b125_a_full_disk_is_named_and_needs_no_restart(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    # Where the lease can't be renewed it is soon lost, and readiness stays red.
    program = await ground.serve(BURST="each", LEASE_SECONDS="3")
    port = program.url.rpartition(":")[2]
    await program.post_update(ADA.text("before"))
    await ground.world.settled()
    log = Path(f"{file_of(ground)}-wal")
    full = log.stat().st_size + 4096
    resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
    waiting = people(8)
    updates = [person.text("at last") for person in waiting]
    await refused(program, updates)

    async def told() -> str:
        answer = await program.get("/readyz")
        return answer.text if "did not take the write" in answer.text else ""

    assert '"ready":false' in await until(told)

    async def examined() -> str:
        found = problems(await call(ground, "doctor", "--json", PORT=port))
        return found.get("readiness", "")

    assert "did not take the write" in await until(examined)

    async def stuck() -> bool:
        seen = await call(ground, "stuck", "--offline", "--json", LEASE_SECONDS="3")
        return "can't write" in [item["kind"] for item in seen.json]

    await until(stuck)
    found = problems(await call(ground, "doctor", "--json", LEASE_SECONDS="3"))
    assert "can't write" in found["processes"]
    everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(program.pid, resource.RLIMIT_FSIZE, everything)
    await until(program.is_ready)
    for update in updates:
        assert (await program.post_update(update)).status_code == 200
    await ground.world.settled()
    for person in waiting:
        assert ground.world.telegram.texts(person.number) == ["re: at last"]
    assert (await call(ground, "stuck", "--offline")).code == 0


async def test_b125_a_postgresql_that_is_set_to_read_only_is_named_while_it_lasts(
    postgres_ground: Ground,
) -> None:
    """As a provider does it when the disk is nearly full."""
    ground = postgres_ground
    program = await ground.serve()
    setting = "ALTER DATABASE {} SET default_transaction_read_only = {}"
    with psycopg.connect(ground.world.database_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        other = "pid <> pg_backend_pid() AND datname = current_database()"
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {other}"
        connection.execute(sql.SQL(setting).format(name, sql.SQL("on")))
        connection.execute(end)
        await refused(program, [ADA.text("number 0")])
        assert (await readiness(program)).status_code == 503
        assert "read only" in problems(await call(ground, "doctor", "--json"))["database writes"]
        seen = await call(ground, "stuck", "--offline", "--json")
        assert "read only" in str([item["why"] for item in seen.json])
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(sql.SQL(setting).format(name, sql.SQL("off")))
        connection.execute(end)
    await until(program.is_ready)
    assert (await program.post_update(ADA.text("number 1"))).status_code == 200
    await ground.world.settled()
    assert ground.world.telegram.texts(ADA.number) == ["re: number 1"]


@pytest.fixture
def small_disk(postgres: Postgres) -> Iterator[Path]:
    """A disk of 64 MB on which PostgreSQL may write."""
    postgres.ensure_running()
    owner = f"size=64m,mode=700,uid={postgres.folder.stat().st_uid}"
    place = postgres.folder / "disk"
    place.mkdir()
    mounted("-t", "tmpfs", "-o", owner, "tmpfs", place)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)
    place.rmdir()


@pytest.fixture
async def roomless_ground(
    postgres: Postgres, postgres_template: str, small_disk: Path, tmp_path: Path
) -> AsyncIterator[Ground]:
    """A ground whose database stands on the small disk."""
    names = {"space": sql.Identifier("small"), "template": sql.Identifier(postgres_template)}
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        space = sql.SQL("CREATE TABLESPACE {} LOCATION {}")
        connection.execute(space.format(names["space"], str(small_disk)))
        made = "CREATE DATABASE roomless TEMPLATE {template} TABLESPACE {space}"
        connection.execute(sql.SQL(made).format(**names))
    async with open_ground(postgres.url("roomless"), tmp_path) as ground:
        yield ground
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("DROP DATABASE roomless WITH (FORCE)")
        connection.execute("DROP TABLESPACE small")


def filled(disk: Path) -> Path:
    """A file that leaves no room on the disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free)
    return ballast


async def test_b125_a_full_disk_under_postgresql_is_named_and_needs_no_restart(
    roomless_ground: Ground, small_disk: Path
) -> None:
    ground = roomless_ground
    program = await ground.serve(BURST="each")
    ballast = filled(small_disk)
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 1000)))  # A text that does not compress.
    waiting = people(40)
    updates = [person.text(f"{long} {person.number}") for person in waiting]
    taken = 0
    while (answer := await program.post_update(updates[taken])).status_code == 200:
        taken += 1  # Pages that were there already had room for it.
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    for _ in range(3):  # Renewals go through all the while.
        seen = await readiness(program)
        assert (seen.status_code, '"lease":{"ok":true' in seen.text) == (503, True), seen.text
    found = problems(await call(ground, "doctor", "--json"))
    assert "No space left on device; make room" in found["database writes"]
    stuck = await call(ground, "stuck", "--offline", "--json")
    assert "No space left" in str([item["why"] for item in stuck.json])
    started = await ground.spawn("serve")
    assert await started.ended() == 2
    assert "No space left on device" in started.output
    ballast.unlink()
    await until(program.is_ready)
    for update in updates:
        assert (await program.post_update(update)).status_code == 200
    await ground.world.settled()
    for person in waiting:
        assert ground.world.telegram.texts(person.number) == [f"re: {long} {person.number}"]


async def test_b123_behind_a_pooler_in_transaction_mode_it_does_not_start(
    postgres_ground: Ground,
) -> None:
    ground = postgres_ground
    async with pooled(ground.world.database_url, 4) as pooler:
        program = await ground.spawn("serve", DATABASE_URL=pooler.url)
        assert await program.ended() == 2
        [line] = [line for line in program.said if "pooler" in line]
        assert "session mode" in line
        found = problems(await call(ground, "doctor", "--json", DATABASE_URL=pooler.url))
        assert "session mode" in found["database sessions"]
        upgraded = await call(ground, "db", "upgrade", DATABASE_URL=pooler.url)
        assert (upgraded.code, "session mode" in upgraded.err) == (2, True)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_b124_a_database_that_is_not_utf_8_is_refused(
    postgres: Postgres, postgres_ground: Ground, encoding: str
) -> None:
    ground, name = postgres_ground, f"enc_{encoding.lower()}"
    create = "CREATE DATABASE {} ENCODING {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(sql.SQL(create).format(sql.Identifier(name), encoding))
    program = await ground.spawn("serve", DATABASE_URL=postgres.url(name))
    assert await program.ended() == 2
    line = program.said[-1]
    assert encoding in line
    assert "ENCODING 'UTF8'" in line
    found = problems(await call(ground, "doctor", "--json", DATABASE_URL=postgres.url(name)))
    assert encoding in found["database encoding"]
