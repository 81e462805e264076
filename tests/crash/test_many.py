"""Deaths amid the moves of many chats at once: no answer is lost with another, or doubled."""

from __future__ import annotations

import asyncio

import pytest

from bot.api import Turn
from bot.leases.checkpoints import Checkpoint
from tests.fakes.updates import Person
from tests.kit.conversation import PATIENT, post
from tests.kit.passing import settle
from tests.kit.receipts import RECEIPTS
from tests.limits import PATIENCE
from tests.world import Running, World

PEOPLE = [Person(700_810_000 + number) for number in range(8)]
DEATHS = (
    Checkpoint.AGENT_RETURNED,
    Checkpoint.REPLY_STORED,
    Checkpoint.BEFORE_SEND,
    Checkpoint.AFTER_SEND,
    Checkpoint.SETTLED,
)


@pytest.mark.parametrize(
    ("death", "nth"),
    [
        pytest.param(death, nth, marks=pytest.mark.alternating(number + nth // 5))
        for number, death in enumerate(DEATHS)
        for nth in (1, 5)
    ],
)
async def test_a_death_amid_the_answers_of_many_chats_loses_none_and_doubles_none(
    world: World, death: Checkpoint, nth: int
) -> None:
    victims: list[Running] = []
    all_here, died = asyncio.Event(), asyncio.Event()
    left = nth

    async def agent(turn: Turn) -> str:
        await all_here.wait()
        return f"re {turn.text}"

    async def reached(checkpoint: Checkpoint) -> None:
        nonlocal left
        left -= checkpoint is death
        if left == 0 and not died.is_set():
            died.set()
            victims[0].kill()
            raise asyncio.CancelledError("the process died here")

    victims.append(await world.start(agent=agent, reached=reached, **PATIENT))
    for person in PEOPLE:
        assert await post(victims[0], person.text(f"hello {person.number}")) == [200]
    all_here.set()
    async with asyncio.timeout(PATIENCE):
        await died.wait()
    await victims[0].die()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    rows = await world.rows(
        "SELECT c.address, o.state, r.ending FROM outbox o JOIN chats c ON c.id = o.chat "
        "JOIN runs r ON r.id = o.run WHERE o.kind = 'reply'"
    )
    assert sorted(row[0] for row in rows) == [str(person.number) for person in PEOPLE]
    for chat, state, ending in rows:
        shown = world.telegram.texts(int(chat)).count(f"re hello {chat}")
        assert (state, ending, shown) in {
            ("sent", "answered", 1),
            ("uncertain", "uncertain", 0),
            ("uncertain", "uncertain", 1),
        }
    doubles = f"SELECT outbox FROM {RECEIPTS} r GROUP BY outbox HAVING count(*) > 1"
    assert await world.rows(doubles) == []
