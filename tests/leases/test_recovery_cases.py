"""Public bug reports about lost, doubled and stuck messages, as they would happen to us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from bot.wiring import Role
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Echo, Gated
from tests.kit.conversation import ADA, BOB, PATIENT, endings, post
from tests.kit.passing import settle
from tests.servers import Postgres
from tests.servers.daemon import Stop
from tests.world import Running, World, dies_at, open_world

ONE_OF_EACH = (
    "SELECT (SELECT count(*) FROM inbound), (SELECT count(*) FROM runs), "
    "(SELECT count(*) FROM outbox)"
)


async def test_b01_one_update_delivered_four_times_is_answered_once(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **PATIENT)
    update = Person(700100201).text("book a table")
    for _ in range(3):
        assert await post(running, update) == [200]
    agent.go.set()
    await settle(world)
    assert await post(running, update) == [200]
    await settle(world)
    assert await world.rows(ONE_OF_EACH) == [(1, 1, 1)]
    assert agent.calls == {"book a table": 1}
    assert len(world.telegram.calls_of("sendMessage")) == 1
    assert await endings(world) == [("book a table", "answered")]


async def test_b05_the_same_message_id_in_two_chats_is_two_messages(world: World) -> None:
    running = await world.start(agent=Echo(), **PATIENT)
    ada = Person(700100203, first_message=7, first_update=5001)
    bob = Person(700100204, first_message=7, first_update=5002)
    assert await post(running, ada.text("hello A"), bob.text("hello again")) == [200, 200]
    await settle(world)
    assert await world.rows(ONE_OF_EACH) == [(2, 2, 2)]
    assert world.telegram.texts(700100203) == ["re: hello A"]
    assert world.telegram.texts(700100204) == ["re: hello again"]


@pytest.mark.parametrize("role", [Role.ALL, Role.WEB])
async def test_b10_what_was_acknowledged_is_answered_after_a_death_without_a_new_message(
    world: World, role: Role
) -> None:
    agent = Echo()
    victim = await world.start(agent=Gated(), role=role, **PATIENT)
    assert await post(victim, Person(700100206).text("did you get this?")) == [200]
    await victim.die()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert world.telegram.texts(700100206) == ["re: did you get this?"]
    assert await endings(world) == [("did you get this?", "answered")]


async def test_b12_after_three_days_without_a_worker_nothing_is_dropped_in_silence(
    world: World,
) -> None:
    door = await world.start(agent=Echo(), role=Role.WEB, **PATIENT)
    ada = Person(ADA)
    assert await post(door, *(ada.text(f"message {n}") for n in range(4))) == [200] * 4
    await door.stop()
    world.advance(3 * 86_400.0)
    agent = Echo()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert await endings(world) == [(f"message {n}", "expired") for n in range(4)]
    reasons = set(await world.rows("SELECT detail FROM runs"))
    assert reasons == {("older than ANSWER_MAX_AGE when its turn came",)}
    assert agent.calls == {}
    assert len(world.telegram.texts(ADA)) == 1, "one note for the chat"


async def test_b13_a_message_that_comes_between_a_send_and_its_settlement_is_answered_next(
    world: World,
) -> None:
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def reached(checkpoint: Checkpoint) -> None:
        if checkpoint is Checkpoint.AFTER_SEND and not paused.is_set():
            paused.set()
            await go_on.wait()

    running = await world.start(agent=Echo(), reached=reached, **PATIENT)
    ada = Person(700100207)
    assert await post(running, ada.text("one")) == [200]
    await paused.wait()
    assert await post(running, ada.text("two")) == [200]
    go_on.set()
    await settle(world)
    assert world.telegram.texts(700100207) == ["re: one", "re: two"]
    assert await world.rows("SELECT count(*) FROM inbound WHERE run IS NULL") == [(0,)]


async def test_b17_what_was_proven_not_to_be_sent_goes_again_with_a_growing_delay(
    world: World,
) -> None:
    running = await world.start(agent=Echo(), **PATIENT)
    await world.telegram.refuse_connections()
    assert await post(running, Person(700100210).text("hello")) == [200]
    delays = []
    for tries in (1, 2, 3):
        [(started, due)] = await world.until(
            "SELECT started_at, not_before FROM outbox WHERE state = 'pending' "
            f"AND attempts = {tries} AND not_before > 0",
            lambda rows: len(rows) == 1,
        )
        delays.append(due - started)
        if tries == 3:
            await world.telegram.accept_connections()
        world.advance(due - world.clock.wall() + 0.01)
    await settle(world)
    assert delays == sorted(delays)
    assert delays[0] < 2 * delays[1] < 4 * delays[2]
    assert world.telegram.texts(700100210) == ["re: hello"]
    assert await world.rows("SELECT state, attempts FROM outbox") == [("sent", 4)]


async def test_b19_killed_between_the_answer_and_the_receipt_it_is_held_as_unknown(
    world: World,
) -> None:
    agent = Echo()
    ada = Person(ADA)
    victims: list[Running] = []
    died = asyncio.Event()

    def victim() -> Running:
        died.set()
        return victims[0]

    victims.append(
        await world.start(agent=agent, reached=dies_at(Checkpoint.AFTER_SEND, victim), **PATIENT)
    )
    await post(victims[0], ada.text("hello"))
    await died.wait()
    await victims[0].die()
    assert await world.rows("SELECT state FROM outbox") == [("sending",)]
    heir = await world.start(agent=agent, uncertain_delivery="hold", **PATIENT)
    await settle(world)
    world.advance(60.0)
    await heir.process.sweep()
    assert await world.rows("SELECT state, attempts FROM outbox") == [("uncertain", 1)]
    assert await post(heir, ada.text("and now?")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello", "re: and now?"]
    assert await endings(world) == [("hello", "uncertain"), ("and now?", "answered")]


async def test_b21_a_limit_between_the_parts_keeps_their_order_and_that_of_the_chat(
    world: World,
) -> None:
    async def at_length(turn: Turn) -> str:
        return "x" * 9500 if turn.text == "one" else "short"

    world.telegram.fail("sendMessage", faults.too_many(20), nth=2)
    running = await world.start(agent=at_length, **PATIENT)
    ada = Person(700100211)
    assert await post(running, ada.text("one"), ada.text("two")) == [200, 200]
    progress = "SELECT state FROM outbox WHERE attempts = 1 AND part = 2 AND not_before > 0"
    await world.until(progress, lambda rows: rows == [("pending",)])
    assert await world.rows("SELECT state FROM outbox WHERE part = 1") == [("sent",)]
    await settle(world)
    *parts, second = world.telegram.texts(700100211)
    assert second == "short"
    assert [len(p) for p in parts] == [4096, 4096, 1308]
    assert await world.rows("SELECT attempts FROM outbox ORDER BY id") == [(1,), (2,), (1,), (1,)]


async def test_b71_killed_between_the_result_and_the_send_three_replies_come_in_order(
    world: World,
) -> None:
    agent = Echo()
    died = asyncio.Event()

    async def reached(checkpoint: Checkpoint) -> None:
        if checkpoint is Checkpoint.AGENT_RETURNED and not died.is_set():
            died.set()
            running.kill()
            raise asyncio.CancelledError("the process died here")

    door = await world.start(agent=agent, role=Role.WEB, **PATIENT)
    ada = Person(700100222)
    assert await post(door, *(ada.text(t) for t in ("one", "two", "three"))) == [200] * 3
    running = await world.start(agent=agent, reached=reached, **PATIENT)
    await died.wait()
    await running.die()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert world.telegram.texts(700100222) == ["re: one", "re: two", "re: three"]


async def test_b71_a_model_that_never_returns_is_ended_by_its_time_and_the_chat_moves_on(
    world: World,
) -> None:
    async def stuck(turn: Turn) -> str:
        if turn.text == "one":
            await asyncio.Event().wait()
        return f"re: {turn.text}"

    running = await world.start(agent=stuck, run_deadline=1.5, **PATIENT)
    ada, bob = Person(ADA), Person(BOB)
    assert await post(running, ada.text("one"), ada.text("two"), bob.text("three")) == [200] * 3
    await world.settled()
    assert await endings(world) == [
        ("one", "apologised"),
        ("two", "answered"),
        ("three", "answered"),
    ]
    detail = await world.rows("SELECT detail FROM runs WHERE ending = 'apologised'")
    assert detail == [("the deadline passed",)]


@pytest.fixture
async def on_postgres(postgres_url: str) -> AsyncIterator[World]:
    async with open_world(postgres_url) as world:
        yield world


async def test_b82_while_the_database_is_stopped_nothing_is_acknowledged_and_all_is_answered_later(
    on_postgres: World, postgres: Postgres
) -> None:
    world = on_postgres
    running = await world.start(agent=Echo(), lease_seconds=6.0, heartbeat_seconds=1.0)
    update = Person(ADA).text("hello")
    world.twilio.courier.pause = 0.0
    postgres.stop(Stop.IMMEDIATE)
    response = await running.post_update(update)
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    form = (await world.twilio.inbound("good day", webhook=False)).form
    [attempt] = await world.twilio.repeat(form)
    assert not attempt.acknowledged
    postgres.start()
    while (await running.post_update(update)).status_code != 200:
        pass
    await world.twilio.repeat(form)
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert world.twilio.texts() == ["re: good day"]
    assert await world.rows(ONE_OF_EACH) == [(2, 2, 2)]
    assert set(await world.rows("SELECT deaths, failures FROM runs")) == {(0, 0)}
