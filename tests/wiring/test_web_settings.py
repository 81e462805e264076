"""The web's variables are taken as meant, or refused with the fix."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.errors import ConfigurationError
from bot.settings import read, settings_of
from channels.web.settings import WebSettings

NEW, OLD = "a-new-secret-of-32-bytes-or-more-", "the-old-secret-of-32-bytes-or-more"


def web_settings(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Any:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return read(settings_of([WebSettings]), _env_file=None)


def test_the_web_is_off_until_it_is_turned_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert web_settings(monkeypatch).web is None
    assert web_settings(monkeypatch, WEB="true").web is True


def test_of_each_secret_two_may_be_given_and_none_of_them_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = web_settings(
        monkeypatch, WEB_SECRET=f" {NEW}, {OLD}\n", WEB_IDENTITY_SECRET=f"i{NEW}"
    )
    assert settings.web_secret == (NEW, OLD)
    assert {NEW, OLD, f"i{NEW}"} <= set(settings.secrets())
    assert NEW not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("WEB_SECRET", "short", "openssl rand"),
        ("WEB_SECRET", f"{NEW},short", "openssl rand"),
        ("WEB_SECRET", f"{NEW},{OLD},x{OLD}", "one secret"),
        ("WEB_SECRET", f'"{NEW}"', "quotes"),
        ("WEB_IDENTITY_SECRET", "passw0rd", "32 bytes"),
        ("WEB_ORIGINS", "*", "https://www.example.com"),
        ("WEB_ORIGINS", "null", "https://www.example.com"),
        ("WEB_ORIGINS", "https://*.example.com", "no origin"),
        ("WEB_ORIGINS", "https://example.com/chat", "no origin"),
        ("WEB_ORIGINS", "example.com", "no origin"),
        ("WEB_PROXIES", "nginx", "10.0.0.0/8"),
        ("WEB_PROXIES", "10.0.0.1/8", "10.0.0.0/8"),
        ("WEB_FILES", "files", "whole path"),
        ("WEB_FILE_MAX", "0", "greater"),
        ("WEB_VISITOR_PER_MINUTE", "0", "greater"),
    ],
)
def test_what_can_not_be_meant_is_refused_by_name_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, fix: str
) -> None:
    with pytest.raises(ConfigurationError, match=name) as refused:
        web_settings(monkeypatch, **{name: value})
    assert fix in str(refused.value)
    assert NEW not in str(refused.value)


def test_the_site_must_not_know_what_signs_our_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="must differ"):
        web_settings(monkeypatch, WEB_SECRET=NEW, WEB_IDENTITY_SECRET=f"{OLD},{NEW}")


def test_origins_and_proxies_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = web_settings(
        monkeypatch,
        PUBLIC_URL="https://bot.example.com/chat",
        WEB_ORIGINS="https://www.example.com:443, http://localhost:3000",
        WEB_PROXIES="127.0.0.1 10.0.0.0/8",
    )
    assert settings.web_allowed.listed == {"https://www.example.com", "http://localhost:3000"}
    assert settings.web_allowed.public == "https://bot.example.com"
    assert len(settings.web_proxies) == 2


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({}, True),
        ({"HOST": "0.0.0.0"}, False),
        ({"PUBLIC_URL": "https://bot.example.com"}, False),
        ({"HOST": "0.0.0.0", "WEB_DEMO": "true"}, True),
        ({"WEB_DEMO": "false"}, False),
    ],
)
def test_the_page_that_shows_the_widget_is_there_where_only_we_are(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], shown: bool
) -> None:
    assert web_settings(monkeypatch, **variables).web_shows_demo is shown
