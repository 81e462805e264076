"""A visitor of a page writes, and what becomes of it is told: to whoever asks, and who follows."""

from __future__ import annotations

import httpx

from bot.leases.checkpoints import Checkpoint
from tests.kit.agents import Gated
from tests.kit.conversation import PATIENT
from tests.kit.passing import settle
from tests.kit.web import Visitor
from tests.limits import until
from tests.world import Running, World, dies_at


async def test_a_message_is_accepted_and_its_answer_is_told_once(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True)
    visitor = await Visitor(running.url, http).begin()
    accepted = await visitor.say("m1", "hello")
    assert accepted.status_code == 202
    assert accepted.json()["status"] == "pending"
    assert accepted.json()["already_accepted"] is False
    answer = await visitor.answered("m1")
    assert answer["status"] == "completed"
    assert answer["answer"] == "hello"
    again = await visitor.say("m1", "hello")
    assert again.status_code == 200
    assert again.json()["already_accepted"] is True
    assert again.json()["answer"] == "hello"
    history = await visitor.history()
    assert [(one["kind"], one["text"]) for one in history] == [
        ("accepted", "hello"),
        ("message", "hello"),
    ]


async def test_whoever_follows_is_told_in_order_what_becomes_of_a_message(
    world: World, http: httpx.AsyncClient
) -> None:
    agent = Gated()
    running = await world.start(web=True, agent=agent)
    visitor = await Visitor(running.url, http).begin()
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        assert following.told[0].data["n"] == 0
        await visitor.say("m1", "hello")
        await following.until(lambda f: "working" in f.kinds)
        agent.go.set()
        await following.until(lambda f: "ended" in f.kinds)
        numbers = [told.id for told in following.events]
        assert numbers == sorted(numbers)  # type: ignore[type-var]
        assert following.of("message")[0].data["text"] == "re: hello"
        assert following.of("ended")[0].data["status"] == "completed"
        assert following.kinds.index("message") < following.kinds.index("ended")
    async with visitor.following(after=0) as again:
        await again.until(lambda f: "ended" in f.kinds)
        assert again.kinds == ["accepted", "working", "message", "ended"]
        assert [told.id for told in again.told] == [1, 2, 3, 4]


async def test_an_answer_is_told_however_often_its_sender_dies_before_it_was(
    world: World, http: httpx.AsyncClient
) -> None:
    """A page's journal tells for certain that an attempt wrote nothing: no one is left in doubt."""
    agent, deaths = Gated(), 3
    at_work: list[Running] = []

    async def begin_to_die() -> Running:
        reached = dies_at(Checkpoint.BEFORE_SEND, lambda: at_work[-1])
        at_work.append(await world.start(web=True, agent=agent, reached=reached, **PATIENT))
        return at_work[-1]

    first = await begin_to_die()
    visitor = await Visitor(first.url, http).begin()
    assert (await visitor.say("m1", "hello")).status_code == 202
    agent.go.set()
    for more in reversed(range(deaths)):
        await until(lambda: at_work[-1].dead)
        await at_work[-1].die()
        if more:
            await begin_to_die()
    running = await world.start(web=True, agent=agent, **PATIENT)
    await settle(world)
    answer = await Visitor(running.url, http, visitor.token).answered("m1")
    assert (answer["status"], answer["ending"], answer["answer"]) == (
        "completed",
        "answered",
        "re: hello",
    )
    assert await world.rows("SELECT attempts, state FROM outbox") == [(deaths + 1, "sent")]
