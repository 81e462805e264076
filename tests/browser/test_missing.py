"""A machine without a Chromium says so: its tests are skipped, and fail where CI is set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import chromium

WORDS = "apt-get install --no-install-recommends chromium"


@pytest.mark.parametrize(
    ("ci", "told"), [("", pytest.skip), ("true", pytest.fail)], ids=["skip", "fail"]
)
def test_without_a_chromium(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, told: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(told.Exception, match=WORDS):
        chromium()
