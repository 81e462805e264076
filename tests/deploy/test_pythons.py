"""The Pythons that are promised are those that are tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_oldest_and_the_newest_python_are_tested_and_the_image_has_the_newest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    kinds = project["project"]["classifiers"]
    named = [kind.rpartition(" ")[2] for kind in kinds if re.search(r"Python :: 3\.\d+$", kind)]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == [named[0], named[-1]]
    assert project["project"]["requires-python"] == f">={named[0]}"
    assert project["tool"]["ruff"]["target-version"] == f"py{named[0].replace('.', '')}"
    assert f"--python-version {named[-1]} " in (ROOT / ".ci/run").read_text()
    images = re.findall(r"FROM python:([\d.]+)-slim", (ROOT / "Dockerfile").read_text())
    assert set(images) == {named[-1]}


def test_no_page_has_anybody_install_our_name_from_an_index() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "bot").rglob("*.py")]
    asking = re.compile(r"pip3? install[^\n`]*?\s['\"]?answerback(?!-\d)")
    assert [page.name for page in pages if asking.search(page.read_text())] == []
