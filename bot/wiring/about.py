"""The line that names what runs: version, agent, channels, database."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from bot.version import our_version
from bot.wiring.process import Process
from storage.engine.database import parsed_url


def about(process: Process) -> str:
    """The parts of this process in one line, without a secret."""
    settings = process.settings
    channels = {endpoint.channel.name for endpoint in process.endpoints.values()}
    return named(settings.agent, channels, settings.database_url)


def named(agent: str, channels: Iterable[str], database_url: str) -> str:
    """The same of these parts."""
    told = (_agent(agent), f"channels {', '.join(sorted(channels))}", _database(database_url))
    return f"Answerback {our_version()}: {'; '.join(told)}"


def _agent(agent: str) -> str:
    """Of an address its host alone: the rest of one may be a secret."""
    if not agent.startswith(("http://", "https://")):
        return f"agent {agent}"
    place = urlsplit(agent)
    port = f":{place.port}" if place.port else ""
    return f"agent {place.scheme}://{place.hostname}{port}"


def _database(url: str) -> str:
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return f"SQLite {parsed.database}"
    port = f":{parsed.port}" if parsed.port else ""
    return f"PostgreSQL {parsed.host or 'by its socket'}{port}/{parsed.database}"
