"""Tools as pydantic-ai takes them, each call a step of the turn."""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pydantic_ai
import pydantic_core
from pydantic_ai import RunContext

from bot.agents.assistant.model import StoredModel
from bot.agents.assistant.tools import Tool
from bot.domain.errors import (
    AnswerbackError,
    AttachmentUnavailable,
    ReminderRefused,
    StepInterrupted,
    StepResultInvalid,
)
from bot.domain.turn import Turn

INTERRUPTED = (
    "This call was cut off by a restart. It may have happened; it was not done again. Check "
    "before you call it once more, or tell the person that it is uncertain."
)
MAX_RESULT = 30_000
"""Characters of a tool's result that the model is shown."""
_LONGEST_ID = 100
_FOR_THE_MODEL = (AttachmentUnavailable, ReminderRefused)

_log = logging.getLogger("answerback.tools")


@dataclass(frozen=True, slots=True)
class Deps:
    """What a tool call knows of its turn."""

    turn: Turn
    model: StoredModel


def as_pydantic(tools: Sequence[Tool]) -> list[pydantic_ai.Tool[Deps]]:
    """The tools for an agent. A call's step is named by the response that asked for it and by
    the call's id there, so that it is the same in every attempt."""
    return [pydantic_ai.Tool(_Call(tool).as_function(), takes_ctx=True) for tool in tools]


@dataclass(frozen=True, slots=True)
class _Call:
    tool: Tool

    def as_function(self) -> Any:
        """A function whose signature shows what the model may fill in."""

        async def call(ctx: RunContext[Deps], **arguments: Any) -> Any:
            return await self._done(ctx.deps, ctx.tool_call_id or "", arguments)

        context = inspect.Parameter(
            "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunContext[Deps]
        )
        parameters = (context, *self.tool.parameters)
        call.__name__ = call.__qualname__ = self.tool.name
        call.__doc__ = self.tool.description
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    async def _done(self, deps: Deps, call_id: str, arguments: dict[str, Any]) -> Any:
        if len(call_id) > _LONGEST_ID:
            call_id = hashlib.sha256(call_id.encode()).hexdigest()
        place = f"{deps.model.number}:{self.tool.name}:{call_id}"
        key = f"{deps.turn.idempotency_key('tool')}:{place}"
        filled = self.tool.bound(deps.turn, key, arguments)
        try:
            return await deps.turn.step(
                f"tool:{place}", self._guarded(filled), safe_to_repeat=self.tool.safe
            )
        except StepInterrupted:
            return INTERRUPTED
        except StepResultInvalid as error:
            _log.error("tool %s: %s", self.tool.name, error)
            return "The tool's result can't be used."

    def _guarded(self, filled: dict[str, Any]) -> Any:
        """The call, in the form that the function has: a plain one blocks, a coroutine does
        not. Its failure is a result too, stored like one."""
        function = self.tool.function

        async def awaited() -> Any:
            try:
                return _shown(await function(**filled))
            except Exception as error:  # noqa: BLE001 - the tool's edge
                return self._failed(error)

        def called() -> Any:
            try:
                return _shown(function(**filled))
            except Exception as error:  # noqa: BLE001 - the tool's edge
                return self._failed(error)

        return awaited if inspect.iscoroutinefunction(function) else called

    def _failed(self, error: Exception) -> str:
        """What the model is told. Other errors' words may come from anywhere: only their kind
        is told. Ours mean the turn, not the tool, and pass."""
        if isinstance(error, _FOR_THE_MODEL):
            return f"It was not done: {error}"
        if isinstance(error, AnswerbackError):
            raise error
        _log.warning("tool %s failed: %s", self.tool.name, type(error).__name__)
        return f"The tool failed ({type(error).__name__}). What it does may have happened or not."


def _shown(value: Any) -> Any:
    """A result as JSON, cut where it would crowd out the conversation."""
    plain = pydantic_core.to_jsonable_python(value)
    text = plain if isinstance(plain, str) else pydantic_core.to_json(plain).decode()
    return plain if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}\n[cut here]"
