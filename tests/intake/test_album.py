"""Ten photos at once are one question."""

from __future__ import annotations

import pytest

from bot.domain.decisions.terms import Burst
from tests.fakes.updates import Person, entity, supergroup
from tests.kit.agents import Held
from tests.world import World

WAIT = "SELECT not_before - created_at FROM runs ORDER BY id"


@pytest.mark.parametrize("burst", Burst)
async def test_b29_an_album_is_one_run_with_all_pictures_and_the_caption(
    world: World, burst: Burst
) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent, burst=burst)
    world.stop_time()
    ada = Person(700100216, first_message=50)
    for update in ada.album("mg-900001", "which one is cheaper?"):
        await process.post_update(update)
    world.advance(2)
    await world.settled()
    [turn] = agent.turns
    assert [m.text for m in turn.messages] == ["which one is cheaper?", "[photo]", "[photo]"]
    assert [a.info.ref for m in turn.messages for a in m.attachments] == ["photo-large"] * 3
    assert await world.rows("SELECT count(*) FROM inbound") == [(3,)]
    assert len(world.telegram.texts(700100216)) == 1


async def test_an_album_waits_for_its_next_member_and_never_longer_than_six_seconds(
    world: World,
) -> None:
    process = await world.start(agent=Held())
    world.stop_time()
    ada = Person(700100216)
    await process.post_update(ada.photo("look", "mg-1"))
    [(wait,)] = await world.rows(WAIT)
    assert wait == pytest.approx(1.2, abs=0.01)
    for _ in range(6):
        world.advance(1.0)
        await process.post_update(ada.photo(None, "mg-1"))
    waits = [row[0] for row in await world.rows(WAIT)]
    assert waits[0] == pytest.approx(6.0, abs=0.01)


async def test_an_album_that_was_being_gathered_outlives_the_process(world: World) -> None:
    process = await world.start(agent=Held(), quiet_ms=20_000)
    world.stop_time()
    ada = Person(700100216)
    first, second = ada.album("mg-1", "these two", 2)
    await process.post_update(first)
    await process.die()
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent, quiet_ms=20_000)
    await process.post_update(second)
    world.advance(21)
    await world.settled()
    assert [len(turn.messages) for turn in agent.turns] == [2]


async def test_a_member_that_comes_too_late_is_answered_in_the_next_run(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(700100216)
    first, second = ada.album("mg-1", "these two", 2)
    await process.post_update(first)
    world.advance(2)
    await agent.begun.wait()
    await process.post_update(second)
    world.advance(2)
    agent.go.set()
    await world.settled()
    assert [len(turn.messages) for turn in agent.turns] == [1, 1]


async def test_an_album_behind_a_running_turn_stays_together(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    world.stop_time()
    ada = Person(700100216)
    await process.post_update(ada.text("first"))
    await agent.begun.wait()
    await process.post_update(ada.text("second"))
    world.advance(8)
    album = ada.album("mg-1", "and these", 3)
    await process.post_update(album[0])
    agent.go.set()
    await process.post_update(album[1])
    await process.post_update(album[2])
    world.advance(3)
    await world.settled()
    assert [len(turn.messages) for turn in agent.turns] == [1, 4]


@pytest.mark.parametrize("caption_on", [0, 2])
async def test_in_a_group_the_caption_addresses_the_whole_album(
    world: World, caption_on: int
) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    world.stop_time()
    ada = Person(700100216, supergroup(-1007000000502))
    words = "@relay_test_bot which one?"
    marks = [entity("mention", words, "@relay_test_bot")]
    updates = ada.album("mg-1", "", 3)
    updates[0]["message"].pop("caption", None)
    updates[caption_on]["message"] |= {"caption": words, "caption_entities": marks}
    for update in updates:
        await process.post_update(update)
    world.advance(2)
    await world.settled()
    [turn] = agent.turns
    assert len(turn.messages) == 3
    assert await world.rows("SELECT count(*) FROM inbound WHERE run IS NULL") == [(0,)]
