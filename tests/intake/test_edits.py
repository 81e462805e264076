"""People correct themselves: an edit counts while nobody has begun to answer."""

from __future__ import annotations

from tests.fakes.updates import Person
from tests.kit.agents import Held
from tests.world import World

EDITS = "SELECT text_before, text, used FROM edits ORDER BY edited_at"


async def test_an_edit_before_the_turn_is_what_the_agent_reads(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(700100215)
    await process.post_update(ada.text("hello"))
    await agent.begun.wait()
    waiting = ada.text("book a table for two")
    await process.post_update(waiting)
    await process.post_update(ada.edit(waiting, "book a table for four"))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["hello", "book a table for four"]
    assert agent.turns[1].messages[0].edited
    expected = [("book a table for two", "book a table for four", True)]
    assert [tuple(row) for row in await world.rows(EDITS)] == expected


async def test_b27_an_edit_of_an_answered_message_is_recorded_and_says_nothing(
    world: World,
) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    ada = Person(700100215, first_message=41)
    message = ada.text("book a table for one")
    await process.post_update(message)
    await world.settled()
    calls = len(world.telegram.all_messages())
    response = await process.post_update(ada.edit(message, "book a table for two"))
    assert response.status_code == 200
    await world.settled()
    assert len(world.telegram.all_messages()) == calls
    assert await world.rows("SELECT text FROM inbound") == [("book a table for one",)]
    expected = [("book a table for one", "book a table for two", False)]
    assert [tuple(row) for row in await world.rows(EDITS)] == expected


async def test_two_edits_within_one_second_are_both_kept_and_a_repeat_is_not(
    world: World,
) -> None:
    agent = Held()
    process = await world.start(agent=agent, quiet_ms=60_000)
    ada = Person(700100215)
    message = ada.text("one")
    await process.post_update(message)
    second = ada.edit(message, "two")
    for update in (second, ada.edit(message, "three"), second):
        await process.post_update(update)
    expected = [("one", "two", True), ("two", "three", True)]
    assert [tuple(row) for row in await world.rows(EDITS)] == expected
    assert await world.rows("SELECT text FROM inbound") == [("three",)]


async def test_an_edit_of_a_message_that_nobody_saw_is_kept_and_makes_no_run(
    world: World,
) -> None:
    process = await world.start(agent=Held())
    ada = Person(700100215)
    response = await process.post_update(ada.edit(ada.text("never delivered"), "changed"))
    assert response.status_code == 200
    assert await world.rows("SELECT count(*) FROM runs") == [(0,)]
    [(body, ignored)] = await world.rows("SELECT body, ignored FROM payloads")
    assert "changed" in body
    assert ignored == "an edit of a message that was never recorded"


async def test_a_command_in_an_edit_has_no_effect(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(700100215)
    message = ada.text("think hard")
    await process.post_update(message)
    await agent.begun.wait()
    edited = ada.edit(message, "/stop")
    edited["edited_message"]["entities"] = [{"type": "bot_command", "offset": 0, "length": 5}]
    await process.post_update(edited)
    agent.go.set()
    await world.settled()
    assert world.telegram.texts(700100215) == ["think hard"]
