"""The built-in assistant of the settings. Imported only where AGENT=llm."""

from __future__ import annotations

from pathlib import Path

from bot.agents.assistant.agent import DEFAULT_PROMPT, LlmAgent, LlmConfig
from bot.agents.assistant.builtin_tools import builtin_functions
from bot.agents.assistant.model import make_model
from bot.agents.assistant.scripted import ScriptedModel
from bot.agents.assistant.tools import load_tools, make_tool, unique
from bot.agents.assistant.web_page import WebReader
from bot.domain.errors import ConfigurationError
from bot.domain.ports import Clock
from bot.settings import Settings, lend_to_packages
from bot.texts import Words


def llm_agent(
    settings: Settings, words: Words, clock: Clock, scripted: ScriptedModel | None = None
) -> LlmAgent:
    """The assistant; on a scripted model in the place of the settings' one. Raises
    ConfigurationError."""
    functions = builtin_functions(WebReader(), people=settings.llm_hand_over)
    built_in = [make_tool(function) for function in functions]
    config = LlmConfig(
        prompt=_prompt(settings.llm_system_prompt_file),
        history_tokens=settings.llm_history_tokens,
        timeout=settings.llm_timeout,
    )
    if scripted is None:
        lend_to_packages()
        model = make_model(settings.llm_model, settings.llm_base_url)
    else:
        model = scripted.model
    tools = unique([*built_in, *load_tools(settings.tools)])
    return LlmAgent(model, config, tools, words, clock)


def _prompt(path: Path | None) -> str:
    if path is None:
        return DEFAULT_PROMPT
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"LLM_SYSTEM_PROMPT_FILE={path} can't be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"LLM_SYSTEM_PROMPT_FILE={path} is not UTF-8") from error
