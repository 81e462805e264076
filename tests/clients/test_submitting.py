"""A message is recorded once under the name that its client gave it, whatever is lost."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from bot.domain.ending import TurnStatus
from bot.intake import accept
from bot.intake.status import turn_status
from tests.kit.agents import Echo, Gated
from tests.kit.web import API, WEB, Visitor, identity
from tests.limits import PATIENCE
from tests.world import World, open_world

_ROWS = "SELECT (SELECT count(*) FROM inbound), (SELECT count(*) FROM runs)"


async def post_and_lose_the_answer(world: World, visitor: Visitor, body: dict[str, str]) -> None:
    """The request arrives, and the connection breaks before its answer is read."""
    place = urlsplit(visitor.url)
    _, writer = await asyncio.open_connection(place.hostname, place.port)
    content = json.dumps(body)
    writer.write(
        f"POST {API}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {visitor.token}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n{content}".encode()
    )
    await writer.drain()
    await world.until(_ROWS, lambda rows: rows[0][0] == 1)
    writer.transport.abort()


async def test_b156_who_lost_the_answer_sends_again_and_nothing_is_done_twice(
    world: World, http: httpx.AsyncClient
) -> None:
    agent = Gated()
    running = await world.start(web=True, agent=agent)
    visitor = await Visitor(running.url, http).begin()
    name = "web-0000000000000001"
    await post_and_lose_the_answer(world, visitor, {"request_id": name, "text": "book it"})
    first = await visitor.say(name, "book it")
    assert (first.status_code, first.json()["already_accepted"]) == (200, True)
    assert first.json()["status"] == "pending"
    await asyncio.wait_for(agent.begun.wait(), PATIENCE)
    pair = await asyncio.gather(visitor.say(name, "book it"), visitor.say(name, "book it"))
    assert [answer.status_code for answer in pair] == [200, 200]
    assert pair[0].json() == pair[1].json()
    agent.go.set()
    await visitor.answered(name)
    last = (await visitor.say(name, "book it")).json()
    assert (last["already_accepted"], last["status"], last["answer"]) == (
        True,
        "completed",
        "re: book it",
    )
    assert agent.calls == {"book it": 1}
    assert [tuple(row) for row in await world.rows(_ROWS)] == [(1, 1)]
    assert [one["text"] for one in await visitor.history()] == ["book it", "re: book it"]


@pytest.mark.alternating(1)
async def test_the_same_message_many_times_at_once_is_one(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=(agent := Echo()))
    visitor = await Visitor(running.url, http).begin()
    answers = await asyncio.gather(*(visitor.say("m1", "hello") for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [202]
    await visitor.answered("m1")
    assert agent.calls == {"hello": 1}


async def test_an_operator_asks_for_the_turn_by_the_name_that_the_client_gave_it(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=Echo())
    visitor = await Visitor(running.url, http).begin()
    await visitor.say("order_1", "hello")
    await visitor.answered("order_1")
    asked = running.process.rt.db.read
    assert (await asked(turn_status, "order_1")).answer == "re: hello"
    assert (await asked(turn_status, "orderX1")).status is TurnStatus.UNKNOWN
    assert (await asked(turn_status, "1")).status is TurnStatus.UNKNOWN


@pytest.mark.long
@pytest.mark.alternating(1)
async def test_b157_of_two_texts_under_one_name_one_wins_and_the_other_is_told(
    world: World, http: httpx.AsyncClient, pytestconfig: pytest.Config
) -> None:
    rounds = 50 if pytestconfig.getoption("--deep") else 15
    first = await world.start(web=True, agent=Echo(), chat_messages_per_minute=1000)
    second = await world.start(web=True, agent=Echo(), chat_messages_per_minute=1000)
    here = await Visitor(first.url, http).begin()
    there = Visitor(second.url, http, here.token)
    stranger = await Visitor(second.url, http).begin()
    for number in range(rounds):
        name = f"round-{number}"
        a, b, theirs = await asyncio.gather(
            here.say(name, "a"), there.say(name, "b"), stranger.say(name, f"c {number}")
        )
        assert sorted((a.status_code, b.status_code)) == [202, 409]
        won, lost = ("a", b) if a.status_code == 202 else ("b", a)
        assert "request_id" in lost.json()["error"]
        assert theirs.status_code == 202
        assert (await there.answered(name))["answer"] == f"re: {won}"
        assert (await here.say(name, f"{won} \n")).status_code == 200
        assert (await stranger.answered(name))["answer"] == f"re: c {number}"
    runs = await world.rows("SELECT count(*) FROM runs")
    assert runs[0][0] == 2 * rounds


async def test_a_question_that_is_held_is_answered_when_the_turn_ends(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=(agent := Gated()))
    visitor = await Visitor(running.url, http).begin()
    await visitor.say("m1", "hello")
    held = asyncio.create_task(visitor.turn("m1", wait=25))
    await asyncio.wait_for(agent.begun.wait(), PATIENCE)
    assert (await visitor.turn("m1"))["status"] == "pending"
    agent.go.set()
    while (answer := await held)["status"] == "pending":  # On a machine that is very busy.
        held = asyncio.create_task(visitor.turn("m1", wait=25))
    assert (answer["status"], answer["answer"]) == ("completed", "re: hello")


async def test_stop_withdraws_what_runs_and_what_waits(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=(agent := Gated()))
    visitor = await Visitor(running.url, http).begin()
    async with visitor.following() as following:
        await visitor.say("m1", "one")
        await asyncio.wait_for(agent.begun.wait(), PATIENCE)
        await visitor.say("m2", "two")
        assert (await visitor.post("/stop", {})).json() == {"stopped": 2}
        await following.until(lambda f: len(f.of("withdrawn")) == 2)
    assert {told.data["request_id"] for told in following.of("withdrawn")} == {"m1", "m2"}
    assert (await visitor.turn("m1"))["status"] == "withdrawn"
    assert (await visitor.post("/stop", {})).json() == {"stopped": 0}
    agent.go.set()
    await world.settled()
    assert [one["kind"] for one in await visitor.history()] == ["accepted", "accepted"]
    assert [one["status"] for one in await visitor.history()] == ["withdrawn", "withdrawn"]


async def test_what_ended_while_nobody_looked_is_unread_until_it_was_shown(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(web=True, agent=Echo())
    visitor = await Visitor(running.url, http).begin()
    for number in range(3):
        await visitor.say(f"m{number}", f"text {number}")
        await visitor.answered(f"m{number}")
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        [snapshot] = following.of("snapshot")
    assert snapshot.data["unread"] == 3
    first = next(one for one in snapshot.data["messages"] if one["kind"] == "message")
    assert (await visitor.post("/seen", {"n": first["n"]})).json() == {"unread": 2}
    assert (await visitor.post("/seen", {"n": 1})).json() == {"unread": 2}
    assert (await visitor.post("/seen", {"n": 1 << 40})).json() == {"unread": 0}
    await visitor.say("m9", "later")
    await visitor.answered("m9")
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        assert following.of("snapshot")[0].data["unread"] == 1


async def test_history_is_read_in_pages_from_the_end(world: World, http: httpx.AsyncClient) -> None:
    running = await world.start(web=True, agent=Echo())
    visitor = await Visitor(running.url, http).begin()
    for number in range(7):
        await visitor.say(f"m{number}", f"text {number}")
        await visitor.answered(f"m{number}")
    pages: list[list[str]] = []
    before: dict[str, int] = {}
    more = True
    while more:
        page = (await visitor.get("/messages", limit=4, **before)).json()
        pages.insert(0, [one["text"] for one in page["messages"]])
        before, more = {"before": page["messages"][0]["n"]}, page["more"]
    assert [len(page) for page in pages] == [2, 4, 4, 4]
    said = [text for n in range(7) for text in (f"text {n}", f"re: text {n}")]
    assert [text for page in pages for text in page] == said


@pytest.mark.alternating(1)
async def test_what_is_handed_in_as_a_guest_and_as_the_user_in_the_moment_of_the_claim_is_one(
    world: World, http: httpx.AsyncClient
) -> None:
    agent = Echo()
    running = await world.start(agent=agent, **WEB)
    for number in range(12):
        guest = await Visitor(running.url, http).begin()
        user = Visitor(running.url, http, guest.token)
        if number % 2:
            await guest.say("before", f"before {number}")
        name, text = f"m{number}", f"hello {number}"
        as_guest = asyncio.create_task(guest.say(name, text))
        await user.sign_in(identity(world.clock, f"u{number}"))
        as_user = await user.say(name, text)
        codes = (await as_guest).status_code, as_user.status_code
        assert codes in ((202, 200), (200, 202), (401, 202)), codes
        assert (await user.answered(name))["answer"] == f"re: {text}"
        said = [one["text"] for one in await user.history()]
        assert (said.count(text), said.count(f"re: {text}")) == (1, 1)
        assert agent.calls[text] == 1


@pytest.mark.alternating(1)
async def test_a_guests_message_that_waits_while_its_chat_becomes_the_users_is_known_by_the_users(
    postgres_url: str, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "COMMIT_WITHIN", PATIENCE)
    async with open_world(postgres_url) as world:
        running = await world.start(agent=(agent := Echo()), **WEB)
        user = Visitor(running.url, http)
        await user.sign_in(identity(world.clock, "u1"))
        codes, name = [503], ""
        while 503 in codes:  # Nobody waits for a lock for ever, and a machine may be slow.
            name += "m"
            assert (await user.say(name, name)).status_code == 202
            guest = await Visitor(running.url, http).begin()
            await guest.say("before", "before")
            await guest.answered("before")
            here = Visitor(running.url, http, guest.token)
            with psycopg.connect(postgres_url) as db:
                db.execute("SELECT id FROM chats ORDER BY id DESC LIMIT 1 FOR UPDATE")
                claim = here.post("/session", {"identity": identity(world.clock, "u1")})
                claiming = asyncio.create_task(claim)
                await waiting(world, 1)
                as_guest = asyncio.create_task(guest.say(name, name))
                await waiting(world, 2)
            codes = [(await asked).status_code for asked in (claiming, as_guest)]
        assert codes == [200, 200]
        await user.answered(name)
        assert agent.calls[name] == 1


async def waiting(world: World, count: int) -> None:
    """Wait until so many transactions wait for a lock."""
    sql = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    await world.until(sql, lambda rows: rows[0][0] >= count)
