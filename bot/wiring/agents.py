"""The agent that AGENT names, and the examination of its server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot.agents.echo import EchoAgent
from bot.agents.function import load
from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.agents.http.conformance import Trial, check
from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding, Level
from bot.domain.ports import Clock
from bot.domain.turn import Agent
from bot.settings import Settings
from bot.texts import Words
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
    function = load(settings.agent, Threads(settings.concurrency))
    return BuiltAgent(function, reads_history=function.is_async)


def _http_config(settings: Settings, url: str) -> HttpAgentConfig:
    return HttpAgentConfig(url, secret=settings.agent_secret, timeout=settings.agent_timeout)


async def examine_agent(settings: Settings, url: str) -> Sequence[Finding]:
    """Ask the server at `url`, or at AGENT. Raises ConfigurationError."""
    place = url or settings.agent
    if not place.startswith(("http://", "https://")):
        raise ConfigurationError("name the address of an agent, or set AGENT to one")
    return [_finding(trial) for trial in await check(_http_config(settings, place), SystemClock())]


def _finding(trial: Trial) -> Finding:
    took = "" if trial.seconds is None else f" ({trial.seconds:.2f} s)"
    fix = "" if trial.level is Level.OK else "see docs/agents.md, An agent over HTTP"
    return Finding(trial.name, trial.level, f"{trial.detail}{took}", fix)
