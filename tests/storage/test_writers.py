"""One folder a table: its writers, and the state diagrams, held against the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import storage
from storage import outbox, runs
from storage.schema.tables import metadata

STORAGE = Path(storage.__file__).parent
FOLDERS = {
    "accounts": "accounts",
    "chats": "chats",
    "claims": "claims",
    "early_statuses": "early_statuses",
    "ended_sessions": "ended_sessions",
    "files": "files",
    "hand_replies": "operators/hand_replies",
    "notes": "operators/notes",
    "presence": "operators/presence",
    "secrets": "secrets",
    "chat_addresses": "chats",
    "told": "chats",
    "data_requests": "chats",
    "edits": "inbox",
    "inbound": "inbox",
    "payloads": "inbox",
    "events": "audit_log",
    "holders": "holders",
    "outbox": "outbox",
    "receipts": "outbox",
    "reminders": "reminders",
    "followed": "journal",
    "journal": "journal",
    "shown": "journal",
    "retention": "retention",
    "runs": "runs",
    "steps": "steps",
}
"""Table -> the package or module under storage/ that has every writer of it."""

WRITING = {
    "insert",
    "update",
    "delete",
    "insert_or_skip",
    "InsertOrSkip",
    "MoveChat",
    "Blank",
    "BlankOld",
    "DropOld",
}
"""The names that make a statement that writes, ours and SQLAlchemy's."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(STORAGE.rglob("*.py")):
        place = path.relative_to(STORAGE)
        if place.parts[:2] != ("schema", "migrations"):
            yield place.as_posix(), ast.parse(path.read_text())


def _called(call: ast.Call) -> str:
    function = call.func
    return getattr(function, "attr", getattr(function, "id", ""))


def written_tables(tree: ast.Module) -> Iterator[str]:
    """The tables that the module's writing statements name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in WRITING:
            for argument in node.args:
                if isinstance(argument, ast.Name) and argument.id in FOLDERS:
                    yield argument.id


def test_every_table_has_its_folder() -> None:
    assert set(FOLDERS) == set(metadata.tables)


def test_a_table_is_written_in_its_own_folder_alone() -> None:
    strangers = {
        (place, table)
        for place, tree in modules()
        for table in written_tables(tree)
        if not Path(place).with_suffix("").is_relative_to(FOLDERS[table])
    }
    assert strangers == set()


def test_every_table_is_written_somewhere() -> None:
    assert {table for _, tree in modules() for table in written_tables(tree)} == set(FOLDERS)


PACKAGES = {"runs": runs, "outbox": outbox}


def named_moves(package: str) -> set[str]:
    """The functions that the package's diagram names: what stands behind the last wide gap."""
    doc = PACKAGES[package].__doc__
    assert doc
    diagram = re.findall(r"^ {4}.*? {2,}((?:\w+(?:, )?)+),?$", doc, re.MULTILINE)
    return {name for line in diagram for name in re.findall(r"\w+", line)}


def moving_functions(package: str) -> set[str]:
    """The package's public functions that run a statement with a new state, directly or through
    constants and private functions. `move_each` is `move` for a list."""
    defined = dict(_definitions(package))
    moving = {name for name, node in defined.items() if any(map(_sets_state, ast.walk(node)))}
    before: set[str] = set()
    while moving != before:
        before = set(moving)
        moving |= {name for name, node in defined.items() if _names(node) & before}
    made = {n for n in moving if isinstance(defined[n], ast.FunctionDef) and n[0] != "_"}
    return {n.removesuffix("_each") for n in made}


def _definitions(package: str) -> Iterator[tuple[str, ast.stmt]]:
    """The functions and constants of the package, by name."""
    for place, tree in modules():
        for node in tree.body if place.startswith(f"{package}/") else ():
            match node:
                case ast.FunctionDef(name=name):
                    yield name, node
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    yield name, node
                case _:
                    pass


def _names(node: ast.AST) -> set[str]:
    """The names that it refers to; a parameter is no reference to a function of its name."""
    own = {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} - own


def _sets_state(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg="state"):
            return True
        case ast.Dict(keys=keys):
            return any(isinstance(key, ast.Constant) and key.value == "state" for key in keys)
        case ast.Subscript(slice=ast.Constant(value="state"), ctx=ast.Store()):
            return True
        case _:
            return False


@pytest.mark.parametrize("package", PACKAGES)
def test_the_state_diagram_names_every_move_and_nothing_else(package: str) -> None:
    assert named_moves(package) == moving_functions(package)
    assert all(callable(getattr(PACKAGES[package], name)) for name in named_moves(package))
