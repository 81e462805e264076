"""Polling: nothing is confirmed before it is committed, and one process polls at a time."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from bot.domain.errors import DatabaseUnavailable
from channels.telegram import account
from channels.telegram.settings import TelegramMode
from tests.fakes.telegram.faults import bad_gateway, hang_before_storing, refused, unauthorized
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.kit.conversation import MORTAL, PATIENT
from tests.kit.passing import outlive
from tests.limits import PATIENCE
from tests.world import Running, World

CHAT = 700100281
POLLING = TelegramMode.POLLING
POLLER = "SELECT poller FROM accounts WHERE channel = 'telegram'"


def polls(world: World) -> list[dict[str, object]]:
    return [call.params for call in world.telegram.calls_of("getUpdates")]


async def poller(world: World, *, other_than: int | None = None) -> int:
    """The holder that polls."""
    rows = await world.until(POLLER, lambda rows: rows[0][0] not in (None, other_than))
    return int(rows[0][0])


async def test_polling_starts_without_an_offset_and_confirms_what_is_committed(
    world: World,
) -> None:
    await world.start(agent=repeats, telegram_mode=POLLING)
    await world.telegram.wait_for(lambda: polls(world))
    assert "offset" not in polls(world)[0]
    number = world.telegram.enqueue(Person(CHAT).text("hello"))
    assert number is not None
    await world.telegram.wait_for(lambda: polls(world)[-1].get("offset") == number + 1)
    assert await world.rows("SELECT count(*) FROM inbound") == [(1,)]
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]
    assert polls(world)[0]["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
    ]


async def test_half_a_character_in_an_update_keeps_nothing_behind_it_from_coming_in(
    world: World,
) -> None:
    await world.start(agent=repeats, telegram_mode=POLLING)
    await world.telegram.wait_for(lambda: polls(world))
    world.telegram.enqueue(Person(CHAT).text("a\x00b\ud800c"))
    odd = {"message_id": 7, "chat": {"id": CHAT}, "odd\ud800": "\ud800"}
    world.telegram.enqueue({"update_id": 900_000_000, "message": odd})
    await world.telegram.wait_for(lambda: not world.telegram.main.queue.pending)
    await world.settled()
    assert "a\ufffdb\ufffdc" in world.telegram.texts(CHAT)


async def test_while_the_database_is_away_nothing_is_confirmed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await world.start(agent=repeats, telegram_mode=POLLING)
    await world.telegram.wait_for(lambda: polls(world))

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("not now")

    with monkeypatch.context() as patched:
        patched.setattr(process.process.rt.db, "write", away)
        number = world.telegram.enqueue(Person(CHAT).text("hello"))
        assert number is not None
        before = len(polls(world))
        world.advance(2)
        assert len(world.telegram.main.queue.pending) == 1
    await world.telegram.wait_for(lambda: polls(world)[-1].get("offset") == number + 1)
    assert all("offset" not in poll for poll in polls(world)[:before])
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]


async def test_ids_that_start_again_below_the_old_offset_are_not_confirmed_unseen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.intake.polling.POLL_SECONDS", 0.2)
    await world.start(agent=repeats, telegram_mode=POLLING)
    ada = Person(CHAT, first_update=900_000_000)
    world.telegram.enqueue(ada.text("before"))
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT) == ["before"])
    # The poll that confirms "before", and then one that finds nothing left.
    await world.telegram.wait_for(lambda: any("offset" in asked for asked in polls(world)))
    await world.telegram.wait_for(lambda: "offset" not in polls(world)[-1])
    redrawn = Person(CHAT, first_update=1000, first_message=99)
    world.telegram.enqueue(redrawn.text("after a quiet week"))
    await world.telegram.wait_for(lambda: len(world.telegram.texts(CHAT)) == 2)


async def test_the_second_process_stands_by_and_takes_over_from_a_dead_one(
    world: World,
) -> None:
    one = await world.start(agent=repeats, telegram_mode=POLLING, **MORTAL)
    first = await poller(world)
    two = await world.start(agent=repeats, telegram_mode=POLLING, **MORTAL)
    world.telegram.enqueue(Person(CHAT).text("hello"))
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT) == ["hello"])
    assert await poller(world) == first
    await one.die()
    await outlive(world, two)
    assert await poller(world, other_than=first) != first
    world.telegram.enqueue(Person(CHAT + 1).text("still there?"))
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT + 1) == ["still there?"])


async def test_a_leaver_hands_polling_over_before_its_turns_are_done(world: World) -> None:
    agent = Held()
    one = await world.start(agent=agent, telegram_mode=POLLING)
    first = await poller(world)
    world.telegram.enqueue(Person(CHAT).text("hello"))
    await agent.begun.wait()
    await world.start(agent=repeats, telegram_mode=POLLING)
    await one.process.lease.drain()
    await poller(world, other_than=first)
    world.telegram.enqueue(Person(CHAT + 1).text("next"))
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT + 1) == ["next"])
    agent.go.set()
    await one.stop()
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]


async def test_a_set_webhook_is_explained(world: World, caplog: pytest.LogCaptureFixture) -> None:
    conflict = "Conflict: can't use getUpdates method while webhook is active"
    world.telegram.fail("getUpdates", refused(409, conflict))
    process = await started(world, caplog)
    await answered(world, process)
    assert "a webhook is set" in caplog.text
    assert "answerback webhook delete" in caplog.text


async def test_another_program_with_our_token_is_explained(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    conflict = "Conflict: terminated by other getUpdates request"
    world.telegram.fail("getUpdates", refused(409, conflict))
    process = await started(world, caplog)
    await answered(world, process)
    assert "another program polls with this bot's token" in caplog.text


async def test_a_backlog_is_taken_in_at_once_and_answered_in_its_order(world: World) -> None:
    people = [Person(CHAT + n) for n in range(20)]
    for number in range(3):
        for person in people:
            world.telegram.enqueue(person.text(f"{number}"))
    await world.start(agent=repeats, telegram_mode=POLLING, burst="each")
    await world.telegram.wait_for(
        lambda: all(len(world.telegram.texts(person.number)) == 3 for person in people)
    )
    assert all(world.telegram.texts(person.number) == ["0", "1", "2"] for person in people)


@pytest.mark.parametrize("trouble", [bad_gateway(), unauthorized()])
async def test_polling_comes_back_after_trouble_and_marks_the_channel_up(
    world: World, caplog: pytest.LogCaptureFixture, trouble: object
) -> None:
    world.telegram.fail("getUpdates", trouble, times=2)  # type: ignore[arg-type]
    process = await started(world, caplog)
    await answered(world, process)
    down = await world.rows("SELECT down_since FROM accounts WHERE channel = 'telegram'")
    assert down == [(None,)]


async def test_a_stalled_connection_notices_itself(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(account, "POLL_MARGIN", 0.1)
    monkeypatch.setattr("bot.intake.polling.POLL_SECONDS", 0.3)
    world.telegram.fail("getUpdates", hang_before_storing())
    process = await started(world, caplog)
    await answered(world, process)
    assert "does not answer" in caplog.text


async def test_an_update_that_nobody_understands_does_not_stop_the_rest(world: World) -> None:
    await world.start(agent=repeats, telegram_mode=POLLING)
    world.telegram.main.queue.add({"update_id": 1000, "message": {"date": 7, "chat": {"id": 7}}})
    world.telegram.enqueue(Person(CHAT).text("hello"))
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT) == ["hello"])
    letters = await world.rows("SELECT error FROM payloads WHERE error IS NOT NULL")
    assert [row[0] for row in letters] == ["no message id"]


async def started(world: World, caplog: pytest.LogCaptureFixture) -> Running:
    caplog.set_level(logging.INFO, "answerback.poll")
    return await world.start(agent=repeats, telegram_mode=POLLING, **PATIENT)


async def answered(world: World, process: Running) -> None:
    """A message gets through, however long the poller wants to wait."""
    world.telegram.enqueue(Person(CHAT).text("hello"))
    async with asyncio.timeout(PATIENCE):
        while not world.telegram.texts(CHAT):
            world.advance(6)
            with suppress(AssertionError):
                await world.telegram.wait_for(lambda: world.telegram.texts(CHAT), 0.2)
    assert world.telegram.texts(CHAT) == ["hello"]
