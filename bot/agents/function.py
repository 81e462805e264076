"""An agent that is the operator's own function: AGENT=package.module:function."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bot.agents.loading import OURS, builders_code, fault, import_module
from bot.domain.errors import AgentFailed
from bot.domain.reply import Button, FileOut, Reply
from bot.domain.turn import Turn
from bot.threads import Threads

PATIENCE = 1.0
"""Seconds that a cancelled coroutine gets to clean up before it is abandoned."""

_ALLOWED = "An agent returns a str, a Reply, or None to say nothing"
_PARTS: Mapping[str, type] = {"buttons": Button, "files": FileOut}

_log = logging.getLogger("answerback.agents")
_builders = logging.getLogger("answerback.builders")


class FunctionAgent:
    """Answers by calling a function: `async def` on the loop, plain `def` in a thread. The function
    can neither end the process by an exit nor hold up the turn after a cancellation."""

    def __init__(self, name: str, function: Callable[[Turn], object], threads: Threads) -> None:
        self.name = name
        self._function = function
        self._threads = threads
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            type(function).__call__
        )
        # A loop holds only weak references to its tasks: without an owner, one could be collected
        # as garbage in the middle of its work.
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._has_been_silent = False

    async def __call__(self, turn: Turn) -> Reply | str | None:
        """Call the function. Raises what the function raises, and AgentFailed if it returns
        something that can't be an answer."""
        result = await self._isolated(self._call(turn))
        if result is None:
            self._say_that_it_is_silent(turn)
            return None
        if wrong := _wrong(result):
            raise AgentFailed(f"{self.name} returned {wrong}. {_ALLOWED}")
        assert isinstance(result, Reply | str)
        return result

    def _say_that_it_is_silent(self, turn: Turn) -> None:
        """Tell the builder, once: a forgotten `return` looks like an agent with nothing to say."""
        if not self._has_been_silent:
            self._has_been_silent = True
            _builders.info(
                "run %s: %s returned None, so nothing is said; return a str to answer, or "
                "Reply(silent=True) to be silent on purpose",
                turn.run_id,
                self.name,
            )

    async def _call(self, turn: Turn) -> object:
        if self.is_async:
            result = self._function(turn)
        else:
            result = await self._threads.run(lambda: self._function(turn))
        return await result if inspect.isawaitable(result) else result

    async def _isolated(self, work: Awaitable[object]) -> object:
        """The result of `work`, which runs in a task of its own.

        Work that ignores its cancellation is abandoned: it runs on until it ends, and its result is
        dropped. An exit, an interrupt, or a cancellation that nobody asked for would end this
        process or this task, so each becomes an error.
        """

        async def without_exits() -> object:
            try:
                return await work
            except (Exception, asyncio.CancelledError):
                raise
            except BaseException as error:
                raise RuntimeError(f"{self.name} ended with {type(error).__name__}") from error

        task = asyncio.create_task(without_exits())
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            # Retrieve its error, or asyncio reports an exception that was never retrieved.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            await asyncio.wait({task}, timeout=PATIENCE)
            if not task.done():
                self._abandoned.add(task)
                task.add_done_callback(self._abandoned.discard)
                _log.error(
                    "%s ignores its cancellation (timeout or stop); it is left alone", self.name
                )
            raise
        if task.cancelled():
            raise AgentFailed(f"{self.name} cancelled itself")
        return task.result()


def _wrong(result: object) -> str:
    """The reason why a result can't be an answer, in words; empty if it can."""
    if isinstance(result, str):
        return ""
    if isinstance(result, Reply):
        return _wrong_reply(result)
    kind = type(result).__name__
    if inspect.iscoroutine(result):
        result.close()  # or Python warns a second time, that it was never awaited
        return f"a coroutine: an `await` is missing in front of {result.__qualname__}(...)"
    if inspect.isawaitable(result):
        return f"{kind}, which must be awaited: an `await` is missing"
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return f"a {kind}: it yields, and must return the whole text"
    if inspect.isclass(result) or inspect.isroutine(result):
        return f"{getattr(result, '__name__', kind)} itself: it must be called"
    return kind


def _wrong_reply(reply: Reply) -> str:
    if not isinstance(reply.text, str):
        return f"a Reply whose text is {type(reply.text).__name__}, not a str"
    for name, kind in _PARTS.items():
        parts = getattr(reply, name)
        if not isinstance(parts, list | tuple):
            return f"a Reply whose {name} are {type(parts).__name__}, not a tuple"
        odd = [type(part).__name__ for part in parts if not isinstance(part, kind)]
        if odd:
            return f"a Reply with {odd[0]} among its {name}, which takes only {kind.__name__}"
    return ""


def load(spec: str, threads: Threads) -> FunctionAgent:
    """The agent that `package.module:function` names.

    The module is looked for on PYTHONPATH, among the installed packages and in the current
    folder. The function may be an attribute path, any callable object, or a class, which is
    instantiated without arguments. Raises ConfigurationError that says what is wrong with it.
    """
    setting = f"AGENT={spec}"
    module_name, colon, path = spec.partition(":")
    if not (colon and module_name and path):
        raise fault(setting, "write package.module:function, for example AGENT=my_bot:reply")
    if "/" in module_name or module_name.endswith(".py"):
        stem = Path(module_name).stem
        raise fault(setting, f"name the module and not its file, for example {stem}:{path}")
    module = import_module(setting, module_name)
    with builders_code(setting, f"loading {path}"):
        target = _looked_up(setting, module_name, module, path)
        if inspect.isclass(target):
            kind: type = target
            with builders_code(setting, f"making a {kind.__name__} without arguments"):
                target = kind()
        if not callable(target):
            raise fault(setting, f"{path} is a {type(target).__name__}, not a function")
        _check_signature(setting, target)
        return FunctionAgent(spec, target, threads)


def _looked_up(setting: str, module_name: str, module: object, path: str) -> object:
    """The object at this attribute path of the module. Raises ConfigurationError if there is none,
    and whatever a property or a `__getattr__` of the builder's raises."""
    target = module
    for name in path.split("."):
        try:
            target = getattr(target, name)
        except AttributeError as error:
            if error.name not in (None, name):
                raise  # another attribute is missing, inside the builder's property or __getattr__
            where = getattr(module, "__file__", None) or module_name
            hint = _hint(module_name, target, name)
            raise fault(setting, f"{where} has no function {name!r}; {hint}") from error
    return target


def _hint(module_name: str, holder: object, name: str) -> str:
    if module_name.partition(".")[0] in OURS:
        return "that name is Answerback's own: rename your module"
    there = [n for n in dir(holder) if not n.startswith("_") and _is_callable(holder, n)]
    near = difflib.get_close_matches(name, there, 1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(there[:10]) or 'none'}"


def _is_callable(holder: object, name: str) -> bool:
    """Tell whether the name can be suggested: it is a callable, and looking it up does not fail."""
    with suppress(Exception, SystemExit):
        return callable(getattr(holder, name, None))
    return False


def _check_signature(setting: str, target: Callable[..., object]) -> None:
    call = type(target).__call__
    yields = (inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    if any(does(function) for does in yields for function in (target, call)):
        raise fault(setting, "it yields; return the whole text instead")
    try:
        signature = inspect.signature(target)
    except ValueError:
        return  # some callables written in C have none; the first turn will show
    try:
        signature.bind(None)
    except TypeError as error:
        what = f"it must take one argument, the turn, but its signature is {signature}"
        raise fault(setting, what) from error
