"""`runs show --svg`: a run drawn into a file or to standard output."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bot.cli.session import CommandFailed
from storage.schema.migrate import upgrade
from tests.cli.screens import at_the_moment, commands, picture, seed


def show(*words: str) -> None:
    commands().main(["runs", "show", *words], standalone_mode=False)


def test_the_picture_goes_into_a_file_as_it_goes_to_standard_output(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path}/answerback.db")
    with at_the_moment(tmp_path):
        seed(tmp_path)
        show("3", "--svg", "run.svg")
        drawn = (tmp_path / "run.svg").read_text(encoding="utf-8")
        assert drawn == picture("3")
        ET.fromstring(drawn)
        assert "5550100022" not in drawn
        with pytest.raises(CommandFailed, match="was not written"):
            show("3", "--svg", "no-such-folder/run.svg")


def test_a_file_without_a_picture_and_two_forms_at_once_are_refused() -> None:
    with pytest.raises(CommandFailed, match="give --svg"):
        show("3", "run.svg")
    with pytest.raises(CommandFailed, match="not both"):
        show("3", "--svg", "--json")
