"""The registry of channels: nothing of a platform is loaded before it is configured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.message import ChannelName
from bot.texts import Words
from bot.wiring import configured, read_settings
from bot.wiring.channels import at_the_terminal, connect, plugins
from tests.clocks import ShiftedClock

LOADED = """
import sys
import bot.wiring
from bot.wiring import read_settings
read_settings(_env_file=None)
print(*sorted({"telegram", "twilio"} & set(sys.modules)))
"""


async def _nowhere(_text: str, _answers: str) -> None:
    """A terminal that shows nothing."""


def test_an_unconfigured_platforms_packages_are_not_loaded() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, env={}
    )
    assert said.stdout.split() == []


def test_two_channels_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="CHANNELS"):
        plugins(("channels.console",))


def test_without_variables_no_platform_is_on_and_a_terminal_is_the_only_channel() -> None:
    settings = read_settings(_env_file=None)
    assert configured(settings) == []
    [endpoint] = connect(settings, ShiftedClock(), Words.load(), terminal=_nowhere)
    assert endpoint.channel.name == "console"


@pytest.mark.parametrize(
    ("given", "agent"),
    [
        ({}, "demo"),
        ({"agent": "echo"}, "echo"),
        ({"telegram_bot_token": "1:a"}, "echo"),
        ({"telegram_bot_token": "1:a", "agent": "demo"}, "demo"),
    ],
)
def test_who_tries_it_out_meets_the_demonstration_and_a_platforms_people_do_not(
    given: dict[str, str], agent: str
) -> None:
    assert at_the_terminal(read_settings(_env_file=None, **given)).agent == agent


def test_every_secret_of_every_channel_is_known_as_one() -> None:
    given = {
        "telegram_bot_token": "1:a",
        "telegram_webhook_secret": "b",
        "twilio_auth_token": "c",
        "twilio_second_auth_token": "d",
        "twilio_shared_key": "e",
        "agent_secret": "f",
        "otel_exporter_otlp_headers": "authorization=g",
    }
    settings = read_settings(_env_file=None, **given)
    assert {"1:a", "b", "c", "d", "e", "f", "g"} <= set(settings.secrets())
    shown = repr(settings)
    assert not any(f"'{secret}'" in shown for secret in given.values())


def test_a_channels_variables_come_from_the_file_as_ours_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TELEGRAM_API_URL", "")
    lines = ["PORT=9000", "TELEGRAM_BOT_TOKEN=1:a", "TELEGRAM_READ_TIMEOUT=7", "SOMETHING_ELSE=1"]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    settings = read_settings()
    values = settings.model_dump()
    assert (settings.port, values["telegram_bot_token"]) == (9000, "1:a")
    assert values["telegram_read_timeout"] == 7.0
    assert values["telegram_api_url"] == "https://api.telegram.org", "an empty variable is none"
    assert [plugin.name for plugin in configured(settings)] == ["telegram"]


def test_further_channels_are_named_in_the_file_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        f"CHANNELS=tests.channels.file_channel\nFILE_FOLDER={tmp_path}\n", encoding="utf-8"
    )
    assert [plugin.name for plugin in configured(read_settings())] == ["file"]


@pytest.mark.parametrize("name", ["", "Telegram", "tele gram", "1st", "-st", "x" * 33])
def test_a_channels_name_is_short_and_plain(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a channel"):
        ChannelName(name)


@pytest.mark.parametrize("module", [".", "..x", "../../etc/passwd", "a b"])
def test_a_channel_that_is_no_module_is_refused_by_name(module: str) -> None:
    with pytest.raises(ConfigurationError, match="CHANNELS"):
        plugins((module,))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("1 / 0", r"importing (\S+) failed: ZeroDivisionError: .* \(\1\.py:1 <module>\); mend it"),
        ("raise SystemExit('not\\ntoday')", r"importing \S+ failed: SystemExit: not today"),
        ("import no_such_package", r"\S+ imports 'no_such_package', which is not installed"),
        ("CHANNEL = 1", r"\S+\.CHANNEL is no ChannelPlugin"),
        ("", r"\S+ has no CHANNEL"),
        (
            "def __getattr__(name): 1 / 0",
            r"looking up (\S+)\.CHANNEL failed: ZeroDivisionError: .* \(\1\.py:1 \S+\); mend it",
        ),
        ("def __getattr__(name): raise AttributeError(name)", r"\S+ has no CHANNEL"),
    ],
)
def test_a_module_of_a_channel_that_cannot_be_loaded_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"channel_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    (tmp_path / ".env").write_text(f"CHANNELS={name}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"^CHANNELS: {complaint}") as caught:
        read_settings()
    sys.modules.pop(name, None)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
