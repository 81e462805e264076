"""Commands start fast: each loads what it needs. The figures are in docs/benchmarks.md."""

from __future__ import annotations

import subprocess
import sys

HELP = """
import sys
from bot.cli.__main__ import main
sys.argv[1:] = sys.argv[1].split()
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
print(*sorted(name for name in sys.modules if "." not in name or name.startswith("bot.")))
"""
A_SERVICE_HAS = (
    "alembic apscheduler bot.agents bot.clients bot.delivery bot.http bot.main bot.runs "
    "bot.wiring.process httpx openai prometheus_client psycopg redis starlette "
    "telegram twilio uvicorn uvloop"
)
"""Packages and rooms of a process that serves."""
A_COMMAND_HAS = (
    "asyncio pydantic pysqlite3 sqlalchemy structlog storage bot.operations.session bot.settings"
)
"""Those of a command that reads."""


def loaded(command: str, **environment: str) -> set[str]:
    """The packages, and our modules, that a command has loaded at its end."""
    said = subprocess.run(
        [sys.executable, "-c", HELP, command],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return set(said.stdout.splitlines()[-1].split())


def test_help_loads_nothing_but_the_command_line() -> None:
    found = loaded("runs list --help")
    assert found & {*A_SERVICE_HAS.split(), *A_COMMAND_HAS.split()} == set()


def test_a_command_that_reads_loads_nothing_of_a_service(sqlite_url: str) -> None:
    found = loaded("runs list", DATABASE_URL=sqlite_url)
    assert found & set(A_SERVICE_HAS.split()) == set()
    assert set(A_COMMAND_HAS.split()) - found == set(), "the names are those of today"
