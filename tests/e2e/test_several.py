"""Several processes on one PostgreSQL: one answer, whoever lives, sleeps or wakes late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count as count_from
from typing import Any

from tests.e2e.processes import Ground, Program
from tests.fakes.telegram.faults import held_after_storing, held_before_storing
from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, SENDER
from tests.fakes.updates import Person
from tests.kit.receipts import RECEIPTS
from tests.limits import until
from tests.ports import own_port
from tests.world import PUBLIC

ADA, BOB, CYD = Person(700_100_221), Person(700_100_222), Person(700_100_223)
EVA = "whatsapp:+15550100016"
MANY = 20


async def count(ground: Ground, table: str) -> int:
    found: int = (await ground.world.rows(f"SELECT count(*) FROM {table}"))[0][0]
    return found


async def pair(ground: Ground, **changes: str) -> tuple[Program, Program]:
    one, two = await asyncio.gather(ground.serve(**changes), ground.serve(**changes))
    return one, two


async def test_twenty_identical_deliveries_at_once_make_one_run_and_one_send(
    postgres_ground: Ground,
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    one, two = await pair(ground)
    update = ADA.text("hello")
    form = inbound_form(sid="SM" + 32 * "7", account=ACCOUNT, from_=EVA, to=SENDER, body="hi")
    reached = [f"{p.url}/whatsapp/webhook" for p in (one, two)]
    world.twilio.reach.clear()
    signed_for = f"{PUBLIC}/whatsapp/webhook"
    await asyncio.gather(
        *(p.takes(update) for p in (one, two) for _ in range(MANY // 2)),
    )
    statuses: set[int | None] = set()
    for target in reached:
        world.twilio.reach[signed_for] = target
        attempts = await world.twilio.repeat(form, signed_for, times=MANY // 2)
        statuses |= {a.status for a in attempts}
    assert 200 in statuses
    assert statuses <= {200, 503}
    await world.settled()
    assert await count(ground, "inbound") == await count(ground, "runs") == 2
    assert world.telegram.texts(ADA.number) == ["re: hello"]
    assert world.twilio.texts(EVA) == ["re: hi"]
    assert len(world.telegram.calls_of("sendMessage")) == 1


async def test_b86_four_processes_at_once_on_an_empty_database_all_come_up(
    blank_postgres_ground: Ground,
) -> None:
    ground = blank_postgres_ground
    port = own_port()
    roles = ("web", "web", "worker", "worker")
    four = [
        await ground.spawn("serve", "--role", role, PORT=str(port if n == 0 else 0))
        for n, role in enumerate(roles)
    ]
    await four[0].accepts(port)
    accepted = asyncio.create_task(_accepted(four[0]))
    await asyncio.gather(*(program.ready() for program in four))
    person = await accepted
    assert await count(ground, "inbound") == 1
    for program in four:
        assert "DuplicateTable" not in program.output
        assert "UniqueViolation" not in program.output
    await ground.world.settled()
    assert ground.world.telegram.texts(person.number) == ["re: early"]


async def _accepted(program: Program) -> Person:
    """Post one person's message after the other until one is acknowledged: who wrote it."""
    numbers = count_from(700_300_000)

    async def taken() -> Person | None:
        person = Person(next(numbers))
        answer = await program.post_update(person.text("early"))
        return person if answer.status_code == 200 else None

    person = await until(taken)
    assert person is not None
    return person


async def test_a_frozen_process_that_wakes_after_the_take_over_does_nothing(
    postgres_ground: Ground,
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    zombie = await ground.serve()
    thinking = ground.agent.fail("turn", held_before_storing())
    assert (await zombie.post_update(ADA.text("thinking"))).status_code == 200
    await until(lambda: bool(thinking.hits))
    sending = world.telegram.fail("sendMessage", held_after_storing(), chat=BOB.number)
    assert (await zombie.post_update(BOB.text("sending"))).status_code == 200
    await until(lambda: bool(sending.hits))

    zombie.freeze()
    await ground.serve()
    await world.lease_runs_out(zombie.pid)
    await world.settled()
    assert world.telegram.texts(ADA.number) == ["re: thinking"]
    answer, note = world.telegram.messages(BOB.number)
    assert answer.text == "re: sending"
    assert note.buttons

    calls = len(world.telegram.calls_of("sendMessage"))
    thinking.release()
    sending.release()
    zombie.thaw()
    await world.until(f"SELECT count(*) FROM {RECEIPTS} r", kept(3))
    await until(lambda: any("lease lost" in line for line in zombie.said))
    await zombie.ready()
    assert len(world.telegram.calls_of("sendMessage")) == calls
    assert len(ground.agent.turns()) == 3
    rows = await world.rows(
        "SELECT i.text, o.state, r.state FROM inbound i JOIN runs r ON r.id = i.run "
        "JOIN outbox o ON o.run = r.id WHERE NOT o.standalone ORDER BY i.id"
    )
    assert [tuple(row) for row in rows] == [
        ("thinking", "sent", "ended"),
        ("sending", "sent", "ended"),
    ]


def kept(receipts: int) -> Callable[[Sequence[Any]], bool]:
    return lambda rows: bool(rows[0][0] >= receipts)


async def test_one_web_and_two_workers_share_the_work_and_lose_nothing_with_one_of_them(
    postgres_ground: Ground, valkey_url: str
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    web = await ground.serve("web", REDIS_URL=valkey_url)
    workers = [await ground.serve("worker", REDIS_URL=valkey_url, CONCURRENCY="4") for _ in "ab"]
    people = [Person(700_200_000 + n) for n in range(8)]
    slow = ground.agent.fail("turn", held_before_storing(), times=len(people))
    for person in people:
        assert (await web.post_update(person.text("hello"))).status_code == 200
    await until(lambda: len(slow.hits) == len(people))
    held = await world.rows("SELECT count(*) FROM runs WHERE state = 'running' GROUP BY holder")
    assert [row[0] for row in held] == [4, 4]
    await workers[0].kill()
    await world.lease_runs_out(workers[0].pid)
    slow.release()
    await world.settled()
    assert [world.telegram.texts(p.number) for p in people] == [["re: hello"]] * len(people)


async def test_without_redis_a_worker_finds_the_work_by_itself_even_where_its_port_is_taken(
    postgres_ground: Ground,
) -> None:
    ground = postgres_ground
    web = await ground.serve("web")
    port = web.url.rpartition(":")[2]
    worker = await ground.spawn("serve", "--role", "worker", PORT=port)
    assert (await web.post_update(CYD.text("hello"))).status_code == 200
    await ground.world.settled()
    assert ground.world.telegram.texts(CYD.number) == ["re: hello"]
    assert "serves no health or metrics" in worker.output
    assert await worker.stop() == 0
