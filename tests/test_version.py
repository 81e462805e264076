"""The version is the package's, wherever it is told."""

from __future__ import annotations

import tomllib
from pathlib import Path

import httpx
from typer.testing import CliRunner

from bot.cli.app import app
from bot.domain.errors import ConfigurationError
from bot.http import build_waiting_app
from bot.observability.metrics import Observer
from bot.operations.doctor import settings_problems

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


async def test_the_version_is_told_by_the_command_the_doctor_health_and_metrics() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.output) == (0, f"answerback {VERSION}\n")
    [program, _] = settings_problems(ConfigurationError("PORT: is no number"))
    assert program.says.startswith(f"{VERSION}, on Python 3.")
    transport = httpx.ASGITransport(build_waiting_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        assert (await client.get("/healthz")).text == f"alive, Answerback {VERSION}\n"
    [build] = [
        sample
        for family in Observer().registry.collect()
        for sample in family.samples
        if sample.name == "answerback_build_info"
    ]
    assert (build.labels["version"], build.value) == (VERSION, 1)
