"""Retention as a setting: the days for which a process keeps words."""

from __future__ import annotations

import pytest

from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.world import World

DAY = 86_400.0


@pytest.mark.parametrize(("days", "left"), [(90, ""), (100, "hello"), (0, "hello")])
async def test_a_process_deletes_what_is_older_than_its_setting(
    world: World, days: int, left: str
) -> None:
    process = await world.start(agent=repeats, retention_days=days)
    await process.post_update(Person(700100201).text("hello"))
    await world.settled()
    world.advance(91 * DAY)
    await process.process.retain()
    assert await world.rows("SELECT text FROM inbound") == [(left,)]
    assert await world.rows("SELECT text FROM outbox") == [(left,)]
