"""The line that names what runs tells no secret."""

from __future__ import annotations

import pytest

from bot.wiring.about import named

SQLITE = "sqlite:///data/answerback.db"


@pytest.mark.parametrize(
    ("agent", "channels", "url", "line"),
    [
        ("demo", ["web", "console"], SQLITE, "agent demo; channels console, web; SQLite data/answ"),
        (
            "https://user:secret@agent.example:8443/secret?key=secret",
            ["telegram"],
            "postgresql://bot:secret@db.example:5433/bot?password=secret",
            "agent https://agent.example:8443; channels telegram; PostgreSQL db.example:5433/bot",
        ),
        ("llm", ["web"], "postgresql:///bot", "agent llm; channels web; PostgreSQL by its socket/"),
    ],
)
def test_what_runs_is_named_without_a_secret(
    agent: str, channels: list[str], url: str, line: str
) -> None:
    said = named(agent, channels, url)
    assert line in said
    assert "secret" not in said
