"""A machine without a Chromium says so: its tests are skipped, and fail where CI is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.forking import ROOT

WORDS = "apt-get install --no-install-recommends chromium"


@pytest.mark.parametrize(("ci", "code", "result"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_without_a_chromium(tmp_path: Path, ci: str, code: int, result: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-rs",
            "-p",
            "no:cacheprovider",
            "tests/browser/test_secrets.py",
        ],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert result in done.stdout
    assert WORDS in done.stdout
