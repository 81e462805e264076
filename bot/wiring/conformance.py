"""The examination of an agent's server, with this process's settings."""

from __future__ import annotations

from collections.abc import Sequence

from bot.agents.http.client import HttpAgentConfig
from bot.agents.http.conformance import Trial, check
from bot.checks import Finding, Level
from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.settings import Settings

_FIX = "see docs/agents.md, An agent over HTTP"


async def examine_agent(settings: Settings, url: str) -> Sequence[Finding]:
    """Ask the server at `url`, or at AGENT. Raises ConfigurationError."""
    place = url or settings.agent
    if not place.startswith(("http://", "https://")):
        raise ConfigurationError("name the address of an agent, or set AGENT to one")
    config = HttpAgentConfig(place, secret=settings.agent_secret, timeout=settings.agent_timeout)
    return [_finding(trial) for trial in await check(config, SystemClock())]


def _finding(trial: Trial) -> Finding:
    took = "" if trial.seconds is None else f" ({trial.seconds:.2f} s)"
    fix = "" if trial.level is Level.OK else _FIX
    return Finding(trial.name, trial.level, f"{trial.detail}{took}", fix)
