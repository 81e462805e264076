"""Everything that a provider or a gateway can answer has one outcome: against a real client."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.agents.assistant.agent import MAX_CALLS, LlmAgent
from bot.agents.assistant.answers import ModelAnswer as Kind
from bot.agents.assistant.model import ModelFailed
from bot.agents.assistant.reasoning import without_reasoning
from bot.clock import SystemClock
from bot.domain.errors import GiveUp, Retry
from bot.domain.message import Attachment
from bot.domain.turn import HistoryMessage
from bot.texts import Text
from tests.agents.assistant.models import WORDS, assistant_on
from tests.agents.http.server import Asked, FakeAgentServer, ok, response
from tests.agents.turns import FakeFile, FakeTurn, message, turn

SECRET = "words that nobody may see"
PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
Json = dict[str, Any]


def says(text: object, end: str | None = "stop", **more: Any) -> Json:
    """A completion with this text and reason to end; `more` stands in its message."""
    said = {"role": "assistant", "content": text, **more}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": "local",
        "choices": [{"index": 0, "finish_reason": end, "message": said}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }


def calls(arguments: str, end: str = "tool_calls", tool: str = "list_reminders") -> Json:
    """A completion that calls a tool."""
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return says(None, end, tool_calls=[call])


def error(code: object, **more: object) -> Json:
    """An error that a gateway puts into a success."""
    return {"error": {"message": SECRET, "code": code, **more}, "user_id": "u"}


@pytest.fixture
async def server() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer() as server:
        yield server


@pytest.fixture
async def local(server: FakeAgentServer) -> AsyncIterator[LlmAgent]:
    async with assistant_on(server, "m") as agent:
        yield agent


def in_turn(server: FakeAgentServer, answers: Sequence[Json | bytes]) -> None:
    """The server gives these one after the other, the last one for ever."""
    left = list(answers)

    def behaviour(asked: Asked) -> bytes:
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer if isinstance(answer, bytes) else ok(answer)

    server.behaviour = behaviour


@dataclass(frozen=True)
class Case:
    """One case: the server's answer, what the turn gives or raises, the number of its requests."""

    kind: Kind
    answers: Sequence[Json | bytes]
    gives: str | type[Exception]
    asks: int = 1


