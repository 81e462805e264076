"""Models by their names, and a real provider's client against a server that misbehaves."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai import models

from bot.agents.assistant.agent import LlmAgent
from bot.agents.assistant.gateway import GatewayModel
from bot.agents.assistant.model import make_model
from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError, GiveUp, Retry
from bot.settings import Settings
from bot.texts import Text
from bot.wiring.agents import build_agent
from tests.agents.assistant.models import WORDS, assistant_on
from tests.agents.http.server import FakeAgentServer, ok, response
from tests.agents.turns import turn

ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 1_800_000_000,
    "model": "local",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi!"}}
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
}


def settings(**changes: object) -> Settings:
    return Settings(_env_file=None, agent="llm", **changes)  # type: ignore[arg-type]


@pytest.fixture
async def server() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer() as server:
        yield server


@pytest.fixture
async def local(server: FakeAgentServer) -> AsyncIterator[LlmAgent]:
    """The assistant of the settings, on a server that speaks OpenAI's protocol."""
    async with assistant_on(server, "qwen3:8b") as agent:
        yield agent


async def test_a_compatible_server_answers(local: LlmAgent, server: FakeAgentServer) -> None:
    server.behaviour = ok(ANSWER)
    assert await local(turn("hello")) == "hi!"
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.json["model"] == "qwen3:8b"
    names = {tool["function"]["name"] for tool in asked.json["tools"]}
    assert names == {"remind_me", "list_reminders", "cancel_reminder", "web_fetch"}


async def test_b76_the_client_does_not_try_again_by_itself(
    local: LlmAgent, server: FakeAgentServer
) -> None:
    server.behaviour = response(429, b'{"error": {}}', "retry-after: 7\r\n")
    with pytest.raises(Retry) as again:
        await local(turn("hello"))
    assert again.value.after is not None
    assert 7 <= again.value.after < 10
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_a_broken_server_is_tried_again_later(
    local: LlmAgent, server: FakeAgentServer, status: int
) -> None:
    server.behaviour = response(status, b"<html>secret</html>")
    with pytest.raises(Retry) as again:
        await local(turn("hello"))
    assert "secret" not in str(again.value)
    assert len(server.asked) == 1


async def test_a_server_that_is_not_there_is_tried_again_later() -> None:
    with models.override_allow_model_requests(True):
        built = build_agent(
            settings(llm_model="m", llm_base_url="http://127.0.0.1:9"), WORDS, SystemClock()
        )
        with pytest.raises(Retry):
            await built.agent(turn("hello"))
        await built.close()


async def test_a_refused_key_is_given_up(local: LlmAgent, server: FakeAgentServer) -> None:
    server.behaviour = response(401, b'{"error": {"message": "secret"}}')
    with pytest.raises(GiveUp) as told:
        await local(turn("hello"))
    assert told.value.text == WORDS.say(Text.UNAVAILABLE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "LLM_MODEL is empty"),
        ({"llm_model": "gpt-5"}, "LLM_MODEL=gpt-5: did you mean openai:gpt-5"),
        ({"llm_model": "nobody:model"}, "LLM_MODEL=nobody:model"),
        ({"llm_model": "openai:gpt-5"}, "OPENAI_API_KEY"),
        ({"llm_model": "anthropic:claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
        ({"llm_model": "groq:llama"}, "LLM_MODEL=groq:llama"),
        ({"llm_model": "test", "tools": "no_such_tools"}, "TOOLS=no_such_tools"),
        ({"llm_model": "test", "llm_system_prompt_file": "no/such"}, "LLM_SYSTEM_PROMPT_FILE"),
    ],
)
def test_what_is_wrong_with_the_settings_is_said(
    changes: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=said):
        build_agent(settings(**changes), WORDS, SystemClock())


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        n for n in sys.modules if n.startswith(("bot.agents.assistant", "bot.wiring.llm"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[llm\]'"):
        build_agent(settings(llm_model="test"), WORDS, SystemClock())


def test_a_key_may_stand_in_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "to be restored")
    monkeypatch.delenv("OPENAI_API_KEY")
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-the-file\n")
    built = build_agent(settings(llm_model="openai:gpt-5"), WORDS, SystemClock())
    assert isinstance(built.agent, LlmAgent)


async def test_the_prompt_of_the_file_is_the_first_instruction(
    tmp_path: Path, server: FakeAgentServer
) -> None:
    (tmp_path / "prompt.txt").write_text("You are a pirate.", encoding="utf-8")
    base = server.url.removesuffix("/turn")
    built = build_agent(
        settings(llm_model="m", llm_base_url=base, llm_system_prompt_file=tmp_path / "prompt.txt"),
        WORDS,
        SystemClock(),
    )
    server.behaviour = ok(ANSWER)
    with models.override_allow_model_requests(True):
        await built.agent(turn("hello"))
    await built.close()
    first = server.asked[0].json["messages"][0]
    assert first["role"] == "system"
    assert first["content"].startswith("You are a pirate.")


def test_a_name_with_a_provider_is_that_provider_s_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert make_model("anthropic:claude-sonnet-4-5", "").system == "anthropic"


def test_a_provider_that_speaks_openai_s_protocol_is_read_as_a_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
    model = make_model("deepseek:deepseek-chat", "")
    assert isinstance(model, GatewayModel)
    assert (model.system, model.model_name) == ("deepseek", "deepseek-chat")
