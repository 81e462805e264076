"""The agent that AGENT names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.agents.echo import EchoAgent
from bot.agents.function import load
from bot.domain.ports import Clock
from bot.domain.turn import Agent
from bot.settings import Settings
from bot.texts import Words
from bot.threads import Threads

if TYPE_CHECKING:
    from bot.agents.http import HttpAgent


@dataclass(frozen=True, slots=True)
class Hired:
    """An agent and what must be closed with it."""

    agent: Agent
    http: HttpAgent | None = None

    async def close(self) -> None:
        if self.http is not None:
            await self.http.close()


def hire(settings: Settings, words: Words, clock: Clock) -> Hired:
    """The agent of these settings. Raises ConfigurationError."""
    if settings.agent == "echo":
        return Hired(EchoAgent(words))
    if settings.agent.startswith(("http://", "https://")):
        from bot.agents.http import HttpAgent, HttpAgentConfig  # noqa: PLC0415 - only where used

        config = HttpAgentConfig(
            settings.agent, secret=settings.agent_secret, timeout=settings.agent_timeout
        )
        http = HttpAgent(config, clock)
        return Hired(http, http)
    return Hired(load(settings.agent, Threads(settings.concurrency)))
