"""AGENT and LLM_MODEL that name nothing say how to write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.wiring import read_settings
from bot.wiring.agents import FORMS, build_agent, words_of


def refused(**settings: Any) -> str:
    made = read_settings(_env_file=None, **settings)
    with pytest.raises(ConfigurationError) as refused:
        build_agent(made, words_of(made), SystemClock())
    return str(refused.value)


def test_a_word_that_is_no_agent_is_answered_by_all_forms() -> None:
    said = refused(agent="nonsense")
    assert said.startswith("AGENT=nonsense: It is one of: ")
    assert all(f"{form} ({means})" in said for form, means in FORMS.items())
    assert {"echo", "llm", "package.module:function", "https://..."} <= FORMS.keys()


@pytest.mark.parametrize(
    ("agent", "advice"),
    [
        ("ehco", "did you mean echo? It is one of:"),
        ("localhost:8000/turn", "begins with http:// or https://: http://localhost:8000/turn"),
        ("agent.example:443", "an address begins with http://"),
        ("openai:gpt-5", "a model is used by AGENT=llm and LLM_MODEL=openai:gpt-5"),
        ("anthropic:claude-sonnet-4-5", "a model is used by AGENT=llm and LLM_MODEL=anthropic:"),
        ("my_bot.py:reply", "name the module and not its file, for example my_bot:reply"),
        ("my_bot.py", "write package.module:function"),
    ],
)
def test_what_was_meant_is_guessed(agent: str, advice: str) -> None:
    assert advice in refused(agent=agent)


def test_a_word_may_be_written_in_capitals() -> None:
    assert read_settings(_env_file=None, agent="LLM").agent == "llm"
    assert read_settings(_env_file=None, agent="My_Bot:Reply").agent == "My_Bot:Reply"


@pytest.mark.parametrize(
    ("model", "variable", "provider"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY", "OpenAI"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY", "DeepSeek"),
    ],
)
def test_a_missing_key_names_its_variable_and_whose_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, variable: str, provider: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(variable, raising=False)
    assert refused(agent="llm", llm_model=model) == (
        f"LLM_MODEL={model}: {variable} is empty: set it in the environment or in .env. "
        f"It belongs to your account at {provider}."
    )


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        ("gpt-5", "did you mean openai:gpt-5?"),
        ("claude-sonnet-4-5", "did you mean anthropic:claude-sonnet-4-5?"),
        ("OpenAI:gpt-5", "did you mean openai:gpt-5?"),
        ("openai/gpt-5", "did you mean openai:gpt-5?"),
        ("google-gla:gemini-2.5-pro", "did you mean google:gemini-2.5-pro?"),
        ("nonsense:x", "there is no such model or provider"),
        ("", "LLM_MODEL is empty"),
    ],
)
def test_a_model_that_is_none_says_how_to_write_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, advice: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(agent="llm", llm_model=model)
    assert advice in said
    assert "write provider:model, such as openai:gpt-5" in said
