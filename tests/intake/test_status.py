"""Answers to whoever asks for a message by its request id."""

from __future__ import annotations

import pytest

from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.ending import Ending, TurnStatus
from bot.domain.errors import GiveUp
from bot.domain.turn import Turn
from bot.intake.status import turn_status
from bot.wiring import Role
from tests.fakes import faults
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.updates import Person
from tests.kit.operating import close
from tests.world import Running, World

ADA = 700100201


async def asked(process: Running, request_id: str) -> TurnAnswer:
    return await process.process.rt.db.read(turn_status, request_id)


async def one_turn(world: World, agent: object, text: str = "hello") -> tuple[Running, str]:
    """A turn that came to its end, and its request id."""
    process = await world.start(agent=agent, uncertain_delivery="hold")  # type: ignore[arg-type]
    await process.post_update(Person(ADA).text(text))
    await world.settled()
    (request_id,) = (await world.rows("SELECT request_id FROM inbound"))[0]
    return process, request_id


async def echo(turn: Turn) -> str:
    return f"you said: {turn.text}"


async def silent(turn: Turn) -> None:
    return None


async def gives_up(turn: Turn) -> str:
    raise GiveUp("I can't.")


async def test_an_answered_turn_is_completed_with_the_stored_answer(world: World) -> None:
    process, request_id = await one_turn(world, echo)
    answer = await asked(process, request_id)
    assert (answer.status, answer.answer) == (TurnStatus.COMPLETED, "you said: hello")
    assert not answer.send_again
    assert "nothing needs to be sent again" in answer.text


async def test_a_silent_turn_is_completed_without_an_answer(world: World) -> None:
    process, request_id = await one_turn(world, silent)
    answer = await asked(process, request_id)
    assert (answer.status, answer.answer) == (TurnStatus.COMPLETED, None)


async def test_an_uncertain_turn_is_completed_with_its_answer(world: World) -> None:
    world.telegram.fail("sendMessage", faults.drop_after_storing())
    process, request_id = await one_turn(world, echo)
    answer = await asked(process, request_id)
    assert (answer.status, answer.answer) == (TurnStatus.COMPLETED, "you said: hello")


async def test_a_turn_without_a_worker_is_pending_and_queued(world: World) -> None:
    web = await world.start(agent=echo, role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    (request_id,) = (await world.rows("SELECT request_id FROM inbound"))[0]
    answer = await asked(web, request_id)
    assert (answer.status, answer.queued) == (TurnStatus.PENDING, True)
    assert "do not resend" in answer.text


async def test_a_stopped_turn_is_withdrawn(world: World) -> None:
    web = await world.start(agent=echo, role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    (request_id,) = (await world.rows("SELECT request_id FROM inbound"))[0]
    await close(web, 1, Ending.CANCELLED)
    answer = await asked(web, request_id)
    assert (answer.status, answer.send_again) == (TurnStatus.WITHDRAWN, False)


@pytest.mark.parametrize("refused", [False, True])
async def test_a_turn_that_was_given_up_is_interrupted(world: World, refused: bool) -> None:
    if refused:
        world.telegram.fail("sendMessage", telegram_faults.blocked(), times=None)
    process, request_id = await one_turn(world, gives_up)
    answer = await asked(process, request_id)
    assert (answer.status, answer.answer) == (TurnStatus.INTERRUPTED, None)
    assert answer.send_again


async def test_an_id_that_nobody_recorded_is_unknown(world: World) -> None:
    process = await world.start(agent=echo)
    answer = await asked(process, "tg-1-1")
    assert (answer.status, answer.send_again) == (TurnStatus.UNKNOWN, True)


async def test_a_command_is_completed_and_says_that_nothing_answers_it(world: World) -> None:
    process = await world.start(agent=echo)
    await process.post_update(Person(ADA).command("/status"))
    (request_id,) = (await world.rows("SELECT request_id FROM inbound"))[0]
    answer = await asked(process, request_id)
    assert (answer.status, answer.answer) == (TurnStatus.COMPLETED, None)
    assert "gets no answer" in answer.text
