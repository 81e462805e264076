"""The unit for systemd: as systemd reads it, and in step with the settings."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.settings import Settings
from tests.limits import PATIENCE

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy/answerback.service"


def test_a_stop_waits_for_the_hand_over_and_a_wrong_setting_is_no_storm_of_starts() -> None:
    told = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    grace = Settings.model_fields["shutdown_grace"].default
    assert int(told["TimeoutStopSec"]) >= grace + 5
    assert told["Restart"] == "always"
    assert told["ExecStart"].endswith("/answerback serve --stay")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    runnable = re.sub(r"(?<=ExecStart=)\S+", "/bin/true", UNIT.read_text())
    unit.write_text(runnable)
    _examined(unit, "security", "--offline=true", "--threshold=30")
    assert _examined(unit, "verify", "--man=no") == ""


def _examined(unit: Path, *words: str) -> str:
    """The complaints of systemd."""
    examined = subprocess.run(
        ["systemd-analyze", *words, str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert examined.returncode == 0, examined.stdout + examined.stderr
    return examined.stderr
