"""Lazy imports: nothing is loaded before it is used, and everything is there when it is."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import bot
from bot.lazy_imports import Lazy, found, lazily, load
from storage import chats, inbox, journal, outbox, runs

MODULE = """
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    import lazy_things
    from lazy_things import Thing, deeper
    from lazy_things import nothing_of_that_name
"""

FACE = """
from bot.lazy_imports import handed_on

with handed_on(__name__):
    from a_face.moves import DONE, move
    from a_face.rows import Row
"""


@pytest.fixture
def face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package that hands on the names of its two modules."""
    (tmp_path / "a_face").mkdir()
    (tmp_path / "a_face/__init__.py").write_text(FACE)
    (tmp_path / "a_face/moves.py").write_text("DONE = 7\n\ndef move(): return DONE\n")
    (tmp_path / "a_face/rows.py").write_text("class Row: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("a_face", "a_face.moves", "a_face.rows"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("a_face")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A module that imports a package lazily, with its class `Thing` and its module `deeper`."""
    (tmp_path / "lazy_things").mkdir()
    (tmp_path / "lazy_things/__init__.py").write_text("class Thing(str):\n    kind = 'a thing'\n")
    (tmp_path / "lazy_things/deeper.py").write_text("depth = 7\n\ndef get(): return depth\n")
    (tmp_path / "lazy_importer.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_importer", "lazy_things", "lazy_things.deeper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("lazy_importer")


def test_a_lazy_import_loads_its_module_at_the_first_use(module: object) -> None:
    assert "lazy_things" not in sys.modules
    assert module.Thing("x") == "x"  # type: ignore[attr-defined]
    assert "lazy_things" in sys.modules
    assert "lazy_things.deeper" not in sys.modules
    assert module.deeper.depth == 7  # type: ignore[attr-defined]
    assert module.deeper.get() == 7  # type: ignore[attr-defined]
    assert module.lazy_things.Thing.kind == "a thing"  # type: ignore[attr-defined]


def test_a_lazy_import_of_what_is_not_there_fails_where_it_is_used(module: object) -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing_of_that_name"):
        module.nothing_of_that_name()  # type: ignore[attr-defined]


def test_imports_after_the_block_and_in_other_modules_are_done_at_once(module: object) -> None:
    from colorsys import rgb_to_hsv  # noqa: PLC0415 - after the block of `module`

    assert not isinstance(rgb_to_hsv, Lazy)


def test_a_face_hands_on_the_things_themselves_and_loads_only_what_is_taken(
    face: ModuleType,
) -> None:
    assert isinstance(face.Row, type)
    assert "a_face.moves" not in sys.modules
    assert (face.DONE, face.move()) == (7, 7)
    assert vars(face)["DONE"] == 7, "it is found by the next one without asking"


def test_a_face_knows_no_other_names(face: ModuleType) -> None:
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = face.nothing_of_that_name


def test_a_face_can_be_loaded_whole(face: ModuleType) -> None:
    load(face)
    assert {"DONE", "move", "Row"} <= set(vars(face))
    assert "a_face.moves" in sys.modules


def test_what_faces_of_the_program_hand_on_is_there() -> None:
    load(chats, inbox, journal, outbox, runs)
    assert isinstance(runs.RELEASED_AT_ONCE, int)


def test_a_thing_is_made_once_and_when_an_attribute_of_it_is_read() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("one")
        return "text"

    thing = lazily(make)
    assert made == []
    assert (thing.upper(), thing.lower()) == ("TEXT", "text")
    assert made == ["one"]


def test_everything_that_the_program_imports_lazily_is_there() -> None:
    seen = 0
    for module in pkgutil.walk_packages(bot.__path__, "bot."):
        if module.name.endswith("__main__") or module.name == "bot.observability.otel":
            continue
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, Lazy):
                assert found(value) is not None, f"{module.name} {name}"
                seen += 1
    assert seen > 50
