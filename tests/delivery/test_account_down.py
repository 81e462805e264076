"""While an account is down its messages are answered, and the answers kept until it is up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from storage import accounts
from tests.fakes.faults import Rule
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.twilio import faults as twilio_faults
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.updates import Person
from tests.kit.agents import Echo
from tests.kit.conversation import ADA, BOB, PATIENT, post
from tests.kit.passing import settle
from tests.limits import until
from tests.world import Running, World, dies_at

DOWN = "SELECT count(*) FROM accounts WHERE down_since IS NOT NULL"
KEPT = "SELECT count(*) FROM runs WHERE replied AND state = 'ready' AND not_before > 1e11"
PEOPLE = [Person(ADA + person) for person in range(10)]
STATES = "SELECT state FROM outbox ORDER BY part"
WAITING = "SELECT count(*) FROM runs WHERE state = 'waiting'"


async def long(turn: Turn) -> str:
    """More than one message holds."""
    return "\n\n".join(f"{turn.text} ".ljust(3900, ".") for _ in range(3))


async def by_telegram(world: World, running: Running, person: int, text: str) -> None:
    assert await post(running, PEOPLE[person].text(text)) == [200]


async def by_twilio(world: World, _running: Running, person: int, text: str) -> None:
    await world.twilio.inbound(text, from_=f"whatsapp:+155501005{person:02d}")


@dataclass(frozen=True)
class Platform:
    refuse: Callable[[World], Rule]
    write: Callable[[World, Running, int, str], Awaitable[None]]
    texts: Callable[[World], list[str]]
    sends: Callable[[World], int]


PLATFORMS = {
    "telegram": Platform(
        lambda world: world.telegram.fail("*", telegram_faults.unauthorized(), times=None),
        by_telegram,
        lambda world: [text for n in range(10) for text in world.telegram.texts(ADA + n)],
        lambda world: len(world.telegram.calls_of("sendMessage")),
    ),
    "twilio": Platform(
        lambda world: world.twilio.fail("*", twilio_faults.unauthorized(), times=None),
        by_twilio,
        lambda world: world.twilio.texts(),
        lambda world: len(world.twilio.calls_of("create")),
    ),
}


@pytest.mark.parametrize("name", PLATFORMS)
async def test_what_is_written_to_a_dead_token_is_answered_and_leaves_once_when_it_is_good(
    world: World, name: str
) -> None:
    platform, agent = PLATFORMS[name], Echo()
    running = await world.start(agent=agent, **PATIENT)
    refused = platform.refuse(world)
    await platform.write(world, running, 0, "m0")
    await world.until(DOWN, lambda rows: rows == [(1,)])
    for person in range(1, 10):
        await platform.write(world, running, person, f"m{person}")
    await platform.write(world, running, 0, "again")
    await world.until(KEPT, lambda rows: rows == [(10,)])
    assert await world.rows(WAITING) == [(1,)]
    assert agent.calls == {f"m{n}": 1 for n in range(10)}
    assert platform.sends(world) == 1
    assert await world.rows("SELECT sum(attempts) FROM outbox") == [(1,)]
    refused.cancel()
    await running.stop()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    texts = platform.texts(world)
    assert Counter(texts) == Counter(["re: again", *(f"re: m{n}" for n in range(10))])
    assert texts.index("re: m0") < texts.index("re: again")
    assert set(agent.calls.values()) == {1}


@pytest.mark.parametrize(
    "death", [Checkpoint.CLAIMED, Checkpoint.AGENT_RETURNED, Checkpoint.REPLY_STORED]
)
async def test_a_death_while_an_account_is_down_costs_no_answer(
    world: World, death: Checkpoint
) -> None:
    agent, armed = Echo(), False
    dies = dies_at(death, lambda: running)

    async def reached(checkpoint: Checkpoint) -> None:
        if armed:
            await dies(checkpoint)

    running = await world.start(agent=agent, reached=reached, **PATIENT)
    refused = world.telegram.fail("sendMessage", telegram_faults.unauthorized(), times=None)
    await post(running, Person(ADA).text("before"))
    await world.until(KEPT, lambda rows: rows == [(1,)])
    armed = True
    await post(running, Person(BOB).text("hello"))
    await until(lambda: running.dead)
    await running.die()  # Its name is free when its connections are closed.
    again = await world.start(agent=agent, **PATIENT)
    await world.until(KEPT, lambda rows: rows == [(2,)])
    assert world.telegram.texts(BOB) == []
    refused.cancel()
    await again.stop()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: before"]
    assert world.telegram.texts(BOB) == ["re: hello"]
    assert agent.calls["before"] == 1
    assert agent.calls["hello"] == (2 if death is Checkpoint.AGENT_RETURNED else 1)


async def test_a_reply_of_several_parts_stops_before_its_next_one(world: World) -> None:
    held = world.telegram.fail("sendMessage", telegram_faults.held_after_storing())
    running = await world.start(agent=long, telegram_read_timeout=600.0, **PATIENT)
    await post(running, Person(ADA).text("tell me all"))
    await world.telegram.wait_for(lambda: held.hits)
    db = running.process.rt.db
    [account] = [one for one in await db.read(accounts.listed) if one.channel == "telegram"]
    await db.write(accounts.mark_down, account.id, "the token was revoked")
    held.release()
    await world.until(KEPT, lambda rows: rows == [(1,)])
    states = await world.rows(STATES)
    assert states[0] == ("sent",)
    assert set(states[1:]) == {("pending",)}
    assert len(world.telegram.calls_of("sendMessage")) == 1
    await db.write(accounts.mark_up, account.id)
    await settle(world)
    assert len(world.telegram.texts(ADA)) == len(states) > 1


async def test_what_may_have_arrived_is_not_looked_for_while_the_account_is_down(
    world: World,
) -> None:
    world.twilio.plan = lambda _message: StatusPlan((), told=False)
    world.twilio.fail("create", twilio_faults.hang_after_storing())
    running = await world.start(agent=Echo(), **PATIENT)
    await world.twilio.inbound("hello")
    await world.until(STATES, lambda rows: rows == [("uncertain",)])
    refused = world.twilio.fail("*", twilio_faults.unauthorized(), times=None)
    db = running.process.rt.db
    [account] = [one for one in await db.read(accounts.listed) if one.channel == "whatsapp"]
    await db.write(accounts.mark_down, account.id, "the token was revoked")
    world.advance(4)
    await world.until(KEPT, lambda rows: rows == [(1,)])
    assert refused.hits == []
    refused.cancel()
    await db.write(accounts.mark_up, account.id)
    await settle(world)
    assert world.twilio.texts() == ["re: hello"]
    assert await world.rows(STATES) == [("sent",)]
