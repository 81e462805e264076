"""A group becomes a supergroup: one conversation, whoever tells of it, and in which order."""

from __future__ import annotations

import pytest

from tests.fakes.telegram.faults import migrated
from tests.fakes.updates import Person, entity, group, supergroup
from tests.kit.agents import Held
from tests.world import Running, World

OLD, NEW = -700301, -1007000000301
ROWS = "SELECT id, address FROM chats WHERE merged_into IS NULL"
MENTION = "@relay_test_bot "


def mention(person: Person, text: str) -> dict[str, object]:
    return person.text(MENTION + text, entity("mention", MENTION + text, "@relay_test_bot"))


def people() -> tuple[Person, Person]:
    """One person, before and after the move."""
    return Person(700100261, group(OLD)), Person(700100261, supergroup(NEW))


async def first_answered(world: World, process: Running, agent: Held) -> None:
    agent.go.set()
    await process.post_update(mention(people()[0], "zero"))
    await world.settled()
    agent.go.clear()
    agent.begun.clear()


async def test_b49_a_run_in_progress_is_delivered_to_where_the_group_went(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    before, after = people()
    await process.post_update(mention(before, "one"))
    await agent.begun.wait()
    world.telegram.fail("sendMessage", migrated(NEW), chat=OLD, times=None)
    agent.go.set()
    await world.settled()
    await process.post_update(mention(after, "two"))
    await world.settled()
    assert world.telegram.texts(OLD) == []
    assert world.telegram.texts(NEW) == [MENTION + "one", MENTION + "two"]
    assert [address for _, address in await world.rows(ROWS)] == [str(NEW)]
    assert len(agent.turns[1].history) == 2
    assert agent.turns[0].chat.id == agent.turns[1].chat.id


async def test_the_notices_of_a_move_may_come_in_either_order(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await first_answered(world, process, agent)
    before, after = people()
    notices = [before.migrated_to(NEW), after.migrated_from(OLD)]
    for update in (notices[1], notices[0], notices[1]):
        assert (await process.post_update(update)).status_code == 200
    agent.go.set()
    await process.post_update(mention(after, "two"))
    await world.settled()
    assert [address for _, address in await world.rows(ROWS)] == [str(NEW)]
    assert len(agent.turns[1].history) == 2


async def test_a_message_from_the_new_address_before_the_notice_joins_the_conversation(
    world: World,
) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await first_answered(world, process, agent)
    before, after = people()
    await process.post_update(mention(after, "two"))
    await agent.begun.wait()
    await process.post_update(before.migrated_to(NEW))
    agent.go.set()
    await world.settled()
    await process.post_update(mention(after, "three"))
    await world.settled()
    assert [address for _, address in await world.rows(ROWS)] == [str(NEW)]
    assert world.telegram.texts(NEW) == [MENTION + "two", MENTION + "three"]
    assert len(agent.turns[-1].history) == 4
    assert await world.rows("SELECT count(*) FROM runs WHERE ending = 'answered'") == [(3,)]


@pytest.mark.alternating(1)  # The order of locks is PostgreSQL's.
async def test_both_addresses_running_when_the_move_is_told_are_answered_once_each(
    world: World,
) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    before, after = people()
    await process.post_update(mention(before, "one"))
    await process.post_update(mention(after, "two"))
    await world.until("SELECT count(*) FROM runs WHERE attempts > 0", lambda r: r[0][0] == 2)
    world.telegram.fail("sendMessage", migrated(NEW), chat=OLD, times=None)
    agent.go.set()
    await world.settled()
    assert sorted(world.telegram.texts(NEW)) == [MENTION + "one", MENTION + "two"]
    assert world.telegram.texts(OLD) == []
    assert [address for _, address in await world.rows(ROWS)] == [str(NEW)]
