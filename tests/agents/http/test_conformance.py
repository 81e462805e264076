"""`answerback agent check`: a good server passes, and each fault of another is found."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator
from itertools import count

import pytest

from bot.agents.http.client import HttpAgentConfig
from bot.agents.http.conformance import Trial, check
from bot.clock import SystemClock
from bot.domain.findings import Level
from tests.agents.http.server import Asked, FakeAgentServer, ok, response
from tests.limits import PATIENCE

CLOCK = SystemClock()


@pytest.fixture
async def server() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer() as server:
        yield server


async def checked(server: FakeAgentServer, secret: str = "s3cret") -> dict[str, Trial]:
    trials = await check(HttpAgentConfig(server.url, secret, timeout=PATIENCE), CLOCK)
    return {trial.name: trial for trial in trials}


def good(asked: Asked) -> bytes:
    """Verifies the signature and its age, and answers the same to the same."""
    fields = asked.headers.get("answerback-signature", "t=0,v1=").split(",")
    at, digest = (field.partition("=")[2] for field in fields)
    right = hmac.new(b"s3cret", at.encode() + b"." + asked.body, hashlib.sha256).hexdigest()
    if digest != right or abs(CLOCK.wall() - int(at)) > 300:
        return response(401)
    spoken = "".join(message["text"] for message in asked.json["messages"]).strip()
    return ok({"text": spoken} if spoken else {"silent": True})


async def test_a_good_server_passes_everything(server: FakeAgentServer) -> None:
    server.behaviour = good
    report = await checked(server)
    assert {trial.level for trial in report.values()} == {Level.OK}, report
    assert report["a blank message"].detail == "stayed silent"
    assert report["the same turn again, after a cut"].detail == "the same answer"
    assert report["a forged signature"].detail == "refused with 401"
    assert len(report) == 13


async def test_it_asks_for_what_real_turns_bring(server: FakeAgentServer) -> None:
    server.behaviour = good
    await checked(server)
    turns = [asked.json for asked in server.asked]
    messages = [message for turn in turns for message in turn["messages"]]
    assert {"text", "photo", "button"} <= {message["kind"] for message in messages}
    assert any(message["attachments"] for message in messages)
    assert max(len(message["text"]) for message in messages) > 10_000
    assert max(len(turn["history"]) for turn in turns) == 50
    assert max(len(turn["messages"]) for turn in turns) == 2
    assert len({turn["idempotency_key"] for turn in turns}) >= 9


async def test_a_server_that_answers_strangers_is_a_problem(server: FakeAgentServer) -> None:
    server.behaviour = ok({"text": "Hi"})
    report = await checked(server)
    assert report["no signature"].level is Level.PROBLEM
    assert report["a forged signature"].level is Level.PROBLEM
    assert report["a signature of an hour ago"].level is Level.WARNING


async def test_without_a_secret_it_says_that_anybody_can_ask(server: FakeAgentServer) -> None:
    server.behaviour = ok({"text": "Hi"})
    report = await checked(server, secret="")
    assert report["signatures"].level is Level.WARNING


async def test_another_answer_to_the_same_turn_is_a_warning(server: FakeAgentServer) -> None:
    numbers = count()
    server.behaviour = lambda _: ok({"text": f"Answer {next(numbers)}"})
    report = await checked(server)
    assert report["the same turn again, after a cut"].level is Level.WARNING


async def test_an_answer_that_breaks_on_one_kind_is_found_there(server: FakeAgentServer) -> None:
    def breaks_on_photos(asked: Asked) -> bytes:
        kinds = {message["kind"] for message in asked.json["messages"]}
        return response(500) if "photo" in kinds else good(asked)

    server.behaviour = breaks_on_photos
    report = await checked(server)
    problems = {name for name, trial in report.items() if trial.level is Level.PROBLEM}
    assert problems == {"a photo with a caption"}
    assert report["a photo with a caption"].detail.endswith("it answered 500")


async def test_giving_up_and_asking_for_later_are_warnings(server: FakeAgentServer) -> None:
    server.behaviour = response(422, b'{"give_up": "no"}')
    assert (await checked(server))["a plain text"].level is Level.WARNING
    server.behaviour = response(503, headers="retry-after: 7\r\n")
    report = await checked(server)
    assert report["a plain text"].detail == "asked to be tried again (7.0 s)"


async def test_a_server_that_does_not_answer_at_all_is_asked_no_more(
    server: FakeAgentServer,
) -> None:
    server.behaviour = response(404)
    report = await checked(server)
    assert list(report) == ["a plain text"]
    assert report["a plain text"].level is Level.PROBLEM
    assert len(server.asked) == 1


async def test_a_server_that_asks_for_a_person_is_told_so(server: FakeAgentServer) -> None:
    def asks_once(asked: Asked) -> bytes:
        button = any(message["button"] for message in asked.json["messages"])
        return ok({"hand_over": "pressed a button"}) if button else good(asked)

    server.behaviour = asks_once
    report = await checked(server)
    assert report["a pressed button"].detail == "stayed silent, asked for a person"
    assert "person" not in report["a plain text"].detail
