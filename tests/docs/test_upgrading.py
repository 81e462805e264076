"""The page on upgrading is true for a clone that has no tags."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
GIT = [
    line.partition("  #")[0].strip() for line in re.findall(r"^    (git .*)$", PAGE, re.MULTILINE)
]
_NOBODY = {
    "PATH": os.defpath,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def run(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=_NOBODY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the first version; its origin has had three since, and no tag."""
    folder = tmp_path_factory.mktemp("upgrading")
    run("git init -q --initial-branch=trunk origin", folder)
    origin = folder / "origin"
    for number, version in enumerate(("0.1.0", "0.2.0", "0.2.0", "0.3.0")):
        (origin / "pyproject.toml").write_text(f'version = "{version}"\n# {number}\n')
        run(f"git add -A && git commit -qm '{version}, commit {number}'", origin)
        if number == 0:
            run("git clone -q origin clone", folder)
    return folder / "clone"


def test_its_commands_lead_to_the_newest_version_to_a_certain_one_and_back(clone: Path) -> None:
    newest = "git fetch origin HEAD && git checkout --detach FETCH_HEAD"
    [certain] = [line for line in GIT if line.startswith("git checkout $(")]
    assert set(GIT) == {"git rev-parse HEAD", newest, certain}
    said = "git log -1 --format=%s"
    before = run("git rev-parse HEAD", clone)
    run(newest, clone)
    assert run(said, clone) == "0.3.0, commit 3"
    run(certain, clone)
    assert run(said, clone) == "0.2.0, commit 1"
    run(newest, clone)
    run(f"git checkout {before}", clone)
    assert run(said, clone) == "0.1.0, commit 0"
    assert run("git tag", clone) == ""
