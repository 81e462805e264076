"""Settings that are right and still worth a word, in the same words at a start and in `doctor`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding
from bot.main import serve
from bot.settings import lend_to_packages
from bot.wiring import Role, read_settings, remarks_on
from bot.wiring.operator import examine
from tests.ports import own_port

TELEGRAM = {"telegram_bot_token": "1:a"}
OPEN = "empty, and CHAT_TURNS_PER_DAY is 0: whoever finds the bot can spend your money"


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def told(**settings: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in remarks_on(read_settings(**settings))}


@pytest.mark.parametrize("agent", ["llm", "my_bot:reply", "https://agent.example/turn"])
def test_who_can_spend_the_owners_money_is_said_where_anybody_can(agent: str) -> None:
    assert told(**TELEGRAM, agent=agent)["ALLOWED"].says == OPEN


@pytest.mark.parametrize(
    "settings",
    [
        {"agent": "echo", **TELEGRAM},
        {"agent": "llm", "allowed": "700100201", **TELEGRAM},
        {"agent": "llm", "chat_turns_per_day": 50, **TELEGRAM},
        {"agent": "llm"},
    ],
)
def test_nothing_is_said_where_nobody_else_can(settings: dict[str, Any]) -> None:
    assert "ALLOWED" not in told(**settings)


@pytest.mark.parametrize(
    ("settings", "channel", "says"),
    [
        ({"telegram_mode": "polling"}, "telegram", "it is off although TELEGRAM_MODE is set"),
        ({"twilio_auth_token": "x"}, "whatsapp", "it is off although TWILIO_AUTH_TOKEN is set"),
        ({"meta_app_secret": "x"}, "whatsapp-cloud", "it is off although META_APP_SECRET is set"),
    ],
)
def test_a_setting_of_a_channel_that_is_off_is_told(
    settings: dict[str, Any], channel: str, says: str
) -> None:
    assert told(**settings)[channel].says == says


def test_words_in_the_log_of_a_bot_are_told() -> None:
    assert told(**TELEGRAM, development=True)["DEVELOPMENT"].says.startswith("on: what an agent")
    assert "DEVELOPMENT" not in told(development=True)


def test_a_channel_that_was_turned_off_by_name_is_meant_to_be() -> None:
    assert "web" not in told(web=False, web_origins="https://www.example.com")


async def test_a_start_and_the_doctor_say_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", "1:a")
    monkeypatch.setenv("META_VERIFY_TOKEN", "word")
    with pytest.raises(ConfigurationError, match="no platform is configured"):
        await serve(read_settings(), Role.ALL)
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    found = {f"{f.name}: {f.says}; {f.fix}" for f in await examine()}
    assert logged[0] == (
        "TELEGRAM_TOKEN: the environment sets it, and nothing reads it; "
        "did you mean TELEGRAM_BOT_TOKEN?"
    )
    assert len(logged) == 2
    assert set(logged) <= found


async def test_the_doctor_tells_of_an_agents_address_its_host_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = own_port()
    monkeypatch.setenv("AGENT", f"http://ada:hunter2@127.0.0.1:{port}/hunter2?key=hunter2")
    found = {finding.name: finding.says for finding in await examine()}
    assert found["agent"] == f"http://127.0.0.1:{port} can't be reached: ConnectError"
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AGENT_TIMEOUT", "10m", "takes a number of seconds, without a unit: 600"),
        ("AGENT_TIMEOUT", "1.5 min", "takes a number of seconds, without a unit: 90"),
        ("LLM_TIMEOUT", "500ms", "takes a number of seconds, without a unit: 0.5"),
        ("QUIET_MS", "2s", "takes a number of milliseconds, without a unit: 2000"),
        ("RETENTION_DAYS", "48h", "takes a number of days, without a unit: 2"),
        ("RETENTION_DAYS", "4w", "takes a number of days, without a unit"),
        ("WEB_FILE_MAX", "10MB", "takes a number of bytes, without a unit: 10000000"),
        ("CONCURRENCY", "10x", "takes a number alone, without a unit: 10"),
        ("PORT", "8,080", "takes digits alone, and a dot before decimals"),
        ("PORT", "eight", "must be a whole number, in digits"),
        ("PORT", "70000", "must be less than or equal to 65535"),
        ("RUN_DEADLINE", "soon", "must be a number, in digits"),
        ("COMMAND_WORDS", "enabled", "must be true or false"),
        ("LOG_LEVEL", "loud", "must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
        (
            "AGENT",
            "\u201cecho\u201d",
            "stands in quotes, which would be a part of it: take them off",
        ),
    ],
)
def test_a_value_that_is_wrong_says_how_to_write_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as refused:
        read_settings()
    assert str(refused.value) == f"{name}: {said}"


@pytest.mark.parametrize(
    ("value", "meant"),
    [("yes", True), ("on", True), ("1", True), ("TRUE", True), ("no", False), ("off", False)],
)
def test_a_boolean_is_written_in_any_usual_way(
    monkeypatch: pytest.MonkeyPatch, value: str, meant: object
) -> None:
    monkeypatch.setenv("COMMAND_WORDS", value)
    assert read_settings().command_words is meant


def test_a_providers_key_in_quotes_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", '"sk-one"')
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY: stands in quotes") as refused:
        lend_to_packages()
    assert "sk-one" not in str(refused.value)
