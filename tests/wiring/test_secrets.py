"""Secrets as files, shells and orchestrators hand them on: used as meant, or refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.domain.errors import ConfigurationError
from bot.settings import lend_to_packages
from bot.wiring import read_settings

TOKEN = "7000000001:TEST-token-not-real-000000000000000"
GIVEN = {
    "TELEGRAM_BOT_TOKEN": TOKEN,
    "TELEGRAM_WEBHOOK_SECRET": "a-long-secret-word",
    "TWILIO_AUTH_TOKEN": "test-auth-token-0001",
    "AGENT_SECRET": "shared between us",
    "PUBLIC_URL": "https://bot.example.test",
    "DATABASE_URL": "sqlite:///data/answerback.db",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The variables, in a folder without a `.env`."""
    monkeypatch.chdir(tmp_path)
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("around", ["{}\n", "{}\r\n", " {}", "\t{} \n"])
def test_b121_blanks_and_line_breaks_around_a_value_are_no_part_of_it(
    environment: pytest.MonkeyPatch, name: str, around: str
) -> None:
    environment.setenv(name, around.format(GIVEN[name]))
    assert getattr(read_settings(), name.lower()) == GIVEN[name]


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("broken", ['"{}"', "'{}'", "{}\nand more", "{}\0"])
def test_b121_quotes_and_inner_line_breaks_are_refused_by_name_without_the_value(
    environment: pytest.MonkeyPatch, name: str, broken: str
) -> None:
    value = broken.format(GIVEN[name])
    if "\0" in value:  # which no environment can hold
        environment.delenv(name)
        with pytest.raises(ConfigurationError, match=name):
            read_settings(**{name.lower(): value})
        return
    environment.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as refused:
        read_settings()
    assert GIVEN[name] not in str(refused.value)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("reference", ["${{{}}}", "$({})", "{{{{ {} }}}}"])
def test_a_reference_that_nobody_filled_in_is_refused(
    environment: pytest.MonkeyPatch, name: str, reference: str
) -> None:
    environment.setenv(name, reference.format(name))
    with pytest.raises(ConfigurationError, match=name):
        read_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALLOWED", "123,'@ada'"),
        ("ALLOWED", "\u201c123\u201d, @ada"),
        ("WEB_SECRET", f"{'w' * 40},'{'x' * 40}'"),
        ("META_APP_SECRET", "'0123456789abcdef', \"fedcba9876543210\""),
        ("META_APP_SECRET", "0123456789abcdef,`fedcba9876543210`"),
        ("META_ACCESS_TOKEN", "EAAG1,'EAAG2'"),
    ],
)
def test_quotes_around_a_member_of_a_list_are_refused_by_name(
    environment: pytest.MonkeyPatch, name: str, value: str
) -> None:
    environment.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as refused:
        read_settings()
    assert not any(word in str(refused.value) for word in value.split(","))


@pytest.mark.parametrize("key", ["'sk-one'", "${OPENAI_API_KEY}", "sk-\none"])
def test_a_providers_key_that_nobody_can_mean_is_refused_by_name(
    environment: pytest.MonkeyPatch, key: str
) -> None:
    environment.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as refused:
        lend_to_packages()
    assert "sk-" not in str(refused.value)


def test_a_providers_key_is_lent_without_what_stands_around_it(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.setenv("OPENAI_API_KEY", "sk-one\n")
    environment.setenv("SOME_NAME", " as it is ")
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY='sk-two '\n")
    environment.setenv("ANTHROPIC_API_KEY", "")
    environment.delenv("ANTHROPIC_API_KEY")  # and out again at the end
    lend_to_packages()
    lent = {name: os.environ[name] for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SOME_NAME")}
    assert lent == {
        "OPENAI_API_KEY": "sk-one",
        "ANTHROPIC_API_KEY": "sk-two",
        "SOME_NAME": " as it is ",
    }


@pytest.mark.parametrize("name", ["WEB_ORIGINS", "TELEGRAM_BOT_TOKEN", "PUBLIC_URL"])
def test_a_value_that_is_not_utf_8_is_refused(environment: pytest.MonkeyPatch, name: str) -> None:
    environment.setenv(name, "\udcff\udcfe")
    with pytest.raises(ConfigurationError):
        read_settings()
