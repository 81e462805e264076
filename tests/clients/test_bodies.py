"""Bodies and questions that no client of ours would send: each is refused with a sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.web import answers
from tests.clients.test_openapi import as_described
from tests.kit.agents import Gated, repeats
from tests.kit.web import API, WEB, Visitor
from tests.limits import PATIENCE, until
from tests.world import World

pytestmark = pytest.mark.alternating(0)

WRONG: list[tuple[bytes, int]] = [
    (b"", 422),
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"[]", 422),
    (b"null", 422),
    (b'"hello"', 422),
    (b"[" * 100_000, 400),
    (b'{"a":' * 20_000, 400),
    (b'{"request_id":"m1","text":"' + b"x" * 16_001 + b'"}', 413),
    (b'{"request_id":"' + b"x" * 60 + b'","text":"hello"}', 422),
    (b'{"request_id":"a b","text":"hello"}', 422),
    (b'{"request_id":7,"text":"hello"}', 422),
    (b'{"request_id":"m1"}', 422),
    (b'{"request_id":"m1","text":" \\u200b\\n"}', 422),
    (b'{"request_id":"m1","text":["hello"]}', 422),
    (b'{"request_id":"m1","text":"hello","button":"yes"}', 422),
    (b'{"request_id":"m1","text":1e999}', 422),
    (b"9" * 5000, 400),
    (b"request_id=m1&text=hello", 400),
]


@pytest.fixture
async def visitor(world: World, http: httpx.AsyncClient) -> Visitor:
    running = await world.start(
        agent=repeats, web_visitor_per_minute=10**6, web_address_per_minute=10**6, **WEB
    )
    return await Visitor(running.url, http).begin()


async def test_a_body_that_is_no_message_is_refused_and_leaves_nothing(
    world: World, visitor: Visitor
) -> None:
    for body, status in WRONG:
        answer = await visitor.ask("POST", "/messages", body)
        as_described(answer, "POST", "/messages")
        assert answer.status_code == status, (body[:60], answer.text)
    [row] = await world.rows("SELECT (SELECT count(*) FROM chats), (SELECT count(*) FROM inbound)")
    assert tuple(row) == (0, 0)


async def test_text_that_no_database_takes_is_stored_as_it_can_be(visitor: Visitor) -> None:
    body = b'{"request_id":"m1","text":"a\\u0000b\\ud800c","x":{"y":[null]}}'
    assert (await visitor.ask("POST", "/messages", body)).status_code == 202
    assert (await visitor.answered("m1"))["answer"] == "a\ufffdb\ufffdc"


async def test_b157_white_space_at_the_end_is_no_other_content(visitor: Visitor) -> None:
    assert (await visitor.say("m1", "hello")).status_code == 202
    assert (await visitor.say("m1", "hello \n\t ")).status_code == 200
    assert (await visitor.say("m1", " hello")).status_code == 409


async def test_a_body_that_is_too_long_is_refused_before_it_is_read(visitor: Visitor) -> None:
    for path in ("/messages", "/session", "/seen", "/stop"):
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(500):
                sent += 100_000
                yield b"x" * 100_000

        url = f"{visitor.url}{API}{path}"
        try:
            answer = await visitor.http.post(url, content=endless(), headers=visitor.headers)
        except httpx.HTTPError:
            continue  # It was cut off while it still wrote, and saw no answer.
        assert answer.status_code == 413, path
    length = {"Content-Length": str(10**15)}
    host = httpx.URL(visitor.url)
    reader, writer = await asyncio.open_connection(host.host, host.port)
    head = f"POST {API}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {visitor.token}\r\n"
    writer.write(f"{head}Content-Length: {length['Content-Length']}\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        assert (await reader.readline()).split()[1] == b"413"
    writer.close()


async def test_bodies_that_never_end_leave_room_for_everybody_else(
    visitor: Visitor,
) -> None:
    host = httpx.URL(visitor.url)
    head = (
        f"POST {API}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {visitor.token}\r\n"
        "Content-Length: 1000000\r\n\r\n{"
    )
    slow: list[asyncio.StreamWriter] = []
    large = json.dumps({"request_id": "m1", "text": "hello", "x": "x" * 300_000}).encode()

    async def refused() -> httpx.Response | None:
        # One more each time: our own question may have had the place of the one before.
        _, writer = await asyncio.open_connection(host.host, host.port)
        slow.append(writer)
        writer.write(head.encode())
        answer = await visitor.ask("POST", "/messages", large)
        return answer if answer.status_code == 503 else None

    answer = await until(refused)
    assert answer is not None
    assert answer.headers["retry-after"]
    assert (await visitor.say("m2", "small")).status_code == 202
    for writer in slow:
        writer.close()

    async def taken() -> bool:
        return (await visitor.ask("POST", "/messages", large)).status_code in (200, 202)

    await until(taken)


async def test_a_body_that_says_a_number_or_nothing_is_small(visitor: Visitor) -> None:
    for path in ("/seen", "/stop"):
        answer = await visitor.ask("POST", path, {"n": 1, "more": "x" * 1000})
        as_described(answer, "POST", path)
        assert answer.status_code == 413


async def test_what_is_no_route_says_so_in_one_form(visitor: Visitor) -> None:
    for path in ("/nothing", "/turns/a%0d%0aX:%20y", "/events/", "/../nothing"):
        answer = await visitor.ask("GET", path)
        assert (answer.status_code, list(answer.json())) == (404, ["error"]), path
        assert answer.headers["x-content-type-options"] == "nosniff"
    for method, path, takes in (
        ("HEAD", "/events", "GET"),
        ("PUT", "/messages", "GET, POST"),
        ("GET", "/session", "DELETE, POST"),
    ):
        answer = await visitor.ask(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, takes)


async def test_a_body_that_comes_too_slowly_is_given_up(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "SLOWEST_BODY", 0.1)
    host = httpx.URL(visitor.url)
    reader, writer = await asyncio.open_connection(host.host, host.port)
    head = f"POST {API}/session HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(PATIENCE):
        assert (await reader.readline()).split()[1] == b"408"
    writer.close()


async def test_of_questions_that_are_held_one_too_many_is_answered_at_once(
    world: World, http: httpx.AsyncClient
) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **WEB)
    visitor = await Visitor(running.url, http).begin()
    await visitor.say("m1", "hello")
    held = [asyncio.create_task(visitor.turn("m1", wait=25)) for _ in range(30)]
    async with asyncio.timeout(PATIENCE):
        done, _ = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
    assert {task.result()["status"] for task in done} == {"pending"}
    agent.go.set()
    await asyncio.gather(*held)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)
NAMES = st.sampled_from(["request_id", "text", "button", "files", "identity", "n", "name", "data"])
BODIES = st.one_of(
    st.dictionaries(NAMES, ODD, max_size=5).map(json.dumps).map(str.encode),
    st.binary(max_size=60),
    ODD.map(json.dumps).map(str.encode),
)
PATHS = st.sampled_from(
    [("POST", "/messages"), ("POST", "/session"), ("POST", "/seen"), ("POST", "/stop")]
)


async def test_no_body_and_no_question_is_answered_with_a_fault_of_ours(
    visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()

    def now(asked: Any) -> httpx.Response:
        answer: httpx.Response = asyncio.run_coroutine_threadsafe(asked, loop).result(PATIENCE)
        return answer

    @settings(suppress_health_check=list(HealthCheck))
    @given(PATHS, BODIES)
    def bodies(route: tuple[str, str], body: bytes) -> None:
        as_described(now(visitor.ask(*route, body)), *route)

    @settings(suppress_health_check=list(HealthCheck))
    @given(st.text(max_size=70), st.text(max_size=30))
    def questions(name: str, value: str) -> None:
        shown, given_ = quote(name, safe="", errors="replace"), quote(value, errors="replace")
        for route, path in (
            (("GET", "/turns/{id}"), f"/turns/{shown or 'x'}?wait={given_}"),
            (("GET", "/files/{ref}"), f"/files/{shown or 'x'}"),
            (("GET", "/messages"), f"/messages?before={given_}&limit={given_}&{shown}"),
        ):
            answer = now(visitor.ask(route[0], path))
            if answer.status_code != 404:  # A slash in a name makes another path of it.
                as_described(answer, *route)

    await asyncio.to_thread(bodies)
    await asyncio.to_thread(questions)
    assert "Traceback" not in caplog.text
    assert [r for r in caplog.records if r.levelname in ("ERROR", "CRITICAL")] == []
