"""The pictures that are drawn by scripts: current, small, and without a script of their own."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bot.cli.talk.chat import hints
from bot.domain.ending import Ending
from bot.domain.run import RunState
from bot.wiring import read_settings
from storage import outbox

ROOT = Path(__file__).parents[2]
LIFE = runpy.run_path(str(ROOT / "docs" / "run_life.py"))
KILLED = runpy.run_path(str(ROOT / "docs" / "killed_twice.py"))
DEMO = ROOT / "docs" / "demo.svg"
_TEXT = "{http://www.w3.org/2000/svg}text"


def words(picture: str) -> list[str]:
    """The texts of a picture, in their order."""
    return ["".join(text.itertext()) for text in ET.fromstring(picture).iter(_TEXT)]


def test_the_life_of_a_run_is_drawn_from_its_moves_and_endings_as_they_are() -> None:
    shown = (ROOT / "docs" / "run-life.svg").read_text(encoding="utf-8")
    assert shown == LIFE["drawn"](), "a move or an ending changed: `make picture` draws it anew"
    assert {*RunState, *Ending} <= set(words(shown))


def test_the_run_that_was_killed_twice_is_drawn_as_runs_are_drawn() -> None:
    shown = (ROOT / "docs" / "killed-twice.svg").read_text(encoding="utf-8")
    assert shown == KILLED["drawn"](), "pictures of runs changed: `make picture` draws it anew"


def test_a_diagram_is_read_with_all_its_moves() -> None:
    rows = LIFE["diagram"](outbox.__doc__)
    assert all(row.left and row.entered and row.moves for row in rows)
    read = LIFE["diagram"](
        "Intro.\n\n    a | b  -> c   one, two,\n" + " " * 24 + "three\n\nMore.\n"
    )
    assert [(row.left, row.entered, row.moves) for row in read] == [
        (("a", "b"), ("c",), ("one", "two", "three"))
    ]


def test_the_recording_shows_the_chat_as_it_is() -> None:
    shown = words(DEMO.read_text(encoding="utf-8"))
    settings = read_settings(_env_file=None, agent="demo")
    for line in hints(settings, pid=1, called="answerback"):
        found = [text for text in shown if re.sub(r"kill -9 \d+", "kill -9 1", text) == line]
        assert len(found) == 2, f"{line}: `make recording` records it anew"


@pytest.mark.parametrize("name", ["demo.svg", "run-life.svg", "layers.svg", "killed-twice.svg"])
def test_a_picture_is_small_and_runs_nothing(name: str) -> None:
    picture = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert len(picture.encode()) < 60_000
    assert not re.search(r"<script|javascript:|\bon\w+=|href=|@import|url\((?!#)", picture)


def test_what_the_recording_shows_is_one_payment_and_one_answer() -> None:
    picture = DEMO.read_text(encoding="utf-8")
    assert len(set(re.findall(r"R-[0-9A-F]{6}", picture))) == 1
    assert len({text for text in words(picture) if text.startswith("bot> ")}) == 1
    (killed,) = {text for text in words(picture) if text.startswith("$ kill")}
    assert f"in another terminal: {killed.removeprefix('$ ')}<" in picture
