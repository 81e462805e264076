"""A start that is refused names each variable and its fix in a line, and exits with 2."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.e2e.forking import ROOT, Forked
from tests.e2e.processes import PROGRAM
from tests.limits import PATIENCE

BOT = {"TELEGRAM_BOT_TOKEN": "7000000001:TEST-token-not-real-000000000000000"}
PUBLIC = {"PUBLIC_URL": "https://bot.example.test"}
POLLING = BOT | {"TELEGRAM_MODE": "polling"}
TWILIO = {
    "TWILIO_ACCOUNT_SID": "AC00000000000000000000000000000001",
    "TWILIO_AUTH_TOKEN": "test-auth-token-0001",
    "TWILIO_WHATSAPP_FROM": "whatsapp:+15550100099",
}


def answerback(folder: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end, with nothing configured but this."""
    return subprocess.run(
        [PROGRAM, *words],
        cwd=folder,
        env=_place(folder) | changes,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def _place(folder: Path) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": str(folder), "PYTHONPATH": str(ROOT), "PORT": "0"}


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({}, ["TELEGRAM_BOT_TOKEN", "TWILIO_ACCOUNT_SID", "answerback chat"]),
        (BOT | PUBLIC, ["TELEGRAM_WEBHOOK_SECRET", "TELEGRAM_MODE=polling"]),
        (
            BOT | PUBLIC | {"TELEGRAM_WEBHOOK_SECRET": "two words"},
            ["TELEGRAM_WEBHOOK_SECRET", "A-Z a-z 0-9 _ -"],
        ),
        ({"TELEGRAM_BOT_TOKEN": "nonsense"}, ["TELEGRAM_BOT_TOKEN"]),
        (TWILIO, ["PUBLIC_URL", "https"]),
        (TWILIO | PUBLIC | {"TWILIO_AUTH_TOKEN": ""}, ["TWILIO_AUTH_TOKEN", "console"]),
        (POLLING | {"HEARTBEAT_SECONDS": "10"}, ["HEARTBEAT_SECONDS", "LEASE_SECONDS"]),
        (POLLING | {"DATABASE_URL": "mysql://x/y"}, ["DATABASE_URL", "postgresql"]),
        (POLLING | {"DATABASE_URL": "sqlite:////proc/no/a.db"}, ["DATABASE_URL", "/proc/no"]),
        (
            POLLING | {"DATABASE_URL": "postgresql://user:pass-word@127.0.0.1:1/db"},
            ["DATABASE_URL", "127.0.0.1"],
        ),
        (POLLING | {"AGENT": "no_such_module:reply"}, ["AGENT", "no_such_module"]),
        (
            POLLING | {"PORT": "many", "LANGUAGE": "", "CONCURRENCY": "0", "REDIS_URL": "web://x"},
            ["PORT", "CONCURRENCY", "REDIS_URL", "redis://"],
        ),
    ],
    ids=lambda value: "-".join(value)[:50] if isinstance(value, list) else "",
)
async def test_a_wrong_setting_is_named_with_its_fix(
    tmp_path: Path, environment: dict[str, str], names: list[str]
) -> None:
    refused = await Forked.start(
        "serve", environment=_place(tmp_path) | environment, folder=tmp_path
    )
    printed, said = await asyncio.gather(refused.stdout.read(), refused.stderr.read())
    assert await refused.wait() == 2, said
    refused.close()
    told = said.decode()
    for name in names:
        assert name in told
    assert printed == b""
    assert "Traceback" not in told
    assert "TEST-token" not in told
    assert "pass-word" not in told


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = answerback(tmp_path, "serve", **POLLING, PORT=port)
    assert refused.returncode == 2
    assert f"127.0.0.1:{port}" in refused.stderr
    assert "PORT" in refused.stderr


def test_help_names_what_can_be_done(tmp_path: Path) -> None:
    shown = answerback(tmp_path, "--help")
    assert shown.returncode == 0
    for verb in ("serve", "chat", "up"):
        assert verb in shown.stdout
    assert answerback(tmp_path, "no-such-verb").returncode == 2
