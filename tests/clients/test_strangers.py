"""People who may not: other tokens, damaged ones, pages of other sites, too many requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.clients.test_openapi import OPERATIONS
from tests.kit.agents import Echo
from tests.kit.web import API, WEB, Visitor, identity
from tests.world import Running, World

pytestmark = pytest.mark.alternating(0)

SITE = "https://www.example.test"
BODIES: dict[tuple[str, str], object] = {
    ("POST", "/session"): {},
    ("POST", "/messages"): {"request_id": "mine", "text": "mine?"},
    ("POST", "/seen"): {"n": 1},
    ("POST", "/stop"): {},
}
Ask = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
async def running(world: World) -> Running:
    return await world.start(agent=Echo(), web_origins=SITE, **WEB)


@pytest.fixture
async def owner(running: Running, http: httpx.AsyncClient) -> Visitor:
    """Somebody with a chat, a message, its answer, and a file."""
    visitor = await Visitor(running.url, http).begin()
    await visitor.say("mine", "mine", files=[{"name": "a", "type": "image/png", "data": "YQ=="}])
    await visitor.answered("mine")
    return visitor


async def paths(owner: Visitor) -> dict[tuple[str, str], str]:
    """Every route that is described, as it is asked about the owner's chat."""
    [ref] = [f["ref"] for message in await owner.history() for f in message.get("files", ())]
    named = {"/turns/{id}": "/turns/mine", "/files/{ref}": f"/files/{ref}"}
    return {(method, path): named.get(path, path) for method, path in OPERATIONS}


async def ask(
    who: Visitor, route: tuple[str, str], path: str, **headers: str
) -> tuple[int, str, httpx.Headers]:
    """The answer of a route: of a stream, which has no end, its beginning."""
    method, _ = route
    url, known = f"{who.url}{API}{path}", who.headers if who.token else {}
    async with who.http.stream(
        method, url, json=BODIES.get(route), headers={**known, **headers}
    ) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            return answer.status_code, (await answer.aread()).decode(), answer.headers
        async for text in answer.aiter_text():
            if "data:" in text:
                return answer.status_code, text, answer.headers
    raise AssertionError("the stream ended")


async def test_a_strangers_token_opens_nothing_of_a_chat_by_any_route(
    world: World, owner: Visitor
) -> None:
    stranger = await Visitor(owner.url, owner.http).begin()
    asked = await paths(owner)
    first = [route for route in asked if route not in BODIES]
    for route in (*first, *(route for route in asked if route in BODIES)):
        status, said, _ = await ask(stranger, route, asked[route])
        assert "re: mine" not in said, route
        match route[1]:
            case "/turns/{id}":
                assert (status, '"unknown"' in said) == (200, True)
            case "/files/{ref}":
                assert status == 404
            case "/session":
                stranger = await Visitor(owner.url, owner.http).begin()
            case _:
                assert status in (200, 202), route
    assert [m["text"] for m in await owner.history()] == ["mine", "re: mine"]
    assert (await owner.turn("mine"))["answer"] == "re: mine"
    # An unknown thing and somebody else's look the same.
    unknown = await stranger.get("/turns/nothing")
    theirs = await stranger.get("/turns/mine")
    assert unknown.json() | {"request_id": ""} == theirs.json() | {"request_id": ""} or (
        theirs.json()["status"] != "unknown"  # It wrote a message of that name itself by now.
    )


async def test_b158_a_damaged_token_is_refused_by_every_route_with_one_fixed_text(
    owner: Visitor,
) -> None:
    asked, token = await paths(owner), owner.token
    damaged = {
        "cut": token[:-4],
        "changed": token[:60] + ("A" if token[60] != "A" else "B") + token[61:],
        "unsigned": token.rpartition(".")[0] + ".",
        "nonsense": "x" * 200,
        "empty": "",
        "very long": token + "x" * 9000,
    }
    texts = set()
    for how, wrong in damaged.items():
        for route, path in asked.items():
            refused = Visitor(owner.url, owner.http)
            for header in (f"Bearer {wrong}", f"Basic {wrong}", wrong):
                status, said, _ = await ask(refused, route, path, Authorization=header.strip())
                assert status == 401, (how, route)
                assert wrong[-20:] not in said or not wrong
                texts.add(said)
    for route, path in asked.items():
        if route != ("POST", "/session"):
            status, said, _ = await ask(Visitor(owner.url, owner.http), route, path)
            assert status == 401, route
            texts.add(said)
    assert len(texts) == 1


async def test_b158_a_token_in_a_url_is_not_taken(owner: Visitor) -> None:
    stranger = Visitor(owner.url, owner.http)
    for route, path in (await paths(owner)).items():
        for name in ("token", "access_token"):
            status, said, _ = await ask(stranger, route, f"{path}?{name}={owner.token}")
            assert status == 401, route
            assert owner.token[-20:] not in said
            status, _, _ = await ask(owner, route, f"{path}?{name}={owner.token}")
            assert status == 401, route


