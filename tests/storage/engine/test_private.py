"""Files with people's words are for our own user alone, whatever the umask of our start."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.clients.files import _write
from bot.clock import SystemClock
from storage import backup
from storage.engine.private import open_to_all
from storage.schema.migrate import upgrade


@pytest.fixture(autouse=True)
def _careless() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> set[str]:
    """The modes of all files and folders in a folder, but of locks, in which nothing stands."""
    found = [each for each in folder.rglob("*") if each.suffix != ".lock"]
    return {oct(stat.S_IMODE(each.stat().st_mode)) for each in found}


def test_a_database_its_folders_and_all_beside_it_are_ours_alone(tmp_path: Path) -> None:
    file = tmp_path / "above" / "data" / "answerback.db"
    upgrade(f"sqlite:///{file}")
    backup.make(f"sqlite:///{file}", file.with_name("copy.db"), SystemClock())
    backup.put_back(f"sqlite:///{file}", file.with_name("copy.db"), SystemClock())
    assert modes(tmp_path) <= {"0o700", "0o600"}
    assert not open_to_all(file)


def test_a_file_that_is_there_keeps_its_mode_and_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "answerback.db"
    file.touch(mode=0o644)
    upgrade(f"sqlite:///{file}")
    assert open_to_all(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_what_people_hand_in_is_kept_for_us_alone(tmp_path: Path) -> None:
    _write(tmp_path / "files" / "ab" / "abc", b"a picture")
    assert modes(tmp_path) == {"0o700", "0o600"}
