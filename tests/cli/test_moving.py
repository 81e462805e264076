"""A move to another database and back to the old one, as an operator calls it."""

from __future__ import annotations

from tests.cli.asking import call
from tests.e2e.processes import Ground
from tests.fakes.updates import Person

ADA = 700100201


async def test_a_database_is_moved_by_one_command_and_the_old_one_says_where_it_went(
    sqlite_ground: Ground, blank_postgres_url: str
) -> None:
    ground = sqlite_ground
    secret = f"{blank_postgres_url}&password=s3cret"
    service = await ground.serve()
    await service.takes(Person(ADA).text("hello"))
    await ground.world.settled()
    refused = await call(ground, "db", "copy", secret)
    assert refused.code == 1
    assert f"process {service.pid} on" in refused.err
    assert await service.stop() == 0
    moved = await call(ground, "db", "copy", secret)
    assert moved.code == 0
    assert "comparing runs: 1 of 1 rows" in moved.err
    assert "are the same in both" in moved.out
    started = await ground.spawn("serve")
    assert await started.ended() == 2
    assert "DATABASE_URL: the database has moved to postgresql://" in started.output
    assert "s3cret" not in moved.out + refused.err + started.output
    listed = await call(ground, "runs", "list", "--json", DATABASE_URL=secret)
    assert [run["ending"] for run in listed.json] == ["answered"]
    back = await call(ground, "db", "copy", "sqlite:///back.db", "--json", DATABASE_URL=secret)
    assert (back.code, back.err) == (0, "")
    assert {t["name"]: t["rows"] for t in back.json["tables"]}["runs"] == 1
    for words, code, says in (
        (("doctor",), 1, "the database has moved to"),
        (("db", "reopen"), 2, "give --yes"),
        (("db", "reopen", "--yes"), 0, "must not be used any more"),
        (("db", "reopen", "--yes"), 1, "there is nothing to undo"),
        (("runs", "list"), 0, "answered"),
    ):
        told = await call(ground, *words)
        assert told.code == code, told
        assert says in told.out + told.err, told
