"""An agent over HTTP: the question to it, and that nothing it does holds or leaks anything."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.clock import SystemClock
from bot.domain.errors import AgentFailed, ConfigurationError, GiveUp, Retry
from bot.domain.message import Attachment, InboundKind, Quoted
from bot.domain.ports import Clock
from bot.domain.reply import Reply
from bot.domain.turn import HistoryMessage
from tests.agents.http.server import Behaviour, FakeAgentServer, ok, response
from tests.agents.turns import FakeFile, FakeTurn, message, turn
from tests.limits import PATIENCE

CLOCK = SystemClock()
HI = ok({"text": "Hi"})


@pytest.fixture
async def server() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer(HI) as server:
        yield server


@pytest.fixture
async def connect(server: FakeAgentServer) -> AsyncIterator[Callable[..., HttpAgent]]:
    """Makes an agent at the server's address; bounds and secret by name."""
    async with AsyncExitStack() as stack:

        def make(url: str = "", clock: Clock = CLOCK, **config: object) -> HttpAgent:
            agent = HttpAgent(HttpAgentConfig(url or server.url, **config), clock)  # type: ignore[arg-type]
            stack.push_async_callback(agent.close)
            return agent

        yield make


Connect = Callable[..., HttpAgent]


async def test_a_turn_is_one_post_with_everything_in_it(
    server: FakeAgentServer, connect: Connect
) -> None:
    quoted = Quoted("40", "Which one?", from_us=True)
    asked = FakeTurn(
        (
            message("the \ud83d red one", quoted=quoted),
            message("Yes", InboundKind.BUTTON, button="y"),
        ),
        (HistoryMessage("user", "Hello", 1.0), HistoryMessage("assistant", "Which one?", 2.0)),
        attempt=2,
        interrupted=True,
    )
    assert await connect()(asked) == Reply("Hi")
    sent = server.asked[0].json
    assert len(server.asked) == 1
    assert server.asked[0].headers["idempotency-key"] == sent["idempotency_key"] == "11-agent"
    assert (sent["request_id"], sent["attempt"], sent["interrupted"]) == (asked.request_id, 2, True)
    assert sent["deadline"] == asked.deadline
    assert sent["chat"]["address"] == "700100201"
    assert (sent["chat"]["id"], sent["chat"]["channel"]) == (7, "telegram")
    assert [said["role"] for said in sent["history"]] == ["user", "assistant"]
    first, second = sent["messages"]
    assert first["quoted"] == {"provider_id": "40", "text": "Which one?", "from_us": True}
    assert first["sender"] == {"id": "700100201", "name": "Ada"}
    assert (second["kind"], second["button"], second["attachments"]) == ("button", "y", [])


async def test_the_request_is_signed_over_its_raw_body(
    server: FakeAgentServer, connect: Connect
) -> None:
    before = int(CLOCK.wall())
    await connect(secret="s3cret")(turn("naïve"))
    asked = server.asked[0]
    at, digest = (field.split("=")[1] for field in asked.headers["answerback-signature"].split(","))
    signed = at.encode() + b"." + asked.body
    assert digest == hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert before <= int(at) <= CLOCK.wall()


async def test_without_a_secret_nothing_is_signed(
    server: FakeAgentServer, connect: Connect
) -> None:
    await connect()(turn("x"))
    assert "answerback-signature" not in server.asked[0].headers


async def test_files_are_sent_while_they_fit_and_described_in_any_case(
    server: FakeAgentServer, connect: Connect
) -> None:
    def file(size: int | None, content: bytes, gone: str = "") -> FakeFile:
        return FakeFile(Attachment("photo", "ref", "image/png", "a.png", size), content, gone)

    files = (
        file(3, b"one"),
        file(None, b"sixbytes"),
        file(9, b"never asked"),
        file(2, b"", "it is gone"),
        file(7, b"last one"[:7]),
    )
    photo = message("", InboundKind.PHOTO, attachments=files)
    await connect(file_bytes=10)(FakeTurn((photo,)))
    sent = server.asked[0].json["messages"][0]["attachments"]
    assert base64.b64decode(sent[0]["base64"]) == b"one"
    assert [entry.get("error") for entry in sent] == [
        None,
        "too large to be sent along",
        "too large to be sent along",
        "it is gone",
        None,
    ]
    assert base64.b64decode(sent[4]["base64"]) == b"last on"
    assert (sent[2]["kind"], sent[2]["mime"], sent[2]["size"]) == ("photo", "image/png", 9)
    assert "ref" not in sent[0]


