"""Tools: functions with type hints and a docstring that a model may call; each call is a step.

TOOLS=package.module loads the public functions that the module defines, or those that its
`__all__` names. We fill in a parameter called `turn` or `idempotency_key`; the model never sees it.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pydantic_ai
import pydantic_core
from pydantic_ai import RunContext

from bot.agents.assistant.model import StoredModel
from bot.agents.loading import builders_code, fault, import_module
from bot.domain.errors import (
    AnswerbackError,
    AttachmentUnavailable,
    ReminderRefused,
    StepInterrupted,
    StepResultInvalid,
)
from bot.domain.turn import is_safe_to_repeat
from bot.observability.faults import Fault
from bot.observability.quoting import Spoken, spoken_in

Function = Callable[..., Any]

INTERRUPTED = (
    "This call was cut off by a restart. It may have happened; it was not done again. Check "
    "before you call it once more, or tell the person that it is uncertain."
)
MAX_RESULT = 30_000
"""The most characters of a tool's result that the model is shown."""
_LONGEST_ID = 100
_FOR_THE_MODEL = (AttachmentUnavailable, ReminderRefused)
_OURS = ("turn", "idempotency_key")
_NO_NAMES = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_log = logging.getLogger("answerback.tools")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function and its description for the model. `parameters` are those that the model fills in:
    keyword-only, with resolved types. `given` are those that we fill in. `safe`: a call may be
    repeated after it was interrupted."""

    name: str
    description: str
    function: Function
    parameters: tuple[inspect.Parameter, ...]
    given: frozenset[str]
    safe: bool

    def as_pydantic(self) -> pydantic_ai.Tool[StoredModel]:
        """The tool for an agent: a function whose signature has the parameters that the model fills
        in. Raises ConfigurationError for a type that can't be described to a model."""

        async def call(ctx: RunContext[StoredModel], **arguments: Any) -> Any:
            return await self._call(ctx.deps, ctx.tool_call_id or "", arguments)

        context = inspect.Parameter(
            "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunContext[StoredModel]
        )
        parameters = (context, *self.parameters)
        call.__name__ = call.__qualname__ = self.name
        call.__doc__ = self.description
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with builders_code("TOOLS", f"describing {self.name} to a model"):
            return pydantic_ai.Tool(call, takes_ctx=True)

    async def _call(self, model: StoredModel, call_id: str, arguments: dict[str, Any]) -> Any:
        """Make one call. Its step's name has the number of the response that asked for it and the
        call's id in that response, so that it is the same in every attempt."""
        if len(call_id) > _LONGEST_ID:
            call_id = hashlib.sha256(call_id.encode()).hexdigest()
        place = f"{model.number}:{self.name}:{call_id}"
        key = f"{model.turn.idempotency_key('tool')}:{place}"
        ours = {"turn": model.turn, "idempotency_key": key}
        filled = arguments | {name: ours[name] for name in self.given}
        spoken = spoken_in(model.turn.chat, model.turn.messages, model.turn.history)
        spoken.hear(str(arguments))
        try:
            return await model.turn.step(
                f"tool:{place}", self._guarded(filled, spoken), safe_to_repeat=self.safe
            )
        except StepInterrupted:
            return INTERRUPTED
        except StepResultInvalid as error:
            _log.error("tool %s: %s", self.name, error)
            return "The tool's result can't be used."

    def _guarded(self, filled: dict[str, Any], spoken: Spoken) -> Any:
        """The call, async if the function is: a plain function blocks. A failure becomes a result
        and is stored like one; so does an exit, which in a task would end the process."""
        function = self.function

        async def awaited() -> Any:
            try:
                return _shown(await function(**filled))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool's edge
                return self._failed(error, spoken)

        def called() -> Any:
            try:
                return _shown(function(**filled))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool's edge
                return self._failed(error, spoken)

        return awaited if inspect.iscoroutinefunction(function) else called

    def _failed(self, error: BaseException, spoken: Spoken) -> str:
        """The failure in words for the model. Raises the other errors of Answerback, which concern
        the turn and not the tool. Of any other exception only the type is told: its message may
        quote anything."""
        if isinstance(error, _FOR_THE_MODEL):
            return f"It was not done: {error}"
        if isinstance(error, AnswerbackError):
            raise error
        _log.warning("tool %s failed", self.name, extra={"fault": Fault(error, spoken)})
        return f"The tool failed ({type(error).__name__}). What it does may have happened or not."


def load_tools(spec: str) -> list[Tool]:
    """The tools of the modules that `spec` names, separated by commas. Raises
    ConfigurationError."""
    setting = f"TOOLS={spec}"
    found: list[Tool] = []
    for name in filter(None, (part.strip() for part in spec.split(","))):
        module = import_module(setting, name)
        with builders_code(setting, f"loading the tools of {name}"):
            tools = [make_tool(function, setting) for function in _functions(setting, module)]
        if not tools:
            raise fault(setting, f"{name} defines no public function")
        found += tools
    return found


def unique(tools: Sequence[Tool]) -> Sequence[Tool]:
    """The same tools. Raises ConfigurationError if two of them have the same name."""
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise fault("TOOLS", f"two tools are called {name!r} (some are built in); rename one")
    return tools


def make_tool(function: Function, setting: str = "TOOLS") -> Tool:
    """A function as a tool. Raises ConfigurationError that says what the function lacks."""
    name = function.__name__
    described = inspect.getdoc(function) or ""
    if not described.strip():
        raise fault(setting, f"{name} has no docstring: it is what tells the model of the tool")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise fault(setting, f"the type hints of {name}: {error}") from error
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


def _shown(value: Any) -> Any:
    """A result as JSON, cut if it is so long that it would crowd out the conversation."""
    plain = pydantic_core.to_jsonable_python(value)
    text = plain if isinstance(plain, str) else pydantic_core.to_json(plain).decode()
    return plain if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}\n[cut here]"
