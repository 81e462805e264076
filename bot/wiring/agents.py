"""The agent that AGENT names, and the examination of its server."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding, Level
from bot.domain.ports import Clock
from bot.domain.turn import Agent
from bot.lazy_imports import lazy_imports
from bot.settings import Settings, lend_to_packages
from bot.texts import Words

with lazy_imports(__name__):
    from bot.agents.demo import DemoAgent
    from bot.agents.echo import EchoAgent
    from bot.agents.function import load
    from bot.agents.http.client import HttpAgent, HttpAgentConfig
    from bot.agents.http.conformance import Trial, check
    from bot.agents.rehearsal import rehearse
    from bot.threads import Threads


async def _nothing() -> None:
    """Nothing to close: an agent without connections."""


@dataclass(frozen=True, slots=True)
class BuiltAgent:
    """An agent, how to close what it holds open, and whether it wants the history to be read
    before it is called; else it asks by itself, or never."""

    agent: Agent
    close: Callable[[], Awaitable[None]] = _nothing
    reads_history: bool = True


def words_of(settings: Settings) -> Words:
    """The words that these settings have us use. Raises ConfigurationError."""
    return Words.load(settings.texts_file, settings.language, word_commands=settings.command_words)


def build_agent(settings: Settings, words: Words, clock: Clock) -> BuiltAgent:
    """The agent of these settings. Raises ConfigurationError."""
    if settings.agent == "echo":
        return BuiltAgent(EchoAgent(words), reads_history=False)
    if settings.agent == "demo":
        return BuiltAgent(DemoAgent(words, clock, settings.demo_seconds), reads_history=False)
    if settings.agent == "llm":
        try:
            from bot.wiring.llm import llm_agent  # noqa: PLC0415 - its packages are an extra
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"AGENT=llm needs more packages ({error.name} is missing): "
                "in Answerback's checkout: pip install '.[llm]'"
            ) from error
        assistant = llm_agent(settings, words, clock)
        return BuiltAgent(assistant, assistant.close)
    if settings.agent.startswith(("http://", "https://")):
        http = HttpAgent(_http_config(settings, settings.agent), clock)
        return BuiltAgent(http, http.close)
    if said := _no_form(settings.agent):
        raise ConfigurationError(f"AGENT={settings.agent}: {said}")
    lend_to_packages()
    function = load(settings.agent, Threads(settings.concurrency))
    return BuiltAgent(function, reads_history=function.is_async)


FORMS = {
    "demo": "takes its time, and is there to be killed",
    "echo": "repeats what it got",
    "llm": "the assistant on a model, which LLM_MODEL names",
    "package.module:function": "a function of yours, such as my_bot:reply",
    "https://...": "a service of yours",
}
"""The forms of AGENT."""
_ADDRESS = re.compile(r"[\w.-]+:[0-9]+(/.*)?")
_MODEL = re.compile(
    r"(anthropic|deepseek|google|groq|mistral|openai|openrouter|xai)[\w-]*:.*[^\w.].*"
)


def _no_form(agent: str) -> str:
    """The advice for a value that is none of the forms; empty for one that may be a function."""
    if _ADDRESS.fullmatch(agent):
        return f"an address begins with http:// or https://: http://{agent}"
    if _MODEL.fullmatch(agent):
        return f"a model is used by AGENT=llm and LLM_MODEL={agent}"
    if ":" in agent or "/" in agent or agent.endswith(".py"):
        return ""
    near = difflib.get_close_matches(agent, FORMS, 1)
    forms = "; ".join(f"{form} ({means})" for form, means in FORMS.items())
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{meant}It is one of: {forms}"


def _http_config(settings: Settings, url: str) -> HttpAgentConfig:
    return HttpAgentConfig(url, secret=settings.agent_secret, timeout=settings.agent_timeout)


async def examine_agent(settings: Settings, url: str) -> Sequence[Finding]:
    """Ask the server at `url`, or the agent of AGENT. Raises ConfigurationError."""
    place, clock = url or settings.agent, SystemClock()
    if place.startswith(("http://", "https://")):
        return [_finding(trial) for trial in await check(_http_config(settings, place), clock)]
    if url:
        raise ConfigurationError(f"{url} is no address: write http://... or https://...")
    built = build_agent(settings, words_of(settings), clock)
    try:
        trials = await rehearse(built.agent, clock, settings.run_deadline)
        return [_finding(trial) for trial in trials]
    finally:
        await built.close()


def _finding(trial: Trial) -> Finding:
    took = "" if trial.seconds is None else f" ({trial.seconds:.2f} s)"
    fix = "" if trial.level is Level.OK else "see docs/agents.md"
    return Finding(trial.name, trial.level, f"{trial.detail}{took}", fix)