EMPTY = WORDS.say(Text.EMPTY_ANSWER)
CUT = WORDS.say(Text.CUT_OFF)
STEP = "Step 1: turn off the gas. Step 2: never open the"
CASES = {
    "whole": Case(Kind.WHOLE, [says("hi")], "hi"),
    "end unknown": Case(Kind.WHOLE, [says("hi", "eos_token")], "hi"),
    "end missing": Case(Kind.WHOLE, [says("hi", None)], "hi"),
    "reasoning": Case(Kind.WHOLE, [says("<think>He is mad.</think>\n\nhi")], "hi"),
    "reasoning, its end": Case(Kind.WHOLE, [says("He is mad.\n</think>\n\nhi")], "hi"),
    "reasoning, large": Case(Kind.WHOLE, [says("<THINKING>mad\n</THINKING>hi")], "hi"),
    "reasoning, a field": Case(Kind.WHOLE, [says("hi", reasoning_content="He is mad.")], "hi"),
    "cut": Case(Kind.CUT, [says(STEP, "length")], f"{STEP}\n\n{CUT}"),
    "cut, as others say it": Case(Kind.CUT, [says(STEP, "MAX_TOKENS")], f"{STEP}\n\n{CUT}"),
    "cut call": Case(Kind.CUT_CALL, [calls('{"a": "b', "length")], EMPTY, 2),
    "cut call that looks whole": Case(Kind.CUT_CALL, [calls("{}", "length")], EMPTY, 2),
    "cut call, then whole": Case(Kind.CUT_CALL, [calls("{", "length"), says("hi")], "hi", 2),
    "cut before anything": Case(Kind.CUT_EMPTY, [says("", "length")], EMPTY),
    "cut in its reasoning": Case(Kind.CUT_EMPTY, [says("<think>He is", "length")], EMPTY),
    "empty": Case(Kind.EMPTY, [says("")], EMPTY, 2),
    "null": Case(Kind.EMPTY, [says(None)], EMPTY, 2),
    "reasoning alone": Case(Kind.EMPTY, [says("<think>He is mad.")], EMPTY, 2),
    "empty, then whole": Case(Kind.EMPTY, [says(" \u200b"), says("hi")], "hi", 2),
    "refusal": Case(Kind.FILTERED, [says(None, refusal=SECRET)], EMPTY),
    "filter": Case(Kind.FILTERED, [says("", "content_filter")], EMPTY),
    "filter in the middle": Case(Kind.FILTERED, [says("First, mix", "content_filter")], EMPTY),
    "filter of another name": Case(Kind.FILTERED, [says("Mix", "guardrail_intervened")], EMPTY),
    "filter at a call": Case(Kind.FILTERED, [calls("{}", "content_filter")], EMPTY),
    "arguments never fit": Case(Kind.UNFIT, [calls('{"a": ')], GiveUp, 3),
    "no such tool": Case(Kind.UNFIT, [calls("{}", tool="rm"), says("hi")], "hi", 2),
    "calls for ever": Case(Kind.ENDLESS, [calls("{}")], GiveUp, MAX_CALLS),
    "429": Case(Kind.BUSY, [response(429, SECRET.encode())], Retry),
    "502": Case(Kind.BUSY, [response(502, b"<html>502</html>")], Retry),
    "529": Case(Kind.BUSY, [response(529, b"{}")], Retry),
    "429 inside": Case(Kind.BUSY, [error(429)], Retry),
    "502 inside": Case(Kind.BUSY, [error("502")], Retry),
    "a limit inside, in words": Case(Kind.BUSY, [error("rate_limit_exceeded")], Retry),
    "an error beside a text": Case(
        Kind.BUSY, [says("half a", "error") | {"error": {"code": 503}}], Retry
    ),
    "an error of one choice": Case(
        Kind.BUSY,
        [{"choices": [{**says("x", "error")["choices"][0], "error": {"code": 502}}]}],
        Retry,
    ),
    "an error object": Case(
        Kind.BUSY, [{"object": "error", "message": SECRET, "type": "overloaded"}], Retry
    ),
    "429 inside, as a fraction": Case(Kind.BUSY, [error(429.0)], Retry),
    "429 inside, in a list": Case(Kind.BUSY, [{"error": [{"code": 429}]}], Retry),
    "429 inside, further in": Case(Kind.BUSY, [{"error": error(429)}], Retry),
    "429 inside, of several": Case(
        Kind.BUSY, [{"success": False, "errors": [{"code": 429}]}], Retry
    ),
    "a limit beside true": Case(
        Kind.BUSY, [{"error": True, "message": "Too many requests"}], Retry
    ),
    "a limit alone": Case(Kind.BUSY, [{"message": "Rate limit exceeded"}], Retry),
    "a limit, in one word": Case(Kind.BUSY, [error("too_many_requests")], Retry),
    "no error beside a text": Case(
        Kind.WHOLE, [says("hi") | {"error": {"code": 0, "message": ""}}], "hi"
    ),
    "a text and nothing else": Case(
        Kind.WHOLE, [{"choices": [{"message": {"content": "hi"}}]}], "hi"
    ),
    "a text, as in old times": Case(Kind.WHOLE, [{"choices": [{"text": "hi"}]}], "hi"),
    "odd facts beside a text": Case(
        Kind.WHOLE, [says("hi", "") | {"created": 1.5, "id": None, "usage": {"x": 1}}], "hi"
    ),
    "a call as small servers make it": Case(
        Kind.WHOLE,
        [
            says(
                None,
                "tool_calls",
                tool_calls=[{"function": {"name": "list_reminders", "arguments": {}}}],
            ),
            says("hi"),
        ],
        "hi",
        2,
    ),
    "what no database takes": Case(Kind.WHOLE, [says("a\x00b\ud800")], "a\ufffdb\ufffd"),
    "cut, by a library's name": Case(
        Kind.CUT, [says(STEP, "FinishReason.MAX_TOKENS")], f"{STEP}\n\n{CUT}"
    ),
    "cut by the window": Case(
        Kind.CUT, [says(STEP, "model_context_window_exceeded")], f"{STEP}\n\n{CUT}"
    ),
    "filter by a list": Case(Kind.FILTERED, [says("Mix", "BLOCKLIST")], EMPTY),
    "a request too large": Case(Kind.WINDOW, [response(413, b"{}"), says("hi")], "hi", 2),
    "a text in parts": Case(
        Kind.WHOLE, [says([{"type": "text", "text": "h"}, {"type": "text", "text": "i"}])], "hi"
    ),
    "a text in one part": Case(Kind.WHOLE, [says({"type": "text", "text": "hi"})], "hi"),
    "a refusal in parts": Case(
        Kind.FILTERED, [says([{"type": "refusal", "refusal": SECRET}])], EMPTY
    ),
    "a message of a stream": Case(Kind.WHOLE, [{"choices": [{"delta": {"content": "hi"}}]}], "hi"),
    "a message that is a text": Case(Kind.WHOLE, [{"choices": [{"message": "hi"}]}], "hi"),
    "calls that are none": Case(Kind.WHOLE, [says("hi", tool_calls="none")], "hi"),
    "no call among calls": Case(Kind.WHOLE, [says("hi", tool_calls=[None])], "hi"),
    "a limit, as MiniMax says it": Case(
        Kind.BUSY,
        [{"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}],
        Retry,
    ),
    "no error, as MiniMax says it": Case(
        Kind.WHOLE,
        [says("hi") | {"base_resp": {"status_code": 0, "status_msg": "success"}}],
        "hi",
    ),
    "a limit, as AWS says it": Case(Kind.BUSY, [{"Error": {"Code": "Throttling"}}], Retry),
    "a limit, as Apigee says it": Case(
        Kind.BUSY, [{"fault": {"faultstring": "Rate limit violation"}}], Retry
    ),
    "an answer without an end": Case(
        Kind.BROKEN,
        [response(200, b"[" * 5000, "content-type: application/json\r\n")],
        ModelFailed,
    ),
    "401": Case(Kind.REFUSES_US, [response(401, b"{}")], GiveUp),
    "402 inside": Case(Kind.REFUSES_US, [error(402)], GiveUp),
    "no quota inside": Case(Kind.REFUSES_US, [error("insufficient_quota")], GiveUp),
    "a window inside": Case(Kind.WINDOW, [error("context_length_exceeded")], GiveUp, 2),
    "a page": Case(
        Kind.BROKEN,
        [response(200, b"<html>wait</html>", "content-type: text/html\r\n")],
        ModelFailed,
    ),
    "no JSON": Case(
        Kind.BROKEN,
        [response(200, b"{oops", "content-type: application/json\r\n")],
        ModelFailed,
    ),
    "no body": Case(Kind.BROKEN, [response(200)], ModelFailed),
    "a stream": Case(
        Kind.BROKEN,
        [response(200, b"data: {}\n\ndata: [DONE]\n", "content-type: text/event-stream\r\n")],
        ModelFailed,
    ),
    "choices null": Case(Kind.BROKEN, [{"choices": None}], ModelFailed),
    "no choices": Case(Kind.BROKEN, [{"choices": []}], ModelFailed),
    "no message": Case(Kind.BROKEN, [{"choices": [{"index": 0}]}], ModelFailed),
    "other JSON": Case(Kind.BROKEN, [{"hello": SECRET}], ModelFailed),
    "a nameless error inside": Case(Kind.REJECTED, [{"error": "x"}], ModelFailed),
    "an end for want of machines": Case(
        Kind.BROKEN, [says("half a", "insufficient_system_resource")], ModelFailed
    ),
    "an end by an error": Case(Kind.BROKEN, [says("half a", "error")], ModelFailed),
    "a list": Case(
        Kind.BROKEN, [response(200, b"[1]", "content-type: application/json\r\n")], ModelFailed
    ),
    "a window, as others say it": Case(
        Kind.WINDOW,
        [response(400, b'{"error": {"type": "exceed_context_size_error"}}'), says("hi")],
        "hi",
        2,
    ),
    "a moderated request": Case(
        Kind.FILTERED, [response(400, b'{"error": {"code": "content_policy_violation"}}')], EMPTY
    ),
    "429 that is a quota": Case(Kind.REFUSES_US, [error(429, type="insufficient_quota")], GiveUp),
    "an unknown error inside": Case(Kind.REJECTED, [error(None)], ModelFailed),
    "400": Case(Kind.REJECTED, [response(400, json.dumps(error("x")).encode())], ModelFailed),
    "422": Case(Kind.REJECTED, [response(422, b"{}")], ModelFailed),
}
"""Files have a test of their own below."""


@pytest.mark.parametrize("name", CASES)
async def test_what_a_provider_answers_has_one_outcome(
    local: LlmAgent, server: FakeAgentServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    case = CASES[name]
    in_turn(server, case.answers)
    history = (HistoryMessage("user", "hey", 1.0), HistoryMessage("assistant", "hey", 2.0))
    asked = turn("hello", history=history if case.kind is Kind.WINDOW else ())
    told = ""
    with caplog.at_level(logging.DEBUG, logger="answerback"):
        if isinstance(case.gives, str):
            assert await local(asked) == case.gives
        else:
            with pytest.raises(case.gives) as raised:
                await local(asked)
            told = f"{raised.value} {getattr(raised.value, 'reason', '')}"
    assert len(server.asked) == case.asks
    assert SECRET not in told + caplog.text
    remarks = [kind.remark for kind in Kind if kind.remark]
    found = [r for r in remarks if any(key.startswith(r) for key in asked.results)]
    assert found == ([case.kind.remark] if case.kind.remark and case.gives != "hi" else [])


async def test_a_refusal_of_a_request_with_files_is_asked_once_more_with_their_description(
    local: LlmAgent, server: FakeAgentServer
) -> None:
    in_turn(server, [response(400, b"{}"), says("a file!")])
    photo = FakeFile(Attachment("photo", "ref", "image/jpeg", "p.jpg"), b"x")
    assert await local(FakeTurn((message("look", attachments=(photo,)),))) == "a file!"
    assert "You can't see it" in json.dumps(server.asked[1].json)


def test_every_outcome_has_a_case_and_its_row_on_the_page() -> None:
    assert {case.kind for case in CASES.values()} == set(Kind) - {Kind.REFUSES_FILES}
    table = PAGE.read_text(encoding="utf-8").partition("| what happens | what follows |\n")[2]
    rows = table.partition("\n\n")[0].splitlines()[1:]
    assert rows == [f"| {kind.happens} | {kind.follows} |" for kind in Kind]


async def test_what_was_decided_is_the_same_when_the_turn_is_played_again(
    local: LlmAgent, server: FakeAgentServer
) -> None:
    in_turn(server, [says(STEP, "length"), says("never asked")])
    asked = turn("how do I do it?")
    said = await local(asked)
    assert await local(asked.again()) == said
    assert len(server.asked) == 1


async def test_a_wait_inside_an_error_is_kept(local: LlmAgent, server: FakeAgentServer) -> None:
    server.behaviour = ok(error(429, retry_after=40))
    with pytest.raises(Retry) as again:
        await local(turn("hi", deadline=SystemClock().wall() + 900))
    assert again.value.after is not None
    assert 40 <= again.value.after < 60


@pytest.mark.parametrize(
    "text",
    [
        "Write `<think>` and `</think>` around it.",
        "a <think> b",
        "```\n<think>\nx\n</think>\n```",
        "1 < 2 and [think] about it",
        "",
        "\n\nhi",
    ],
)
def test_what_only_mentions_reasoning_stays(text: str) -> None:
    assert without_reasoning(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>analysis<|message|>mad<|end|><|start|>x<|channel|>final<|message|>hi<|return|>",
        "[THINK]He is mad.[/THINK]hi",
        "◁think▷mad◁/think▷hi",
        "<think>a</think>\n<think>b</think>\nhi",
        "hi<|im_end|>",
    ],
)
def test_reasoning_of_other_forms_is_taken_out(text: str) -> None:
    assert without_reasoning(text) == "hi"