async def test_other_sites_pages_are_refused_by_every_route_and_ours_is_told_so(
    owner: Visitor,
) -> None:
    asked = await paths(owner)
    for route, path in asked.items():
        for origin in ("https://evil.test", "null", f"{SITE}.evil.test", "http://www.example.test"):
            status, _, headers = await ask(owner, route, path, Origin=origin)
            assert status == 403, (route, origin)
            assert "access-control-allow-origin" not in headers
            assert headers["vary"] == "Origin"
    for route in (r for r in asked if r != ("DELETE", "/session")):
        for said, allowed in (({"Origin": SITE}, SITE), ({"Origin": owner.url}, None), ({}, None)):
            status, _, headers = await ask(owner, route, asked[route], **said)
            assert status in (200, 202, 409), (route, said)
            assert headers.get("access-control-allow-origin") == allowed
            assert "access-control-allow-credentials" not in headers
            assert headers["x-content-type-options"] == "nosniff"


async def test_an_origin_that_may_be_missing_in_the_settings_is_named_once_in_the_log(
    owner: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(40):
        for _ in range(2):
            origin = f"https://{number}.forgotten.test"
            assert (await owner.ask("GET", "/messages", Origin=origin)).status_code == 403
    told = [r.getMessage() for r in caplog.records if "WEB_ORIGINS" in r.getMessage()]
    assert len(told) == len(set(told)) == 20


async def test_refusals_too_can_be_read_by_a_page_of_ours(owner: Visitor) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("PUT", "/messages", 405),
        ("POST", "/messages", 422),
    ):
        answer = await owner.ask(method, path, {} if method == "POST" else None, Origin=SITE)
        assert answer.status_code == status
        assert answer.json()["error"]
        assert answer.headers["access-control-allow-origin"] == SITE
        assert answer.headers["access-control-expose-headers"] == "Retry-After"


async def test_a_preflight_names_what_a_page_of_ours_may_send(owner: Visitor) -> None:
    stranger = Visitor(owner.url, owner.http)
    for path in (await paths(owner)).values():
        asks = {"Access-Control-Request-Method": "POST"}
        answer = await stranger.ask("OPTIONS", path, Origin=SITE, **asks)
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == SITE
        allowed = answer.headers["access-control-allow-headers"].lower()
        assert {"authorization", "content-type", "last-event-id"} <= set(allowed.split(", "))
        assert answer.headers["access-control-allow-methods"] == "GET, POST, DELETE"
        refused = await stranger.ask("OPTIONS", path, Origin="https://evil.test", **asks)
        assert refused.status_code == 403


async def test_who_asks_too_often_is_told_when_to_come_again(
    world: World, http: httpx.AsyncClient
) -> None:
    world.stop_time()
    running = await world.start(
        agent=Echo(), web_visitor_per_minute=2, web_address_per_minute=5, **WEB
    )
    first, second = [await Visitor(running.url, http).begin() for _ in range(2)]
    codes = [(await first.say(f"m{n}", "hello")).status_code for n in range(3)]
    assert codes == [202, 202, 429]
    late = await first.say("m2", "hello")
    assert 1 <= int(late.headers["retry-after"]) <= 60
    assert (await first.get("/messages")).status_code == 200
    codes = [(await second.say(f"m{n}", "hello")).status_code for n in range(2)]
    assert codes == [202, 202]
    third = await Visitor(running.url, http).begin()
    codes = [(await third.say(f"m{n}", "hello")).status_code for n in range(2)]
    assert codes == [202, 429]  # Five came from this address.
    world.advance(60)
    assert (await first.say("m2", "hello")).status_code == 202
    while (answer := await first.get("/messages")).status_code == 200:
        pass
    assert answer.status_code == 429
    assert answer.headers["retry-after"]
    assert answer.json()["error"]


async def test_behind_a_proxy_of_ours_each_address_is_counted(
    world: World, http: httpx.AsyncClient
) -> None:
    world.stop_time()
    running = await world.start(
        web_visitor_per_minute=1, web_address_per_minute=1, web_proxies="127.0.0.1", **WEB
    )
    for last in range(20):
        for _ in range(2):
            visitor = Visitor(running.url, http)
            told = await visitor.ask(
                "POST", "/session", {}, **{"X-Forwarded-For": f"10.0.0.{last}"}
            )
            assert told.status_code == 200
    spoofed = [
        await Visitor(running.url, http).ask(
            "POST", "/session", {}, **{"X-Forwarded-For": f"10.1.0.{n}, 10.0.0.99"}
        )
        for n in range(11)
    ]
    assert [answer.status_code for answer in spoofed] == [200] * 10 + [429]


async def test_a_signed_in_users_other_chat_names_are_not_theirs_to_guess(
    world: World, owner: Visitor
) -> None:
    """The id that a client mints is its chat's: another chat's of the same id is another."""
    user = Visitor(owner.url, owner.http)
    await user.sign_in(identity(world.clock, "u1"))
    assert (await user.say("mine", "another text")).status_code == 202
    assert (await user.answered("mine"))["answer"] == "re: another text"
    assert (await owner.turn("mine"))["answer"] == "re: mine"
