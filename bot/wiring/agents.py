"""The agent that AGENT names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.agents.echo import EchoAgent
from bot.agents.function import load
from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.domain.errors import ConfigurationError
from bot.domain.ports import Clock
from bot.domain.turn import Agent
from bot.settings import Settings
from bot.texts import Words
from bot.threads import Threads


async def _nothing() -> None:
    """What an agent without connections has to close."""


@dataclass(frozen=True, slots=True)
class Hired:
    """An agent, and how to close what it holds open."""

    agent: Agent
    close: Callable[[], Awaitable[None]] = _nothing


def hire(settings: Settings, words: Words, clock: Clock) -> Hired:
    """The agent of these settings. Raises ConfigurationError."""
    if settings.agent == "echo":
        return Hired(EchoAgent(words))
    if settings.agent == "llm":
        return _llm(settings, words, clock)
    if settings.agent.startswith(("http://", "https://")):
        config = HttpAgentConfig(
            settings.agent, secret=settings.agent_secret, timeout=settings.agent_timeout
        )
        http = HttpAgent(config, clock)
        return Hired(http, http.close)
    return Hired(load(settings.agent, Threads(settings.concurrency)))


def _llm(settings: Settings, words: Words, clock: Clock) -> Hired:
    """The built-in assistant; its packages are loaded only here."""
    try:
        from bot.wiring.llm import llm_agent  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"AGENT=llm needs more packages ({error.name} is missing): "
            "pip install 'answerback[llm]'"
        ) from error
    agent = llm_agent(settings, words, clock)
    return Hired(agent, agent.close)