@pytest.mark.parametrize(
    ("behaviour", "error", "complaint"),
    [
        (response(500, b"secret"), AgentFailed, "answered 500$"),
        (response(302, headers="location: http://127.0.0.1:1/\r\n"), AgentFailed, "final address"),
        (response(200, b"secret"), AgentFailed, "its answer is not JSON$"),
        (response(200, b"x", "content-encoding: gzip\r\n"), AgentFailed, "compressed"),
        (response(429, headers="retry-after: 4\r\n"), Retry, "429"),
        (response(422, b'{"give_up": "No tea."}'), GiveUp, "No tea"),
        (b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n{}" + b"", AgentFailed, "no answer within"),
        (b"SECRET\r\n\r\n", AgentFailed, "RemoteProtocolError$"),
        (b"HTTP/1.1 200 X\r\n\r\n{" + FakeAgentServer.ENDLESS, AgentFailed, "longer than 1000"),
    ],
)
async def test_what_goes_wrong_is_named_without_the_servers_words(
    server: FakeAgentServer,
    connect: Connect,
    behaviour: Behaviour,
    error: type[Exception],
    complaint: str,
) -> None:
    server.behaviour = behaviour
    timeout = 0.3 if complaint == "no answer within" else PATIENCE
    with pytest.raises(error, match=complaint) as caught:
        await connect(max_body=1000, timeout=timeout)(turn("a private question"))
    assert "secret" not in str(caught.value).lower()
    assert "private" not in str(caught.value)
    assert len(server.asked) == 1


async def test_b07_turns_that_are_never_answered_hold_only_themselves(
    server: FakeAgentServer, connect: Connect
) -> None:
    server.behaviour = None
    agent = connect()
    stuck = [asyncio.ensure_future(agent(turn("stuck"))) for _ in range(110)]
    for _ in stuck:
        await server.arrivals.acquire()
    server.behaviour = HI
    others = await asyncio.gather(*(agent(turn("other")) for _ in range(10)))
    assert others == [Reply("Hi")] * 10
    assert not any(waiting.done() for waiting in stuck)
    for waiting in stuck:
        waiting.cancel()
    ended = await asyncio.gather(*stuck, return_exceptions=True)
    assert {type(end) for end in ended} == {asyncio.CancelledError}


async def test_a_server_is_asked_however_wrong_our_wall_clock_is(
    server: FakeAgentServer, connect: Connect
) -> None:
    """The deadline is the database's, and ends the turn by that clock."""
    assert (await connect()(turn("one", deadline=CLOCK.wall() - 3600))).text
    assert len(server.asked) == 1


async def test_b07_a_server_that_never_answers_is_cut_off_with_its_turn(
    server: FakeAgentServer, connect: Connect
) -> None:
    server.behaviour = None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await connect()(turn("one"))


async def test_nobody_listening_is_a_failure_that_names_the_place_but_no_password(
    connect: Connect,
) -> None:
    agent = connect("http://me:hush@127.0.0.1:1/turn?key=hush")
    with pytest.raises(AgentFailed, match=r"^http://127\.0\.0\.1:1/turn: can't connect") as failed:
        await agent(turn("x"))
    assert "hush" not in str(failed.value)


async def test_a_cookie_of_one_turn_is_not_sent_with_the_next(
    server: FakeAgentServer, connect: Connect
) -> None:
    server.behaviour = response(200, b'{"text": "Hi"}', "set-cookie: who=ada; path=/\r\n")
    agent = connect()
    await agent(turn("x"))
    await agent(turn("y"))
    assert "cookie" not in server.asked[1].headers


async def test_a_proxy_of_the_environment_is_not_used(
    server: FakeAgentServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert await connect()(turn("x")) == Reply("Hi")


@pytest.mark.parametrize("url", ["", "ftp://a.example", "http://", "agent.example", "http://[::1"])
def test_an_address_that_is_none_is_refused_at_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^AGENT: "):
        HttpAgent(HttpAgentConfig(url), CLOCK)


async def test_an_answer_that_asks_for_a_person_hands_the_turn_over(
    server: FakeAgentServer, connect: Connect
) -> None:
    server.behaviour = ok({"text": "I pass it on.", "hand_over": " wants a refund "})
    asked = turn("refund!")
    assert await connect()(asked) == Reply("I pass it on.")
    assert asked.handoffs == ["wants a refund"]


async def test_an_empty_reason_asks_for_nobody(server: FakeAgentServer, connect: Connect) -> None:
    server.behaviour = ok({"text": "Hi", "hand_over": ""})
    asked = turn("hello")
    assert await connect()(asked) == Reply("Hi")
    assert asked.handoffs == []


@pytest.mark.parametrize("address", ["https://xn--a/", "http:://elsewhere", "//\u2488"])
async def test_a_redirect_to_no_address_is_a_failure_that_names_the_place(
    server: FakeAgentServer, connect: Connect, address: str
) -> None:
    server.behaviour = response(302, headers=f"location: {address}\r\n")
    with pytest.raises(AgentFailed, match=r"127\.0\.0\.1"):
        await connect()(FakeTurn((message("hello"),)))
