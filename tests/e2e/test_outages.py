"""The database and Redis go away and come back: slower, sorry with a 503, and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial

import psycopg

from tests.e2e.processes import Ground, Program
from tests.fakes.telegram.faults import held_before_storing
from tests.fakes.telegram.webhook import Hook
from tests.fakes.updates import Person
from tests.limits import until
from tests.servers import Postgres, Stop, Valkey
from tests.world import PUBLIC, SECRET

ADA, BOB = Person(700_100_231), Person(700_100_232)
EVA = "whatsapp:+15550100017"


async def test_b82_while_postgresql_is_stopped_webhooks_get_503_and_nothing_is_lost(
    postgres: Postgres, postgres_ground: Ground
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    program = await ground.serve()
    update = ADA.text("hello")
    await asyncio.to_thread(postgres.stop, Stop.IMMEDIATE)
    refused, form = await asyncio.gather(
        program.post_update(update), world.twilio.inbound("hi", from_=EVA)
    )
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert {a.status for a in form.attempts} == {503}
    assert (await program.get("/healthz")).status_code == 200
    assert (await program.get("/readyz")).status_code == 503
    await asyncio.to_thread(postgres.start)
    await program.ready()
    assert (await program.post_update(update)).status_code == 200
    assert {a.status for a in await world.twilio.repeat(form.form)} == {200}
    await world.settled()
    assert [tuple(r) for r in await world.rows("SELECT text FROM inbound ORDER BY text")] == [
        ("hello",),
        ("hi",),
    ]
    assert world.telegram.texts(ADA.number) == ["re: hello"]
    assert world.twilio.texts(EVA) == ["re: hi"]
    assert "Traceback" not in program.output


async def test_postgresql_is_restarted_twice_under_load(
    postgres: Postgres, postgres_ground: Ground
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    program = await ground.serve(BURST="each")
    await world.telegram.main.webhook.point(Hook(f"{PUBLIC}/telegram/webhook", SECRET))
    people = [Person(700_400_000 + n) for n in range(20)]
    for round_ in range(4):
        for person in people:
            world.telegram.enqueue(person.text(f"hello {round_}"))
        await ground.agent.wait_for(partial(_asked, ground, 15 * round_))
        if round_ in (1, 2):
            await asyncio.to_thread(postgres.restart, Stop.IMMEDIATE)
    await until(lambda: not world.telegram.main.queue.pending)
    await world.settled()
    endings = Counter(r[0] for r in await world.rows("SELECT ending FROM runs"))
    assert endings.total() == 4 * len(people)
    assert set(endings) <= {"answered", "uncertain"}
    shown = Counter((m.chat_id, m.text) for m in world.telegram.all_messages())
    answers = {key: n for key, n in shown.items() if key[1].startswith("re:")}
    assert set(answers.values()) == {1}
    assert len(answers) >= endings["answered"]
    assert program.running


def _asked(ground: Ground, times: int) -> bool:
    return len(ground.agent.turns()) >= times


async def test_postgresql_is_restarted_inside_the_recovery_pass(
    postgres: Postgres, postgres_ground: Ground
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    dying = await ground.serve()
    thinking = ground.agent.fail("turn", held_before_storing())
    assert (await dying.post_update(ADA.text("hello"))).status_code == 200
    await until(lambda: bool(thinking.hits))
    await ground.serve("worker")
    with suppress(psycopg.OperationalError), psycopg.connect(world.database_url) as held:
        held.execute("LOCK events IN EXCLUSIVE MODE")
        await dying.kill()
        await world.lease_runs_out(dying.pid)
        await world.until(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND datname = current_database() AND query LIKE '%events%'",
            lambda rows: rows[0][0] >= 1,
        )
        await asyncio.to_thread(postgres.restart, Stop.IMMEDIATE)
    await world.settled()
    assert world.telegram.texts(ADA.number) == ["re: hello"]
    assert [tuple(r) for r in await world.rows("SELECT deaths, failures FROM runs")] == [(1, 0)]


async def test_redis_flushed_stopped_and_restarted_costs_seconds_at_most(
    postgres_ground: Ground, valkey: Valkey, valkey_url: str
) -> None:
    ground = postgres_ground
    web = await ground.serve("web", REDIS_URL=valkey_url)
    worker = await ground.serve("worker", REDIS_URL=valkey_url)
    asked = 0

    async def is_answered() -> None:
        nonlocal asked
        asked += 1
        assert (await web.post_update(BOB.text(f"hello {asked}"))).status_code == 200
        await ground.world.settled()
        assert len(ground.world.telegram.texts(BOB.number)) == asked

    await is_answered()
    valkey.flush()
    await is_answered()
    await asyncio.to_thread(valkey.stop, Stop.KILL)
    await is_answered()
    await asyncio.to_thread(valkey.start)
    await is_answered()
    for program in (web, worker):
        await quiet(program)


async def quiet(program: Program) -> None:
    """It went on, and told of the loss in one line."""
    assert program.running
    assert "Traceback" not in program.output
    assert sum("wake-ups wait" in line for line in program.said) == 1
