"""Guests and users of a page, and the chats that they open, from the first visit to signing out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import httpx
import pytest

from tests.channels.web.test_identity import forged
from tests.kit.agents import Echo, Gated
from tests.kit.web import IDENTITY_SECRET, WEB, Following, Visitor, identity
from tests.limits import until
from tests.world import Running, World

Comes = Callable[..., Awaitable[Visitor]]


@pytest.fixture
async def running(world: World) -> Running:
    """A process that answers at once."""
    return await world.start(agent=Echo(), **WEB)


@pytest.fixture
def comes(world: World, http: httpx.AsyncClient) -> Comes:
    """Somebody comes to a page of this process: a guest, or whom the site identifies."""

    async def come(running: Running, sub: str = "", name: str = "") -> Visitor:
        visitor = Visitor(running.url, http)
        await visitor.sign_in(identity(world.clock, sub, name) if sub else None)
        return visitor

    return come


async def rows(world: World) -> tuple[int, int]:
    """The numbers of chats and claims."""
    [(chats, claims)] = await world.rows(
        "SELECT (SELECT count(*) FROM chats), (SELECT count(*) FROM claims)"
    )
    return chats, claims


async def texts(visitor: Visitor) -> list[str]:
    """The words of the chat, on both sides."""
    return [message["text"] for message in await visitor.history()]


def was_told(text: str, following: Following) -> bool:
    """Tell whether a stream has brought this text."""
    return text in str([told.data for told in following.told])


async def wrote(visitor: Visitor, text: str) -> Visitor:
    """The visitor, who wrote this and has the answer."""
    assert (await visitor.say(text, text)).status_code == 202
    assert (await visitor.answered(text))["answer"] == f"re: {text}"
    return visitor


async def test_a_guest_has_no_row_until_the_first_message(
    world: World, running: Running, comes: Comes
) -> None:
    visitor = await comes(running)
    assert await texts(visitor) == []
    assert (await visitor.post("/stop", {})).json() == {"stopped": 0}
    assert await rows(world) == (0, 0)
    await wrote(visitor, "hello")
    assert await rows(world) == (1, 0)


async def test_a_guest_who_comes_again_gets_a_fresh_token_for_the_same_chat(
    world: World, running: Running, comes: Comes
) -> None:
    visitor = await wrote(await comes(running), "hello")
    first, before = await visitor.sign_in(), visitor.token
    world.clock.advance(1)
    again = await visitor.sign_in()
    assert visitor.token != before
    assert again["chat"] == first["chat"]
    assert again["expires_at"] > first["expires_at"]
    assert not again["signed_in"]
    assert await texts(visitor) == ["hello", "re: hello"]


@pytest.fixture
async def two(running: Running, comes: Comes) -> tuple[Visitor, Visitor]:
    """User u1 with a chat, and a guest with another."""
    return await wrote(await comes(running, "u1"), "hello"), await wrote(
        await comes(running), "mine"
    )


async def test_b159_a_forged_identity_opens_nothing_and_changes_nothing(
    world: World, two: tuple[Visitor, Visitor]
) -> None:
    u1, stranger = two
    before = await rows(world)
    for how, token in forged(IDENTITY_SECRET, world.clock.wall()).items():
        answer = await stranger.ask("POST", "/session", {"identity": token})
        assert answer.status_code == 401, how
        assert answer.json()["error"].startswith("the identity"), how
        assert "token" not in answer.json()
    assert await rows(world) == before
    assert await texts(stranger) == ["mine", "re: mine"]
    assert await texts(u1) == ["hello", "re: hello"]


@pytest.mark.parametrize("body", [{"sub": "u1"}, {"identity": {"sub": "u1"}}, {"identity": 7}])
async def test_b159_nobody_is_who_they_only_say_they_are(
    world: World, two: tuple[Visitor, Visitor], body: dict[str, object]
) -> None:
    answer = await two[1].ask("POST", "/session", body)
    assert answer.status_code == (401 if "identity" in body else 200)
    assert not answer.json().get("signed_in")
    assert await rows(world) == (2, 0)


async def test_b159_the_valid_one_signs_in_and_takes_the_guests_chat_along(
    world: World, two: tuple[Visitor, Visitor]
) -> None:
    u1, visitor = two
    as_guest = Visitor(visitor.url, visitor.http, visitor.token)
    told = await visitor.sign_in(identity(world.clock, "u1", "Ada"))
    assert told["signed_in"]
    assert told["claimed"]
    assert told["chat"] == (await u1.sign_in(identity(world.clock, "u1")))["chat"]
    assert sorted(await texts(u1)) == ["hello", "mine", "re: hello", "re: mine"]
    assert (await as_guest.get("/messages")).status_code == 401
    assert (await as_guest.post("/session", {})).status_code == 401
    before = await rows(world)
    assert (await as_guest.sign_in(identity(world.clock, "u1")))["claimed"]
    assert await rows(world) == before


async def test_b159_a_chat_that_is_one_users_is_not_claimed_by_another(
    world: World, two: tuple[Visitor, Visitor]
) -> None:
    _, visitor = two
    thief = Visitor(visitor.url, visitor.http, visitor.token)
    await visitor.sign_in(identity(world.clock, "u2"))
    told = await thief.sign_in(identity(world.clock, "u3"))
    assert told["signed_in"]
    assert not told["claimed"]
    assert await texts(thief) == []
    assert await texts(visitor) == ["mine", "re: mine"]


@pytest.mark.alternating(1)
async def test_b160_a_guest_who_signs_in_on_two_devices_at_once_while_a_turn_runs(
    world: World, comes: Comes, http: httpx.AsyncClient
) -> None:
    agent = Gated()
    agent.go.set()
    processes = [await world.start(agent=agent, **WEB) for _ in range(2)]
    device = await comes(processes[1], "u1")
    for text in "abc":
        await wrote(device, text)
    agent.go.clear()
    visitor = await comes(processes[0])
    async with device.following() as following:
        assert (await visitor.say("one", "one")).status_code == 202
        await until(lambda: "one" in agent.texts)

        async def sign_in(number: int) -> dict[str, object]:
            on = Visitor(processes[number % 2].url, http, visitor.token)
            return await on.sign_in(identity(world.clock, "u1"))

        late = Visitor(processes[1].url, http, visitor.token)
        writing = asyncio.create_task(late.say("two", "two"))
        signed_in = await asyncio.gather(*map(sign_in, range(30)))
        assert all(told["signed_in"] and told["claimed"] for told in signed_in)
        written = await writing
        if written.status_code == 401:  # The claim came first.
            written = await device.say("two", "two")
        assert written.status_code == 202
        agent.go.set()
        for text in ("one", "two"):
            assert (await device.answered(text))["answer"] == f"re: {text}"
        await following.until(
            lambda f: (
                "re: two" in str([told.data for told in f.told])
                and "re: one" in str([told.data for told in f.told])
            )
        )
    said = [m["text"] for m in await device.history() if m["kind"] == "accepted"]
    assert said == ["a", "b", "c", "one", "two"]
    assert agent.texts == said
    assert (await visitor.get("/messages")).status_code == 401
    sql = "SELECT count(*) FROM chats WHERE merged_into IS NULL"
    assert [tuple(row) for row in await world.rows(sql)] == [(1,)]
    before = await rows(world)
    assert (await sign_in(0))["claimed"]
    assert await rows(world) == before


async def test_a_claim_ends_what_the_guest_follows_and_reaches_what_the_user_follows(
    world: World, running: Running, comes: Comes
) -> None:
    device, visitor = await comes(running, "u1"), await wrote(await comes(running), "mine")
    async with device.following() as theirs, visitor.following() as as_guest:
        await theirs.until(lambda f: f.told)
        await visitor.sign_in(identity(world.clock, "u1"))
        await theirs.until(partial(was_told, "re: mine"))
        await as_guest.until(lambda f: f.over)
        assert "re: mine" not in str([told.data for told in as_guest.told[1:]])


async def test_who_signed_out_reads_nothing_any_more_not_even_an_open_stream(
    world: World, running: Running, comes: Comes
) -> None:
    visitor, other = await comes(running, "u1"), await comes(running, "u1")
    await wrote(visitor, "hello")
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        await visitor.sign_in(identity(world.clock, "u1"))  # The same session, a new token.
        for _ in range(2):
            assert (await visitor.ask("DELETE", "/session")).status_code == 204
        await following.until(lambda f: f.over)
    assert (await visitor.get("/messages")).status_code == 401
    assert await texts(other) == ["hello", "re: hello"]


async def test_the_next_person_at_the_desk_does_not_get_the_chat_of_a_guest_who_signed_out(
    world: World, running: Running, comes: Comes
) -> None:
    visitor = await wrote(await comes(running), "secret")
    assert (await visitor.ask("DELETE", "/session")).status_code == 204
    told = await visitor.sign_in(identity(world.clock, "next"))
    assert told["signed_in"]
    assert not told["claimed"]
    assert await texts(visitor) == []


async def test_a_token_whose_time_is_over_is_refused(world: World, comes: Comes) -> None:
    running = await world.start(**WEB, lease_seconds=1e6)
    visitor = await comes(running, "u1")
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        world.clock.advance(86_400)
        for desk in running.process.desks.values():
            await desk.followers.beat()
        await following.until(lambda f: f.over)
    assert (await visitor.get("/messages")).status_code == 401
    assert (await visitor.post("/session", {})).status_code == 401
    assert (await visitor.sign_in(identity(world.clock, "u1")))["signed_in"]


async def test_a_users_session_is_renewed_by_the_site_alone(running: Running, comes: Comes) -> None:
    assert (await (await comes(running, "u1")).post("/session", {})).status_code == 422


async def test_the_agent_is_told_the_name_that_the_site_gave(
    world: World, running: Running, comes: Comes
) -> None:
    await wrote(await comes(running, "u1", "Ada"), "hello")
    [row] = await world.rows("SELECT sender_name, sender_id FROM inbound")
    assert tuple(row) == ("Ada", "user:u1")


async def test_all_processes_take_a_token_that_one_of_them_made(
    world: World, running: Running, comes: Comes, http: httpx.AsyncClient
) -> None:
    other = await world.start(**WEB)
    token = (await comes(running)).token
    assert (await Visitor(other.url, http, token).get("/messages")).status_code == 200
