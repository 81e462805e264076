"""The settings of the operator's page, and the words of `doctor` on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argon2 import extract_parameters

from bot.domain.errors import ConfigurationError
from bot.domain.operators import OperatorAccount, Role
from bot.operator import passwords
from bot.operator.passwords import Passwords
from bot.wiring import read_settings, remarks_on
from tests.kit.operator import NOBODYS, hashed

PASSWORD = "correct horse battery"
HASH = hashed(PASSWORD)


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_one_password_makes_one_operator_who_acts() -> None:
    [one] = read_settings(operator_password=PASSWORD).operators
    assert one == OperatorAccount("operator", Role.ACTING, PASSWORD)
    assert read_settings().operators == []


def test_a_list_names_each_with_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATOR_USERS", f"ada:acting:{HASH},bob:reading:a-word:with-colon")
    ada, bob = read_settings().operators
    assert (ada.name, ada.role, ada.credential) == ("ada", Role.ACTING, HASH)
    assert (bob.name, bob.role, bob.credential) == ("bob", Role.READING, "a-word:with-colon")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"operator_password": "short"}, "OPERATOR_PASSWORD: needs a password of 12"),
        ({"operator_password": HASH[:30]}, "OPERATOR_PASSWORD: holds a hash that was cut short"),
        ({"operator_users": "ada:acting:short"}, "OPERATOR_USERS: needs a password of 12"),
        ({"operator_users": "just-a-secret-word"}, "OPERATOR_USERS: has an entry without a role"),
        ({"operator_users": f"ada:admin:{HASH}"}, "OPERATOR_USERS: has an entry without a role"),
        ({"operator_users": f"<b>:acting:{HASH}"}, "OPERATOR_USERS: needs entries like"),
        (
            {"operator_users": f"ada:acting:{HASH} Ada:reading:{HASH}"},
            "OPERATOR_USERS: names somebody twice",
        ),
        (
            {"operator_users": f"operator:acting:{HASH}", "operator_password": PASSWORD},
            "OPERATOR_USERS: names somebody twice",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_never_quoted(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_settings(**settings)
    said = str(refused.value)
    assert said.startswith(says)
    for value in settings.values():
        assert str(value).rpartition(":")[2] not in said


def test_credentials_are_secrets_in_the_log_and_in_no_repr() -> None:
    settings = read_settings(operator_password=PASSWORD, operator_users="bob:reading:bobs-own-word")
    assert {PASSWORD, "bobs-own-word"} <= set(settings.secrets())
    assert "horse" not in repr(settings)
    assert "bobs-own-word" not in repr(settings.operators)


async def test_a_hash_opens_with_its_password_in_either_form_and_with_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passwords, "_NOBODYS", NOBODYS)
    usual = _in_the_usual_form(HASH)
    for credential in (HASH, usual, PASSWORD):
        one = OperatorAccount("ada", Role.ACTING, credential)
        assert await Passwords().match(one, PASSWORD)
        for typed in ("", PASSWORD + " ", HASH if credential != HASH else "x", usual[:-1]):
            assert not await Passwords().match(one, typed)
    assert not await Passwords().match(None, PASSWORD)


async def test_a_hash_of_ours_takes_its_time_for_whoever_tries_and_needs_no_quotes() -> None:
    made = passwords.hashed(PASSWORD)
    assert made.startswith("argon2id.")
    assert set("$, \"'`#\\;&:") & set(made) == set()
    assert await Passwords().match(OperatorAccount("ada", Role.ACTING, made), PASSWORD)
    ours, nobodys = (
        replace(extract_parameters(one), salt_len=0)
        for one in (_in_the_usual_form(made), passwords._NOBODYS)
    )
    assert ours == nobodys


def _in_the_usual_form(hashed: str) -> str:
    return "$" + hashed.translate(str.maketrans("._", "$,"))


@pytest.mark.parametrize(
    ("settings", "level", "says"),
    [
        ({}, "ok", "for 1 operator, on this machine alone"),
        ({"operator_open": True}, "warning", "open to others without TLS"),
        (
            {"operator_open": True, "public_url": "https://bot.example.test"},
            "warning",
            "the settings hold the password of operator as it is",
        ),
        (
            {
                "operator_open": True,
                "public_url": "https://bot.example.test",
                "operator_password": HASH,
            },
            "warning",
            "all who come by the proxy in front count as one",
        ),
        (
            {
                "operator_open": True,
                "public_url": "https://bot.example.test",
                "operator_password": HASH,
                "web_proxies": "10.0.0.2",
            },
            "ok",
            "for 1 operator, at https://bot.example.test/operator",
        ),
        ({"operator_password": "", "operator_open": True}, "warning", "nobody can sign in"),
    ],
)
def test_doctor_and_a_start_say_who_can_reach_it(
    settings: dict[str, Any], level: str, says: str
) -> None:
    found = remarks_on(read_settings(**{"operator_password": PASSWORD, **settings}))
    [told] = [finding for finding in found if finding.name == "operator's page"]
    assert told.level.value == level
    assert says in told.says


def test_nothing_is_said_where_there_is_no_page() -> None:
    assert [f for f in remarks_on(read_settings()) if f.name == "operator's page"] == []
