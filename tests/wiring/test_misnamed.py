"""Variables that nobody reads are named, with the setting that is meant; no other program's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding, Level
from bot.settings import Line, file_lines
from bot.wiring import read_settings, remarks_on
from bot.wiring.channels import settings_class
from bot.wiring.misnamed import HANDED_ON, MEANT, misnamed

KNOWN = frozenset(name.upper() for name in settings_class().model_fields)
ROOT = Path(__file__).parents[2]


def in_environment(*names: str) -> Sequence[Finding]:
    return misnamed(KNOWN, set(names), ())


def in_file(*names: str) -> Sequence[Finding]:
    lines = [Line(number, name, given=True) for number, name in enumerate(names, 1)]
    return misnamed(KNOWN, (), lines)


@pytest.fixture
def dotenv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".env"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN"),
        ("TELEGRAM_API_TOKEN", "TELEGRAM_BOT_TOKEN"),
        ("TELEGRAM_WEBHOOK_SECRT", "TELEGRAM_WEBHOOK_SECRET"),
        ("TWILIO_SID", "TWILIO_ACCOUNT_SID"),
        ("TWILIO_AUTHTOKEN", "TWILIO_AUTH_TOKEN"),
        ("META_TOKEN", "META_ACCESS_TOKEN"),
        ("META_PHONE_NUMBER", "META_PHONE_NUMBER_ID"),
        ("WHATSAPP_TOKEN", "META_ACCESS_TOKEN"),
        ("LLM_MODELS", "LLM_MODEL"),
        ("LLM_SYSTEM_PROMPT", "LLM_SYSTEM_PROMPT_FILE"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("REDIS_URI", "REDIS_URL"),
        ("WEB_ORIGIN", "WEB_ORIGINS"),
        ("AGENT_TIMEOUT_SECONDS", ""),
        ("AGENTS", "AGENT"),
        ("LOG_LEVL", "LOG_LEVEL"),
        ("ALLOWED_USERS", "ALLOWED"),
    ],
)
def test_a_name_that_is_nearly_ours_is_told_with_the_right_one(name: str, meant: str) -> None:
    found = in_environment(name)
    told = [(finding.name, finding.level, finding.fix) for finding in found]
    assert told == ([(name, Level.WARNING, f"did you mean {meant}?")] if meant else [])


def test_a_name_of_ours_alone_is_told_though_nothing_is_like_it() -> None:
    [found] = in_environment("TELEGRAM_FOOBAR")
    says = "the environment sets it, and no setting has this name"
    assert (found.says, found.level) == (says, Level.WARNING)


def test_a_models_key_under_a_name_of_ours_is_told_where_it_belongs() -> None:
    for found in (*in_environment("LLM_API_KEY"), *in_file("LLM_API_KEY")):
        assert found.fix.endswith("the name that its provider gives it, such as OPENAI_API_KEY")
    assert len([*in_environment("LLM_API_KEY"), *in_file("LLM_API_KEY")]) == 2


@pytest.mark.parametrize(
    "name",
    [
        "HOME", "TOKEN", "BOT_TOKEN", "SECRET", "DATABASE_HOST", "DATABASE_PASSWORD",
        "REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD", "REDIS_PORT_6379_TCP",
        "REDIS_SERVICE_HOST",
        "WEB_PORT_80_TCP_ADDR", "WEB_CONCURRENCY", "WEB_SERVICE_PORT", "AGENT_NAME", "AGENT_ID",
        "AGENT_WORKFOLDER", "AGENT_JOBSTATUS", "LOG_DIR", "LOGNAME", "HOSTNAME", "PORTS",
        "TOOLSDIR", "LANGUAGES", "TELEGRAM_CHAT_ID", "TWILIO_API_KEY", "OPENAI_API_KEY",
        "CHANNEL", "TIMEZONES", "TELEGRAM_SERVICE_HOST", "TELEGRAM_PORT", "META_PORT_80_TCP_ADDR",
        "DATABASE_USER", "DATABASE_SSL", "REDIS_USER", "PUBLIC_API_URL", "LOG_FORMATTER",
        "TELEGRAM_TO", "TWILIO_PROFILE", "TWILIO_LOG_LEVEL",
    ],
)  # fmt: skip
def test_a_machines_other_variables_are_left_alone(name: str) -> None:
    assert in_environment(name) == []


def test_a_part_of_an_address_in_our_own_file_is_told() -> None:
    [found] = in_file("DATABASE_USER")
    assert (found.level, found.fix) == (Level.WARNING, "did you mean DATABASE_URL?")


def test_a_name_whose_right_one_is_set_too_is_another_programs() -> None:
    assert in_environment("TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN") == []


def test_our_own_names_are_told_nowhere() -> None:
    assert in_environment(*KNOWN) == []
    assert in_file(*KNOWN) == []


def test_each_meant_name_is_a_setting_or_a_providers() -> None:
    assert {meant for meant in MEANT.values() if not meant.endswith("_API_KEY")} <= KNOWN
    assert not MEANT.keys() & KNOWN


def test_in_the_file_every_unknown_name_is_told_by_its_line() -> None:
    found = in_file("PORT", "BOT_TOKEN", "SHOP_KEY", "HOTS", "OPENAI_API_KEY", "SHOP_URL")
    assert [(f.name, f.level, f.says, f.fix) for f in found] == [
        (
            "BOT_TOKEN",
            Level.WARNING,
            ".env, line 2 sets it, and nothing reads it",
            "did you mean TELEGRAM_BOT_TOKEN?",
        ),
        (
            ".env",
            Level.OK,
            "no settings of Answerback: SHOP_KEY (line 3), HOTS (line 4), SHOP_URL (line 6)",
            "",
        ),
    ]
    assert in_file(*HANDED_ON) == []


def test_in_the_file_a_name_beside_the_right_one_is_listed_too() -> None:
    [found] = in_file("BOT_TOKEN", "TELEGRAM_BOT_TOKEN")
    assert (found.level, found.says) == (Level.OK, "no settings of Answerback: BOT_TOKEN (line 1)")
    [found] = in_file("TELEGRAM_FOOBAR")
    assert (found.level, found.name) == (Level.WARNING, "TELEGRAM_FOOBAR")


def test_a_file_of_any_editor_is_read_with_its_lines(dotenv: Path) -> None:
    text = (
        "\ufeffexport PORT=8081\r\n\r\n# a remark\r\nTELEGRAM_TOKEN='1:a'\r\n"
        'log_level = "debug" # why\r\nnot a line\r\nPORT=8082\r\nLLM_MODEL\r\nTEXT="two\nlines"\n'
        "LAST=1"
    )
    dotenv.write_bytes(text.encode())
    assert file_lines() == [
        Line(1, "PORT", given=True),
        Line(4, "TELEGRAM_TOKEN", given=True),
        Line(5, "LOG_LEVEL", given=True),
        Line(6, "", given=False),
        Line(7, "PORT", given=True),
        Line(8, "LLM_MODEL", given=False),
        Line(9, "TEXT", given=True),
        Line(11, "LAST", given=True),
    ]
    settings = read_settings()
    assert (settings.port, settings.log_level) == (8082, "DEBUG")
    told = {finding.name: finding.says for finding in remarks_on(settings)}
    assert told["PORT"] == ".env has it in line 1 and in line 7"
    assert told[".env, line 6"] == "it can't be read"
    assert told["TELEGRAM_TOKEN"].startswith(".env, line 4")


@pytest.mark.parametrize("content", ["PORT=1\n".encode("utf-16"), b"A=\xff\xfe"])
def test_a_file_in_another_encoding_is_refused_in_a_sentence(dotenv: Path, content: bytes) -> None:
    dotenv.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"^\.env is not UTF-8: save it as UTF-8$"):
        read_settings()


def test_what_is_missing_comes_with_the_name_that_was_meant(
    dotenv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBLIC_URL", "https://bot.example.com")
    dotenv.write_text("TELEGRAM_BOT_TOKEN=1:a\nTELEGRAM_SECRET=word\n")
    with pytest.raises(ConfigurationError) as refused:
        read_settings()
    assert str(refused.value).splitlines()[1] == (
        "TELEGRAM_SECRET: .env, line 2 sets it, and nothing reads it; "
        "did you mean TELEGRAM_WEBHOOK_SECRET?"
    )


def test_the_example_file_holds_no_name_that_is_told(dotenv: Path) -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    dotenv.write_text(re.sub(r"^#(?=[A-Z])", "", text, flags=re.MULTILINE), encoding="utf-8")
    found = misnamed(KNOWN, (), file_lines())
    assert [f for f in found if f.level is not Level.OK] == []
