"""The examination of an agent's server, with this process's settings."""

from __future__ import annotations

from collections.abc import Sequence

from bot.agents.http import conformance
from bot.agents.http.client import HttpAgentConfig
from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.observability.findings import Finding, Level
from bot.settings import Settings

_FIX = "see docs/agents.md, An agent over HTTP"


async def examine_agent(settings: Settings, url: str) -> Sequence[Finding]:
    """Ask the server at `url`, or at AGENT. Raises ConfigurationError."""
    place = url or settings.agent
    if not place.startswith(("http://", "https://")):
        raise ConfigurationError("name the address of an agent, or set AGENT to one")
    config = HttpAgentConfig(place, secret=settings.agent_secret, timeout=settings.agent_timeout)
    found = await conformance.check(config, SystemClock())
    return [_told(finding) for finding in found]


def _told(finding: conformance.Finding) -> Finding:
    level = Level(finding.level.value)
    took = "" if finding.seconds is None else f" ({finding.seconds:.2f} s)"
    fix = "" if level is Level.OK else _FIX
    return Finding(finding.name, level, f"{finding.detail}{took}", fix)
