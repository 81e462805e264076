"""The built-in assistant: its questions, its answers, and the outcomes of errors."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelOverloadedError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelResponse

from bot.agents.assistant.agent import MAX_CALLS, LlmAgent, LlmConfig
from bot.agents.assistant.model import ModelFailed
from bot.clock import SystemClock
from bot.domain.errors import GiveUp, Retry
from bot.domain.message import ChatKind, InboundKind, Quoted
from bot.domain.turn import HistoryMessage
from bot.texts import Text
from tests.agents.assistant.models import WORDS, ScriptedModel, assistant, call, results, say
from tests.agents.turns import CHAT, FakeTurn, message, turn

SECRET = "upstream words that nobody may see"


def http(category: type, status: int, **headers: str) -> ModelHTTPError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ModelHTTPError.for_category(
        category, status_code=status, model_name="m", body=SECRET, headers=named
    )


async def test_a_message_and_its_history_become_one_answer() -> None:
    model = ScriptedModel("hello Ada")
    history = (HistoryMessage("user", "hi", 1.0), HistoryMessage("assistant", "hi there", 2.0))
    assert await assistant(model)(turn("how are you?", history=history)) == "hello Ada"
    assert model.heard() == ["hi", "hi there", "how are you?"]


async def test_the_oldest_messages_go_first_when_the_budget_ends() -> None:
    model = ScriptedModel("ok")
    history = tuple(
        HistoryMessage("user" if n % 2 == 0 else "assistant", f"{n} " + "x" * 300, n)
        for n in range(20)
    )
    await assistant(model, history_tokens=500)(turn("now", history=history))
    heard = model.heard()
    assert [line.split()[0] for line in heard] == ["16", "17", "18", "19", "now"]


async def test_b40_a_blank_message_is_answered_by_a_fixed_text_and_no_model() -> None:
    model = ScriptedModel("never")
    said = await assistant(model)(turn("\u200b\u200d\ufeff"))
    assert said == WORDS.say(Text.NOTHING_TO_READ)
    assert model.calls == 0


async def test_b40_a_blank_message_does_not_poison_what_comes_after() -> None:
    model = ScriptedModel("hello!")
    history = (
        HistoryMessage("user", "\u200b\u200d\ufeff", 1.0),
        HistoryMessage("assistant", "Your message was empty.", 2.0),
        HistoryMessage("user", " \n", 3.0),
    )
    assert await assistant(model)(turn("hello", history=history)) == "hello!"
    assert model.heard() == ["hello"]


async def test_b76_a_busy_provider_is_waited_for_as_long_as_it_asks_and_longer_each_time() -> None:
    clock = SystemClock()
    model = ScriptedModel(http(ModelRateLimitError, 429, retry_after="4"))
    waits = []
    for attempt in range(1, 6):
        asked = turn("hi", attempt=attempt, deadline=clock.wall() + 900)
        with pytest.raises(Retry) as again:
            await assistant(model, clock=clock)(asked)
        assert again.value.after is not None
        waits.append(again.value.after)
        assert SECRET not in str(again.value)
    assert all(wait >= 4 for wait in waits)
    assert waits[0] < 6.1
    assert waits[-1] > 10


@pytest.mark.parametrize(
    "error",
    [
        http(ModelOverloadedError, 529),
        http(ModelServerError, 503),
        http(ModelServerError, 500),
        ModelHTTPError(429, "m", SECRET),
        ModelHTTPError(502, "m", SECRET),
    ],
    ids=lambda e: f"{type(e).__name__}-{e.status_code}",
)
async def test_b76_what_passes_is_tried_again_without_counting_a_failure(error: Exception) -> None:
    model = ScriptedModel(error, "there")
    asked = turn("hi")
    with pytest.raises(Retry) as again:
        await assistant(model)(asked)
    assert SECRET not in str(again.value)
    assert await assistant(model)(asked.again()) == "there"
    assert model.calls == 2


async def test_an_exchange_that_never_ends_is_cut_and_tried_again() -> None:
    async def before() -> None:
        await asyncio.Event().wait()

    model = ScriptedModel("never", before=before)
    config = LlmConfig(timeout=0.05)
    with pytest.raises(Retry):
        await LlmAgent(model.model, config, [], WORDS, SystemClock())(turn("hi"))


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_tells_the_person_once_and_the_operator_why(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(http(ModelAuthenticationError, status))
    with pytest.raises(GiveUp) as told:
        await assistant(model)(turn("hi"))
    assert told.value.text == WORDS.say(Text.UNAVAILABLE)
    assert str(status) in told.value.reason
    assert "LLM_MODEL" in caplog.text
    assert SECRET not in caplog.text + told.value.reason + told.value.text
    assert model.calls == 1


async def test_another_refusal_is_a_failure_without_the_provider_s_words() -> None:
    model = ScriptedModel(http(ModelRequestRejectedError, 400))
    with pytest.raises(ModelFailed) as failed:
        await assistant(model)(turn("hi"))
    assert str(failed.value) == "ModelRequestRejectedError (400)"
    assert failed.value.__suppress_context__


async def test_a_history_that_is_too_long_is_halved_until_it_fits() -> None:
    too_long = http(ModelContextWindowExceededError, 400)
    model = ScriptedModel(too_long, too_long, "fits")
    history = tuple(
        HistoryMessage("user" if n % 2 == 0 else "assistant", f"{n} " + "x" * 300, n)
        for n in range(16)
    )
    assert await assistant(model)(turn("now", history=history)) == "fits"
    lengths = [len(model.heard(n)) for n in range(3)]
    assert lengths[0] == 17
    assert lengths[0] > lengths[1] > lengths[2]


async def test_a_message_that_is_too_long_by_itself_is_given_up_at_once() -> None:
    model = ScriptedModel(http(ModelContextWindowExceededError, 400))
    with pytest.raises(GiveUp) as told:
        await assistant(model)(turn("x" * 1000))
    assert told.value.text == WORDS.say(Text.APOLOGY)
    assert model.calls == 1


@pytest.mark.parametrize("nothing", ["", " \n", "\u200b"])
async def test_b78_an_empty_answer_is_asked_for_once_more(nothing: str) -> None:
    model = ScriptedModel(say(nothing), "something")
    assert await assistant(model)(turn("hi")) == "something"
    assert model.calls == 2


@pytest.mark.parametrize("nothing", [say(""), ModelResponse(parts=[])])
async def test_b78_after_a_tool_two_empty_answers_become_one_fixed_text(
    nothing: ModelResponse,
) -> None:
    async def look(what: str) -> str:
        """Look something up."""
        return f"seen {what}"

    model = ScriptedModel(call("look", what="it"), nothing)
    asked = turn("hi")
    said = await assistant(model, look)(asked)
    assert said == WORDS.say(Text.EMPTY_ANSWER)
    assert model.calls == 3
    assert await assistant(model, look)(asked.again()) == said
    assert model.calls == 3


async def test_a_model_that_calls_tools_for_ever_is_stopped_and_not_asked_again() -> None:
    async def look() -> str:
        """Look."""
        return "nothing"

    model = ScriptedModel(call("look"))
    asked = turn("hi")
    with pytest.raises(GiveUp) as told:
        await assistant(model, look)(asked)
    assert told.value.text == WORDS.say(Text.APOLOGY)
    assert model.calls == MAX_CALLS


async def test_arguments_that_do_not_fit_are_told_to_the_model() -> None:
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    model = ScriptedModel(call("add", a="x", b=1), call("add", "call-2", a=2, b=1), "3")
    assert await assistant(model, add)(turn("2+1?")) == "3"
    refused, done = results(model.asked[-1])
    assert "int_parsing" in str(refused)
    assert done == 3


async def test_a_reminder_that_is_due_is_told_as_one() -> None:
    model = ScriptedModel("Time for your pills!")
    due = FakeTurn((message("take the pills", InboundKind.REMINDER),))
    assert await assistant(model)(due) == "Time for your pills!"
    (heard,) = model.heard()
    assert "reminder" in heard
    assert heard.endswith("take the pills")


async def test_in_a_group_the_model_sees_who_says_what() -> None:
    model = ScriptedModel("ok")
    history = (
        HistoryMessage("user", "tea?", 1.0, "Ada"),
        HistoryMessage("user", "coffee!", 2.0, "Bob"),
        HistoryMessage("assistant", "both", 3.0),
    )
    group = replace(CHAT, kind=ChatKind.GROUP)
    await assistant(model)(turn("thanks", history=history, chat=group))
    assert model.heard() == ["Ada: tea?\n\nBob: coffee!", "both", "Ada: thanks"]


async def test_what_is_quoted_is_shown() -> None:
    model = ScriptedModel("ok")
    asked = message("why?", quoted=Quoted("7", "No tea today.", from_us=True))
    await assistant(model)(FakeTurn((asked,)))
    assert model.heard() == ["[In reply to your message: No tea today.]\nwhy?"]


async def test_a_response_that_can_not_be_read_is_a_failure_and_asked_for_again() -> None:
    model = ScriptedModel(UnexpectedModelBehavior(SECRET), "whole")
    asked = turn("hi")
    with pytest.raises(ModelFailed) as failed:
        await assistant(model)(asked)
    assert SECRET not in str(failed.value)
    assert await assistant(model)(asked.again()) == "whole"


async def test_a_filtered_answer_becomes_a_fixed_text() -> None:
    model = ScriptedModel(ContentFilterError(SECRET))
    assert await assistant(model)(turn("hi")) == WORDS.say(Text.EMPTY_ANSWER)
