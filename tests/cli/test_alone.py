"""The command line while no service runs, and on what is not there or not right."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pysqlite3.dbapi2 as sqlite3

from bot.domain.ending import Ending
from tests.cli.asking import call
from tests.e2e.processes import NO_PLATFORM, Ground
from tests.fakes import faults
from tests.fakes.updates import Person

ADA = 700100201


async def test_a_run_of_a_killed_service_is_shown_and_recovered_without_a_service(
    ground: Ground,
) -> None:
    ground.agent.fail("turn", faults.held_before_storing())
    service = await ground.serve()
    await service.post_update(Person(ADA).text("hello"))
    await ground.agent.wait_for(ground.agent.turns)
    await service.kill()
    await ground.world.lease_runs_out(service.pid)
    stuck = await call(ground, "stuck", "--older", "0", "--offline", "--json")
    assert (stuck.code, stuck.json[0]["kind"]) == (1, "dead lease")
    assert await ground.world.rows("SELECT state FROM runs") == [("running",)]
    recovered = await call(ground, "recover", "--json")
    assert (recovered.code, recovered.json["released"]) == (0, 1)
    assert await ground.world.rows("SELECT state FROM runs") == [("ready",)]
    await ground.serve()
    await ground.world.settled()
    assert len(ground.world.telegram.texts(ADA)) == 1


async def test_what_is_not_there_is_said_with_the_fix(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    missing = ground.folder / "elsewhere.db"
    url = f"sqlite:///{missing}"
    listed, examined, current, pointed = await asyncio.gather(
        call(ground, "runs", "list", DATABASE_URL=url),
        call(ground, "doctor", "--json", DATABASE_URL=url),
        call(ground, "doctor", "--json", LEASE_SECONDS="1", HEARTBEAT_SECONDS="3"),
        call(ground, "webhook", "set", **NO_PLATFORM),
    )
    assert (listed.code, listed.out) == (2, "")
    assert "answerback serve" in listed.err
    assert examined.code == 1
    broken = {f["name"]: f["fix"] for f in examined.json if f["level"] == "problem"}
    assert "answerback db upgrade" in broken["database"]
    assert not missing.exists()
    assert current.code == 1
    assert "HEARTBEAT_SECONDS" in current.out
    assert pointed.code == 2
    assert "PUBLIC_URL is empty" in pointed.err


async def test_the_schema_is_made_shown_and_demanded(tmp_path: Path, sqlite_ground: Ground) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    made = await call(sqlite_ground, "db", "upgrade", DATABASE_URL=url)
    assert made.code == 0, made.err
    current = await call(sqlite_ground, "db", "current", "--json", DATABASE_URL=url)
    assert current.code == 0
    assert current.json["current"] == current.json["newest"]
    for table, code, says in (
        ("answerback_revision", 0, "at schema 9999; this version has"),
        ("alembic_version", 1, "which is too old: use the newer Answerback"),
    ):
        with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as newer:
            newer.execute(f"UPDATE {table} SET version_num = '9999'")
        told = await call(sqlite_ground, "db", "current", DATABASE_URL=url)
        assert told.code == code
        assert says in told.out


async def test_the_live_view_the_endings_and_dead_letters_are_shown(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    service = await ground.serve()
    await service.post_update({"update_id": 1, "message": {"chat": "nonsense"}})
    await service.post_update(Person(ADA).text("hello"))
    await ground.world.settled()
    top, picture, explained, letters = await asyncio.gather(
        call(ground, "top", "--json"),
        call(ground, "top", "--once"),
        call(ground, "explain", "--json"),
        call(ground, "letters", "list", "--json"),
    )
    assert top.json["ended_last_minute"] == {"answered": 1}
    assert [holder["alive"] for holder in top.json["holders"]] == [True]
    assert "oldest ready" in picture.out
    assert {row["ending"] for row in explained.json} == {ending.value for ending in Ending}
    assert all(row["sentence"] for row in explained.json)
    (letter,) = letters.json
    dismissed = await call(ground, "letters", "dismiss", str(letter["id"]))
    stuck = await call(ground, "stuck", "--offline", "--json")
    assert (dismissed.code, stuck.code, stuck.json) == (0, 0, [])
