"""One person is one chat, by phone or by a scoped id, on each number."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.domain.turn import Turn
from bot.operations import chats
from bot.operations.actions import Result
from tests.fakes.meta import payloads
from tests.fakes.meta.server import NUMBER, OTHER_NUMBER, StatusPlan
from tests.kit.agents import Echo
from tests.kit.conversation import endings
from tests.kit.operating import ANN
from tests.kit.whatsapp_cloud import ALONE, TWO, parts, taken, wamids
from tests.world import World

BSUID = "US.13491208655302741918"
PHONE, NEW_PHONE = "15550100190", "15550100191"
CHATS = "SELECT count(*) FROM chats WHERE merged_into IS NULL"


async def remembers(turn: Turn) -> str:
    """Says all that the person said so far."""
    return " | ".join([*(line.text for line in turn.history if line.role == "user"), turn.text])


async def test_b145_a_person_without_a_number_is_answered_and_stays_one_chat_when_it_shows_up(
    world: World,
) -> None:
    slow = asyncio.Event()

    async def agent(turn: Turn) -> str:
        await slow.wait()
        return await remembers(turn)

    await world.start(agent=agent, **{**ALONE, "meta_typing": True})
    first = await world.meta.person_writes("hi", from_="", user_id=BSUID)
    assert first.answers == [200]
    await world.meta.wait_for(lambda: world.meta.typing)
    assert world.meta.read == world.meta.typing == wamids(first.body)
    slow.set()
    await world.settled()
    body = world.meta.messages()[0].body
    assert body["recipient"] == BSUID
    assert "to" not in body

    await world.meta.person_writes("my number", from_=PHONE, user_id=BSUID)
    await world.settled()
    await world.meta.person_writes("no bsuid here", from_=PHONE)
    await world.settled()
    assert await world.rows(CHATS) == [(1,)]
    assert world.meta.texts() == ["hi", "hi | my number", "hi | my number | no bsuid here"]
    for message in world.meta.messages()[1:]:
        known = {"to": f"+{PHONE}", "recipient": BSUID}
        given = {name: message.body[name] for name in known if name in message.body}
        assert given
        assert given.items() <= known.items()
    assert world.meta.violations == []
    assert [ending for _, ending in await endings(world)] == ["answered"] * 3


async def test_b145_a_failure_without_a_name_is_known_by_its_tag(world: World) -> None:
    world.meta.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=Echo(), **ALONE)
    await world.meta.person_writes("hi", from_="", user_id=BSUID)
    [message] = await taken(world, 1)
    at = world.clock.wall()
    told = payloads.status(
        message.wamid, "failed", at, to="", tag=message.tag, code=131026, words="gone"
    )
    change = payloads.change(statuses=[told])
    assert (await world.meta.deliver(payloads.envelope(change))).answers == [200]
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("undeliverable",)])
    assert await parts(world) == [("refused", 1, "131026")]


@pytest.mark.parametrize("named", [f"+{PHONE}", BSUID], ids=["phone", "scoped id"])
async def test_b145_who_is_forgotten_by_one_name_is_forgotten_by_both(
    world: World, named: str
) -> None:
    process = await world.start(agent=Echo(), **ALONE)
    await world.meta.person_writes("swordfish one", from_="", user_id=BSUID)
    await world.settled()
    await world.meta.person_writes("swordfish two", from_=PHONE, user_id=BSUID)
    await world.settled()
    rt = process.process.rt
    [(chat,)] = await world.rows("SELECT chat FROM chat_addresses WHERE address = :n", n=named)
    assert (await chats.forget(rt, ANN, chat)).result is Result.DONE
    for table in ("inbound", "outbox", "payloads", "chats"):
        assert "swordfish" not in str(await world.rows(f"SELECT * FROM {table}")), table


async def test_a_changed_number_is_the_same_chat_and_the_next_answer_goes_there(
    world: World,
) -> None:
    await world.start(agent=remembers, **ALONE)
    await world.meta.person_writes("first", from_=PHONE, user_id=BSUID)
    await world.settled()
    told = {
        "type": "user_changed_number",
        "body": f"User Ada changed from {PHONE} to {NEW_PHONE}",
        "wa_id": NEW_PHONE,
    }
    message = world.meta.message(from_=PHONE, kind="system", content=told)
    change = payloads.change(messages=[message])
    assert (await world.meta.deliver(payloads.envelope(change))).answers == [200]
    await world.settled()
    assert len(world.meta.messages()) == 1, "a changed number is nothing to answer"
    await world.meta.person_writes("second", from_=NEW_PHONE, user_id="US.999")
    await world.settled()
    assert await world.rows(CHATS) == [(1,)]
    assert world.meta.texts(f"+{NEW_PHONE}") == ["first | second"]


async def test_a_changed_scoped_id_is_the_same_chat(world: World) -> None:
    await world.start(agent=remembers, **ALONE)
    await world.meta.person_writes("first", from_="", user_id=BSUID)
    await world.settled()
    told: dict[str, Any] = {
        "type": "user_changed_user_id",
        "user_id": "US.2",
        "previous_user_id": BSUID,
    }
    message = world.meta.message(from_="", user_id="US.2", kind="system", content=told)
    assert (
        await world.meta.deliver(payloads.envelope(payloads.change(messages=[message])))
    ).answers == [200]
    await world.settled()
    await world.meta.person_writes("second", from_="", user_id="US.2")
    await world.settled()
    assert await world.rows(CHATS) == [(1,)]
    assert world.meta.texts("US.2") == ["first | second"]


async def test_the_same_person_on_two_numbers_is_two_chats_each_answered_by_its_number(
    world: World,
) -> None:
    await world.start(agent=remembers, **TWO)
    for number in (NUMBER, OTHER_NUMBER):
        await world.meta.person_writes(f"to {number}", number=number, user_id=BSUID)
        await world.settled()
    assert await world.rows(CHATS) == [(2,)]
    assert {m.text: m.number for m in world.meta.messages()} == {
        f"to {NUMBER}": NUMBER,
        f"to {OTHER_NUMBER}": OTHER_NUMBER,
    }
