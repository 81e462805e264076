"""The assistant of the tests, on models whose answers are scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from bot.agents.assistant.agent import LlmAgent, LlmConfig
from bot.agents.assistant.scripted import ScriptedModel, call, calls, say
from bot.agents.assistant.tools import Function, make_tool
from bot.clock import SystemClock
from bot.domain.ports import Clock
from bot.settings import Settings
from bot.texts import Words
from bot.wiring.agents import build_agent
from tests.agents.http.server import FakeAgentServer

models.ALLOW_MODEL_REQUESTS = False

WORDS = Words.load()
__all__ = ["WORDS", "ScriptedModel", "assistant", "assistant_on", "call", "calls", "results", "say"]


@asynccontextmanager
async def assistant_on(server: FakeAgentServer, model: str) -> AsyncIterator[LlmAgent]:
    """The assistant of the settings, on a server that speaks OpenAI's protocol."""
    base = server.url.removesuffix("/turn") + "/v1"
    settings = Settings(_env_file=None, agent="llm", llm_model=model, llm_base_url=base)
    with pytest.MonkeyPatch.context() as patch:
        # A folder without certificates: reading the system's takes longer than a whole answer.
        patch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
        built = build_agent(settings, WORDS, SystemClock())
    assert isinstance(built.agent, LlmAgent)
    with models.override_allow_model_requests(True):
        yield built.agent
    await built.close()


def results(messages: Sequence[ModelMessage]) -> list[Any]:
    """The results of the tools in a conversation."""
    return [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def assistant(
    model: ScriptedModel | FunctionModel,
    *tools: Function,
    clock: Clock | None = None,
    history_tokens: int = 8000,
) -> LlmAgent:
    """The built-in assistant on this model with these tools."""
    inner = model.model if isinstance(model, ScriptedModel) else model
    config = LlmConfig(history_tokens=history_tokens)
    made = [make_tool(function) for function in tools]
    return LlmAgent(inner, config, made, WORDS, clock or SystemClock())
