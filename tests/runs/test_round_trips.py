"""The price of one message that comes alone: transactions and waits for the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from tempfile import TemporaryDirectory

import pytest

from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.conversation import PATIENT, post
from tests.kit.wire import Exchange, Wire, wired
from tests.world import Running, World, open_world

CHAT = 700100271
A_MESSAGE = 16
"""Round trips, with its history."""
WITH_CALLBACKS = 24


@pytest.fixture
async def wire(postgres_url: str) -> AsyncIterator[Wire]:
    with TemporaryDirectory(prefix="answerback-wire-") as folder:
        async with wired(postgres_url, folder) as wire:
            yield wire


@pytest.fixture
async def world(wire: Wire) -> AsyncIterator[World]:
    async with open_world(wire.url) as world:
        yield world


def of_messages(wire: Wire, since: int) -> Sequence[Exchange]:
    """The exchanges from the one with this number on that belong to messages: those that changed
    rows of theirs, and the history's, which has no transaction around it."""
    new = wire.exchanges[since:]
    return [e for e in new if is_move(e) or (e.asked and e.asked[0].startswith("WITH turns"))]


def is_move(exchange: Exchange) -> bool:
    return exchange.changed("inbound", "runs", "outbox", "replies", "payloads")


def round_trips(exchanges: Sequence[Exchange]) -> int:
    return sum(exchange.round_trips for exchange in exchanges)


async def prepared(running: Running, world: World) -> None:
    """Preparing a statement is a round trip of its own: the driver does so at its sixth use on a
    connection, of which these processes have one for their work."""
    for number in range(1, 8):
        await post(running, Person(CHAT - number).text("first of all"))
        await world.settled()


async def test_a_message_costs_three_transactions(wire: Wire, world: World) -> None:
    running = await world.start(agent=repeats, database_pool=1, **PATIENT)
    await prepared(running, world)
    ada = Person(CHAT)
    for number in range(3):  # the first of its chat, one more, one more
        world.clock.advance(10)  # past the pace of the chat
        since = len(wire.exchanges)
        await post(running, ada.text(f"hello {number}"))
        await world.settled()
        found = of_messages(wire, since)
        assert len([e for e in found if is_move(e)]) == 3, found
        assert round_trips(found) <= A_MESSAGE, found


async def test_a_message_whose_platform_reports_twice_costs_five(wire: Wire, world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=repeats, database_pool=1, **PATIENT)
    await world.twilio.inbound("first of all")
    await world.settled()
    for number in range(2):
        world.clock.advance(10)  # past the pace of the chat
        since = len(wire.exchanges)
        await world.twilio.inbound(f"hello {number}")
        await world.settled()
        *_, answer = world.twilio.messages()
        for status in ("sent", "delivered"):
            await world.twilio.report(answer.sid, status)
        found = of_messages(wire, since)
        assert len([e for e in found if is_move(e)]) == 5, found
        assert round_trips(found) <= WITH_CALLBACKS, found
