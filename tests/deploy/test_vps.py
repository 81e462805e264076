"""The page that leads from an empty machine to a bot: its commands, as far as a test can go."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.limits import PATIENCE

ROOT = Path(__file__).parents[2]
[_BLOCK] = re.findall(
    r"As root:\n\n```\n(.*?)```", (ROOT / "docs/vps.md").read_text(encoding="utf-8"), re.DOTALL
)
COMMANDS = _BLOCK.splitlines()


def test_it_takes_ten_commands() -> None:
    assert len(COMMANDS) == 10


def test_what_it_copies_and_starts_is_there() -> None:
    unit = (ROOT / "deploy/answerback.service").read_text()
    [home] = re.findall(r"--home-dir (\S+)", _BLOCK)
    assert f"WorkingDirectory={home}\n" in unit
    assert f"ReadWritePaths={home}/data\n" in unit
    for named in re.findall(r"(?:deploy/\S+|\.env\.example)", _BLOCK):
        assert (ROOT / named).exists(), named


def test_the_proxy_is_told_the_name_and_the_service(tmp_path: Path) -> None:
    [line] = [command for command in COMMANDS if command.startswith("sed ")]
    file = tmp_path / "Caddyfile"
    written = line.partition(" && ")[0].replace("/etc/caddy/Caddyfile", str(file))
    subprocess.run(["sh", "-c", written], cwd=ROOT, check=True, timeout=PATIENCE)
    told = file.read_text()
    assert "\nhttps://bot.example.com {\n" in told
    assert "reverse_proxy 127.0.0.1:8080 {" in told
    assert "{$" not in told


@pytest.mark.skipif(shutil.which("caddy") is None, reason="there is no Caddy here")
def test_caddy_takes_its_file(tmp_path: Path) -> None:
    examined = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", ROOT / "deploy/Caddyfile"],
        env={"PUBLIC_URL": "https://bot.example.com", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert examined.returncode == 0, examined.stderr
