"""Databases that can't serve, or not just now: said at the start, by `doctor` and by `stuck`."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from tests.cli.asking import Told, call
from tests.e2e.processes import Ground, Program
from tests.fakes import faults
from tests.fakes.recording import Json
from tests.fakes.updates import Person
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
    """What `doctor --json` found wrong: what it says, with the fix."""
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
    updates = [ADA.text(f"number {n}") for n in range(8)]
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
        seen = await call(ground, "stuck", "--offline", "--json")
        return "can't write" in [item["kind"] for item in seen.json]

    await until(stuck)
    assert "can't write" in problems(await call(ground, "doctor", "--json"))["processes"]
    everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(program.pid, resource.RLIMIT_FSIZE, everything)
    await until(program.is_ready)
    for update in updates:
        assert (await program.post_update(update)).status_code == 200
    await ground.world.settled()
    answers = [f"re: number {n}" for n in range(8)]
    assert ground.world.telegram.texts(ADA.number) == ["re: before", *answers]
    assert (await call(ground, "stuck", "--offline")).code == 0


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
    [line] = program.said
    assert encoding in line
    assert "ENCODING 'UTF8'" in line
    found = problems(await call(ground, "doctor", "--json", DATABASE_URL=postgres.url(name)))
    assert encoding in found["database encoding"]
