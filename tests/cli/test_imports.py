"""Commands start fast: each loads what it needs. The figures are in docs/benchmarks.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.screens import seed
from tests.cli.seeded import LONG_REQUEST

CALLS = """
import gc
import sys
from bot.cli.__main__ import main
for call in sys.argv[1].split(";"):
    sys.argv[1:] = call.split()
    try:
        main()
    except SystemExit as left:
        assert left.code in (None, 0, 1), (call, left.code)
assert gc.get_freeze_count(), "Python would look through all of it for garbage before it ends"
print(*sys.modules)
"""
A_SERVICE_HAS = (
    "alembic apscheduler bot.agents bot.clients bot.delivery bot.http bot.main bot.runs "
    "bot.wiring.process httpx openai prometheus_client psycopg redis regex starlette "
    "storage.chats.moves storage.inbox.messages storage.journal.events storage.outbox.moves "
    "storage.retention storage.runs.claims storage.runs.moves telegram twilio uvicorn uvloop"
)
"""Packages and rooms of a process that serves."""
A_LOG_HAS = "bot.observability.faults bot.observability.lines structlog"
"""The packages that write a line of the log."""
A_TERMINAL_HAS = "rich.console rich.text"
A_COMMAND_HAS = (
    "asyncio bot.operations.session bot.settings pydantic pysqlite3 sqlalchemy storage.runs.rows"
)
"""Those of a command that reads."""
READING = (
    f"runs list;runs show 1;outbox list;letters list;chats list;chats show 1;status {LONG_REQUEST};"
    "stuck --offline;top --once;db current"
)


def loaded(calls: str, **environment: str) -> set[str]:
    """The modules that a process has loaded after these commands."""
    said = subprocess.run(
        [sys.executable, "-c", CALLS, calls],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return set(said.stdout.splitlines()[-1].split())


def test_help_loads_nothing_but_the_command_line() -> None:
    found = loaded("runs list --help")
    assert found & {*A_SERVICE_HAS.split(), *A_COMMAND_HAS.split()} == set()


def test_commands_that_read_load_nothing_of_a_service_and_no_log(
    sqlite_url: str, tmp_path: Path
) -> None:
    seed(tmp_path)
    found = loaded(READING, DATABASE_URL=sqlite_url)
    needless = f"{A_SERVICE_HAS} {A_LOG_HAS} {A_TERMINAL_HAS}"
    assert found & set(needless.split()) == set()
    assert set(A_COMMAND_HAS.split()) - found == set(), "the names are those of today"
