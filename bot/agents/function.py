"""Loads an agent that is a function of the operator's: AGENT=package.module:function."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from bot.domain.errors import ConfigurationError
from bot.domain.reply import Reply
from bot.domain.turn import Turn
from bot.threads import Threads

OURS = frozenset({"bot", "channels", "storage"})
"""Top-level names that are Answerback's own, so that nobody else's module can have them."""


class FunctionAgent:
    """Answers with a function: `async def` on the loop, plain `def` in a thread."""

    def __init__(self, name: str, function: Callable[[Turn], object], threads: Threads) -> None:
        self.name = name
        self._function = function
        self._threads = threads
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            type(function).__call__
        )

    async def __call__(self, turn: Turn) -> Reply | str | None:
        """Raises what the function raises, and TypeError when it returned something else."""
        try:
            result = await self._call(turn)
        except SystemExit as error:
            raise RuntimeError(f"{self.name} called sys.exit()") from error
        if result is None or isinstance(result, Reply | str):
            return result
        hint = ""
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            hint = "; it must return the whole text rather than yield it"
        kind = type(result).__name__
        raise TypeError(f"{self.name} returned {kind}, not a Reply, a str or None{hint}")

    async def _call(self, turn: Turn) -> object:
        if self._is_async:
            result = self._function(turn)
        else:
            result = await self._threads.run(lambda: self._function(turn))
        return await result if inspect.isawaitable(result) else result


def load(spec: str, threads: Threads) -> FunctionAgent:
    """The agent that `package.module:function` names.

    The module is looked for on PYTHONPATH, among the installed packages and in the current
    folder; the function may be an attribute path, any callable object, or a class, which is
    made without arguments. Raises ConfigurationError that says what is wrong with it.
    """
    module_name, colon, path = spec.partition(":")
    if not (colon and module_name and path):
        raise _fault(spec, "write package.module:function, for example AGENT=my_bot:reply")
    if "/" in module_name or module_name.endswith(".py"):
        module = Path(module_name).stem
        raise _fault(spec, f"name the module and not its file, for example {module}:{path}")
    target = _attribute(spec, _module(spec, module_name), path)
    if inspect.isclass(target):
        target = _instance(spec, target)
    if not callable(target):
        raise _fault(spec, f"{path} is a {type(target).__name__}, not a function")
    _check_signature(spec, target)
    return FunctionAgent(spec, target, threads)


def _module(spec: str, name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise _fault(spec, f"{name!r} is not a module name")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise _fault(spec, _not_found(missing, here)) from error
        raise _fault(spec, f"{name} imports {missing!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        raise _fault(spec, f"importing {name} failed: {_reason(error)}") from error


def _not_found(missing: str, here: str) -> str:
    where = f"in the current folder ({here}), on PYTHONPATH or among the installed packages"
    return f"there is no module {missing!r} {where}"


def _reason(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {error}"
    is_ours = isinstance(error, SyntaxError) or "importlib" in frame.filename
    return said if is_ours else f"{said} ({frame.filename}, line {frame.lineno})"


def _attribute(spec: str, module: ModuleType, path: str) -> object:
    found: object = module
    for name in path.split("."):
        if not hasattr(found, name):
            raise _fault(spec, _missing(module, found, name))
        found = getattr(found, name)
    return found


def _missing(module: ModuleType, holder: object, name: str) -> str:
    public = [n for n in dir(holder) if not n.startswith("_")]
    there = [n for n in public if callable(getattr(holder, n, None))]
    near = difflib.get_close_matches(name, there, 1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(there[:10]) or 'none'}"
    if module.__name__.partition(".")[0] in OURS:
        hint = "that name is Answerback's own: rename your module"
    return f"{module.__file__ or module.__name__} has no function {name!r}; {hint}"


def _instance(spec: str, target: type) -> object:
    try:
        return target()
    except Exception as error:
        what = f"making a {target.__name__} without arguments failed: {_reason(error)}"
        raise _fault(spec, what) from error


def _check_signature(spec: str, target: Callable[..., object]) -> None:
    call = type(target).__call__
    if inspect.isasyncgenfunction(target) or inspect.isasyncgenfunction(call):
        raise _fault(spec, "it yields; return the whole text instead")
    try:
        signature = inspect.signature(target)
    except ValueError:
        return  # Some callables of C code have none; the first turn will show.
    try:
        signature.bind(None)
    except TypeError as error:
        what = f"it must take one argument, the turn, but its signature is {signature}"
        raise _fault(spec, what) from error


def _fault(spec: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"AGENT={spec}: {what}")
