"""The files by which Answerback is installed and deployed agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from bot.wiring.channels import settings_class

ROOT = Path(__file__).parents[2]


def _read(name: str) -> str:
    return (ROOT / name).read_text()


def _found(pattern: str, name: str) -> str:
    match = re.search(pattern, _read(name), re.MULTILINE)
    assert match is not None, f"{name} says nothing like {pattern}"
    return match[1]


def _pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", _read(lock), re.MULTILINE))


def test_a_container_is_stopped_only_after_the_hand_over() -> None:
    grace = int(_found(r"^#SHUTDOWN_GRACE=(\d+)$", ".env.example"))
    allowed = int(_found(r"^  stop_grace_period: (\d+)s$", "compose.yaml"))
    assert allowed >= grace + 5


def test_the_image_and_make_install_with_the_same_uv() -> None:
    assert _found(r"uv==([\d.]+)", "Dockerfile") == _found(r"^UV_VERSION := (.+)$", "Makefile")


def test_tests_run_on_the_versions_that_are_installed_to_run() -> None:
    tested = _pins("requirements-test.lock")
    assert {name: tested.get(name) for name in _pins("requirements.lock")} == _pins(
        "requirements.lock"
    )


def test_the_site_is_made_with_the_versions_that_the_tests_use() -> None:
    tested, made = _pins("requirements-test.lock"), _pins("requirements-docs.lock")
    assert {name: made[name] for name in made.keys() & tested.keys()} == {
        name: tested[name] for name in made.keys() & tested.keys()
    }


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-test.lock", "requirements-docs.lock"]
)
def test_a_lock_file_has_a_hash_for_all_it_names_and_no_host(lock: str) -> None:
    text = _read(lock)
    assert "://" not in text
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert "--hash=sha256:" in requirement, requirement


def test_what_pyproject_asks_for_is_locked() -> None:
    project = tomllib.loads(_read("pyproject.toml"))
    extras = project["project"]["optional-dependencies"]
    to_run = project["project"]["dependencies"] + extras["llm"]
    to_run += project["dependency-groups"]["build"]
    assert _names(to_run) <= set(_pins("requirements.lock"))
    assert _names(extras["test"]) <= set(_pins("requirements-test.lock"))
    groups = project["dependency-groups"]
    assert _names(groups["docs"]) <= set(_pins("requirements-docs.lock"))
    assert not _names(groups["docs"]) & set(_pins("requirements.lock"))


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements}


def test_the_example_names_every_setting_with_its_default() -> None:
    example = dict(re.findall(r"^#([A-Z_]+)=(.*)$", _read(".env.example"), re.MULTILINE))
    whole = settings_class()
    fields = {name.upper(): field.default for name, field in whole.model_fields.items()}
    assert set(fields) - set(example) == set()
    for name, default in fields.items():
        if default not in ("", None, PydanticUndefined, frozenset(), ()):
            set_so = whole.model_validate({name.lower(): example[name]})
            assert getattr(set_so, name.lower()) == default, name
