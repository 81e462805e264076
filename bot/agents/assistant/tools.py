"""Tools: functions with type hints and a docstring that a model may call.

TOOLS=package.module loads the public functions that the module defines, or what its
`__all__` names. A parameter called `turn` or `idempotency_key` is filled in by us and never
shown to the model.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bot.agents.loading import fault, import_module
from bot.domain.turn import Turn, is_safe_to_repeat

Function = Callable[..., Any]
_OURS = ("turn", "idempotency_key")
_NO_NAMES = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function and what the model is told of it. `parameters` are keyword-only, with types
    that are resolved; `given` are the parameters that we fill in."""

    name: str
    description: str
    function: Function
    parameters: tuple[inspect.Parameter, ...]
    given: frozenset[str]
    safe: bool

    def bound(self, turn: Turn, key: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """All keyword arguments of one call."""
        ours = {"turn": turn, "idempotency_key": key}
        return {**arguments, **{name: ours[name] for name in self.given}}


def load_tools(spec: str) -> list[Tool]:
    """The tools of these modules, separated by commas. Raises ConfigurationError."""
    setting = f"TOOLS={spec}"
    found: list[Tool] = []
    for name in filter(None, (part.strip() for part in spec.split(","))):
        module = import_module(setting, name)
        tools = [make_tool(function, setting) for function in _functions(setting, module)]
        if not tools:
            raise fault(setting, f"{name} defines no public function")
        found += tools
    return found


def unique(tools: Sequence[Tool]) -> Sequence[Tool]:
    """The same tools. Raises ConfigurationError when two have one name."""
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise fault("TOOLS", f"two tools are called {name!r} (some are built in); rename one")
    return tools


def make_tool(function: Function, setting: str = "TOOLS") -> Tool:
    """A function as a tool. Raises ConfigurationError that says what it lacks."""
    name = function.__name__
    described = inspect.getdoc(function) or ""
    if not described.strip():
        raise fault(setting, f"{name} has no docstring: it is what tells the model of the tool")
    hints = _hints(setting, function)
    shown: list[inspect.Parameter] = []
    given: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _NO_NAMES or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise fault(setting, f"{name}: parameter {parameter.name!r} has no name for a model")
        if parameter.name in _OURS:
            given.add(parameter.name)
        elif parameter.name not in hints:
            raise fault(setting, f"{name}: parameter {parameter.name!r} has no type hint")
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(parameter.replace(kind=kind, annotation=hints[parameter.name]))
    safe = is_safe_to_repeat(function)
    return Tool(name, described, function, tuple(shown), frozenset(given), safe)


def _hints(setting: str, function: Function) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise fault(setting, f"the type hints of {function.__name__}: {error}") from error


def _functions(setting: str, module: ModuleType) -> list[Function]:
    names = getattr(module, "__all__", None)
    if names is not None:
        missing = [name for name in names if not hasattr(module, name)]
        if missing:
            raise fault(setting, f"{module.__name__} has no {missing[0]!r}, which __all__ names")
        return [f for f in (getattr(module, name) for name in names) if inspect.isfunction(f)]
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
