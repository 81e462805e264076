"""The ladder of honesty: nothing is silent, and nothing spins for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import text as sql

from bot.domain.ports import Recipient
from bot.texts import Text, Words
from bot.wiring import Role
from channels.telegram.channel import TelegramChannel
from tests.fakes.telegram.faults import held_before_storing
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.world import World

CHAT = 700100241
WORDS = Words.load()
STILL = WORDS.say(Text.STILL_WORKING)


def actions(world: World) -> Sequence[object]:
    return world.telegram.calls_of("sendChatAction", CHAT)


async def shown_times(world: World, count: int) -> None:
    await world.telegram.wait_for(lambda: len(actions(world)) == count)


async def typing(world: World, seconds: float) -> None:
    """Set the clock forward when presence has begun, and wait until that is seen."""
    before = len(actions(world))
    for _ in range(5):
        await asyncio.to_thread(lambda: None)  # every task that is ready has its turn
    world.advance(seconds)
    await world.telegram.wait_for(lambda: len(actions(world)) > before)


async def test_a_quick_answer_shows_no_indicator(world: World) -> None:
    process = await world.start(agent=repeats)
    await process.post_update(Person(CHAT).text("hi"))
    await world.settled()
    assert actions(world) == []


async def test_typing_is_shown_after_two_seconds_and_again_every_four(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hi"))
    await agent.begun.wait()
    assert actions(world) == []
    for shown in (1, 2, 3):
        world.advance(2.1 if shown == 1 else 4.1)
        await shown_times(world, shown)
    agent.go.set()
    await world.settled()
    world.advance(10)
    assert len(actions(world)) == 3


async def test_a_take_over_goes_on_typing_at_once(world: World) -> None:
    first, second = Held(), Held()
    process = await world.start(agent=first)
    await process.post_update(Person(CHAT).text("hi"))
    await first.begun.wait()
    await process.die()
    before = len(actions(world))
    await world.start(agent=second)
    await second.begun.wait()
    await world.telegram.wait_for(lambda: len(actions(world)) > before)
    second.go.set()
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hi"]


async def test_one_note_says_that_it_takes_long_whatever_restarts(world: World) -> None:
    first, second = Held(), Held()
    process = await world.start(agent=first, lease_seconds=600, still_working_after=45)
    await process.post_update(Person(CHAT).text("hi"))
    await first.begun.wait()
    await typing(world, 3)
    world.advance(43)
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT) == [STILL])
    await process.die()
    await world.start(agent=second, lease_seconds=600, still_working_after=45)
    await second.begun.wait()
    world.advance(50)
    await world.telegram.wait_for(lambda: len(actions(world)) > 2)
    second.go.set()
    await world.settled()
    assert world.telegram.texts(CHAT) == [STILL, "hi"]
    assert second.turns[0].history == ()


async def test_a_note_that_was_held_back_does_not_come_after_the_answer(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, lease_seconds=600, still_working_after=45)
    await process.post_update(Person(CHAT).text("hi"))
    await agent.begun.wait()
    await typing(world, 3)
    hold = sql("UPDATE chats SET not_before = answerback_now() + 100")
    await process.process.rt.db.write(lambda tx: tx.execute(hold).rowcount)
    world.advance(43)
    await world.until("SELECT state FROM outbox", lambda rows: rows == [("pending",)])
    agent.go.set()
    await world.until("SELECT count(*) FROM runs WHERE replied", lambda rows: rows[0][0] == 1)
    world.advance(120)
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hi"]
    parts = await world.rows("SELECT kind, state FROM outbox ORDER BY id")
    assert parts == [("notice", "dropped"), ("reply", "sent")]


async def test_the_note_counts_from_the_message_and_not_from_the_attempt(world: World) -> None:
    first, second = Held(), Held()
    process = await world.start(agent=first, lease_seconds=600)
    await process.post_update(Person(CHAT).text("hi"))
    await first.begun.wait()
    await typing(world, 40)
    await process.die()
    await world.start(agent=second, lease_seconds=600)
    await second.begun.wait()
    world.advance(6)
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT) == [STILL])
    second.go.set()
    await world.settled()


class _Broken(TelegramChannel):
    async def typing(self, to: Recipient) -> None:
        raise RuntimeError("the indicator is broken")


async def test_a_broken_indicator_never_hurts_the_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TelegramChannel, "typing", _Broken.typing)
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hi"))
    await agent.begun.wait()
    world.advance(3)
    agent.go.set()
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hi"]
    assert await world.rows("SELECT failures FROM runs") == [(0,)]


async def test_an_indicator_that_hangs_never_holds_up_the_answer(world: World) -> None:
    world.telegram.fail("sendChatAction", held_before_storing(), times=None)
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hi"))
    await agent.begun.wait()
    world.advance(3)
    await world.telegram.wait_for(lambda: actions(world))
    agent.go.set()
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hi"]


async def test_what_was_too_old_is_said_once_a_chat(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB, burst="each")
    ada = Person(CHAT)
    for text in ("one", "two", "three"):
        await web.post_update(ada.text(text))
    await web.die()
    world.advance(3700)
    await world.start(agent=repeats, burst="each", answer_max_age=3600)
    await world.settled()
    assert world.telegram.texts(CHAT) == [WORDS.say(Text.TOO_OLD)]
    endings = await world.rows("SELECT DISTINCT ending FROM runs")
    assert [row[0] for row in endings] == ["expired"]
