"""A process dies, everything is copied to another database, and a process there goes on."""

from __future__ import annotations

import asyncio
import os

import pytest

from bot.domain.errors import ConfigurationError
from bot.operations.database_copy import Pace, copy_database
from bot.texts import Text, Words
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Echo, Gated
from tests.kit.conversation import ADA, PATIENT, endings, post
from tests.limits import until
from tests.world import World

BEN = ADA + 1
ASK = Words.load().say(Text.UNCERTAIN_ASK_BUTTON)


async def test_what_was_open_is_answered_once_from_the_new_database_and_what_was_known_stays_known(
    world: World, request: pytest.FixtureRequest
) -> None:
    old = world.database_url
    new = str(
        request.getfixturevalue(
            "blank_postgres_url" if old.startswith("sqlite") else "blank_sqlite_url"
        )
    )
    world.telegram.fail("sendMessage", faults.hang_after_storing())
    ada, ben = Person(ADA), Person(BEN)
    first = await world.start(agent=Echo(), **PATIENT)
    said = [ben.text("uncertain")]
    assert await post(first, *said) == [200]
    await world.settled()
    await first.stop()
    agent = Gated()
    second = await world.start(agent=agent, **PATIENT)
    said += [ada.text("at work"), ada.text("waits"), ada.text("waits too")]
    assert await post(second, *said[1:]) == [200] * 3
    await until(agent.begun.is_set)
    await second.die()
    await world.lease_runs_out(os.getpid())

    def copied() -> None:
        told: list[Pace] = []
        copy_database(old, new, world.clock, lease_seconds=1.0, who="ann@desk", tell=told.append)
        assert any(pace.progress.left == 0 and pace.rate > 0 for pace in told)

    await asyncio.to_thread(copied)
    world.first_start = True
    with pytest.raises(ConfigurationError, match="has moved to"):
        await world.start(agent=Echo())
    assert world._asked is not None
    world._asked.close()
    world._asked, world.database_url = None, new
    third = await world.start(agent=Echo(), **PATIENT)
    assert await post(third, *said) == [200] * 4
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: at work", "re: waits", "re: waits too"]
    assert world.telegram.texts(BEN) == ["re: uncertain", ASK]
    assert await world.rows("SELECT count(*) FROM runs") == [(4,)]
    assert ("uncertain", "uncertain") in await endings(world)
