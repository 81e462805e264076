"""The main job: a message in, exactly one answer out, on both databases."""

from __future__ import annotations

import asyncio

from bot.domain.turn import Turn
from tests.fakes.updates import Person
from tests.world import World


async def echo(turn: Turn) -> str:
    return f"you said: {turn.text}"


async def test_a_telegram_update_gets_exactly_one_answer(world: World) -> None:
    process = await world.start(agent=echo)
    ada = Person(700100201)
    response = await process.post_update(ada.text("hello"))
    assert response.status_code == 200
    await world.settled()
    assert world.telegram.texts(700100201) == ["you said: hello"]


async def test_a_signed_form_gets_exactly_one_answer(world: World) -> None:
    await world.start(agent=echo)
    delivered = await world.twilio.inbound("hello")
    assert delivered.acknowledged
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]


async def test_twenty_deliveries_at_once_on_two_processes_make_one_run(world: World) -> None:
    one = await world.start(agent=echo)
    two = await world.start(agent=echo)
    update = Person(700100201).text("hello")
    answers = await asyncio.gather(*(p.post_update(update) for p in (one, two) for _ in range(10)))
    assert {a.status_code for a in answers} == {200}
    await world.settled()
    assert await world.rows("SELECT count(*) FROM inbound") == [(1,)]
    assert await world.rows("SELECT count(*) FROM runs") == [(1,)]
    assert world.telegram.texts(700100201) == ["you said: hello"]
