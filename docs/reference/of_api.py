"""The page of `bot.api`, from its docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from form import MADE, page, table

import bot.api

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "An agent": ("Agent", "wait"),
    "What it is asked": ("Turn", "TurnMessage", "Quoted", "TurnChat", "HistoryMessage"),
    "What it answers": ("Reply", "Button", "FileOut"),
    "Files that people send": ("AttachmentFile", "Attachment", "AttachmentUnavailable"),
    "Work that is not done twice": (
        "safe_to_repeat", "Cost", "StepInterrupted", "StepResultInvalid",
    ),
    "Another end than an answer": ("Retry", "GiveUp"),
    "Reminders": ("Reminders", "Reminder", "ReminderRefused"),
    "Names": ("ChannelName", "ChatKind", "InboundKind"),
}  # fmt: skip
"""The order in which a reader meets the names of bot.api; a name that is not here comes last."""


def api() -> str:
    """The page of everything that the author of an agent imports."""
    listed = {name for names in SUBJECTS.values() for name in names}
    further = tuple(name for name in bot.api.__all__ if name not in listed)
    pieces = [
        "# Reference of `bot.api`",
        MADE,
        "All that an agent imports is in `bot/api.py`. [Agents](agents.md) shows how it is used.",
    ]
    for subject, names in {**SUBJECTS, "Further": further}.items():
        there = [name for name in names if name in bot.api.__all__]
        if there:
            pieces += [f"## {subject}", *(piece for name in there for piece in _entry(name))]
    return page(*pieces)


def _entry(name: str) -> Iterator[str]:
    thing = getattr(bot.api, name)
    yield f"### {name}"
    if not inspect.isclass(thing) or thing is bot.api.Agent:
        yield _code(_called(thing) if inspect.isclass(thing) else f"{name}{_signature(thing)}")
        yield _said(thing)
        return
    if issubclass(thing, Enum):
        yield _said(thing)
        yield ", ".join(f"`{member.value}`" for member in thing)
        return
    made = _made(thing)
    if made:
        yield _code(f"{name}{made}")
    yield _said(thing)
    if rows := list(_fields(thing)):
        yield table(("", "", ""), rows)
    for method in _methods(thing):
        yield f"#### {name}.{method.__name__}"
        yield _code(_called(method))
        yield _said(method)


def _called(function: Any) -> str:
    """A method as its caller writes it, and an agent as its author does."""
    if function is bot.api.Agent:
        return f"async def answer{_signature(function.__call__)}: ..."
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{awaited}{function.__name__}{_signature(function)}"


def _made(thing: type) -> str:
    """The call by which an author makes one; empty for what is only handed out."""
    if not issubclass(thing, _MADE_BY_AUTHORS):
        return ""
    return _signature(thing.__init__).partition(" -> ")[0]


_MADE_BY_AUTHORS = (
    bot.api.Reply,
    bot.api.Button,
    bot.api.FileOut,
    bot.api.Cost,
    bot.api.Retry,
    bot.api.GiveUp,
)


def _signature(function: Any) -> str:
    """The parameters and the result as they are written, without `self`."""
    signature = inspect.signature(function)
    given = [p for p in signature.parameters.values() if p.name != "self"]
    written = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=given)))
    return written.replace("'", '"')


def _fields(thing: type) -> Iterator[tuple[str, str, str]]:
    """A row for each field or property of a class, as it stands there."""
    for node, after in _members(thing):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                yield f"`{name}`", f"`{ast.unparse(kind)}`", _flat(after)
            case ast.FunctionDef(name=name, returns=kind) if node.decorator_list and kind:
                said = ast.get_docstring(node) or ""
                yield f"`{name}`", f"`{ast.unparse(kind)}`", _flat(said)
            case _:
                pass


def _flat(said: str) -> str:
    return " ".join(said.split())


def _members(thing: type) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a class, each with the string that stands behind it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    assert isinstance(tree, ast.ClassDef)
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign | ast.FunctionDef) and not _name(node).startswith("_"):
            match after:
                case ast.Expr(value=ast.Constant(value=str(said))):
                    yield node, said
                case _:
                    yield node, ""


def _name(node: ast.AnnAssign | ast.FunctionDef) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.target)


def _methods(thing: type) -> Iterator[Any]:
    for name, member in vars(thing).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            yield member


def _said(thing: object) -> str:
    """A docstring, whose form is Markdown. Raises ValueError where there is none."""
    own = getattr(thing, "__doc__", None)
    if not own or own.startswith(f"{getattr(thing, '__name__', '')}("):
        raise ValueError(f"{thing} has no docstring")
    return inspect.cleandoc(own)


def _code(line: str) -> str:
    line = re.sub(r"\b(?:bot\.domain\.\w+|collections\.abc|typing)\.", "", line)
    if len(line) > 88 and "(" in line:
        head, _, rest = line.partition("(")
        inside, _, tail = rest.rpartition(")")
        parameters = re.split(r", (?=[\w*]+(?::|,|$| =)|\*)", inside)
        line = "\n".join([f"{head}(", *(f"    {one}," for one in parameters), f"){tail}"])
        line = line.replace("    *,,", "    *,")
    return f"```text\n{line}\n```"
