"""A model for tests: it gives scripted answers and keeps the requests that it gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

Answer = ModelResponse | Exception


class ScriptedModel:
    """Gives its answers one after the other, and the last one for ever; an answer that is an
    exception is raised.

    `asked` are the conversations that it was sent, one for each call. A call that was cut off by a
    crash is made again and takes the next answer. Like a provider, it refuses a conversation that
    has a call without its result, or a block without a visible character. `before` is awaited
    within each call.
    """

    def __init__(self, *answers: Answer | str, before: Callable[[], Awaitable[None]] | None = None):
        self._answers = [say(a) if isinstance(a, str) else a for a in answers]
        self._before = before
        self.asked: list[list[ModelMessage]] = []
        self.model = FunctionModel(self._answer, model_name="scripted")

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return len(self.asked)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        check_whole(messages)
        self.asked.append(list(messages))
        if self._before is not None:
            await self._before()
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def heard(self, call: int = -1) -> list[str]:
        """The texts of one conversation, the person's and the model's, oldest first."""
        return [text for message in self.asked[call] for text in _texts(message)]


def _texts(message: ModelMessage) -> list[str]:
    found: list[str] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            found += [item for item in content if isinstance(item, str)]
        elif isinstance(part, TextPart):
            found.append(part.content)
    return found


def check_whole(messages: Sequence[ModelMessage]) -> None:
    """Fail for a conversation that providers refuse with a 400."""
    open_calls: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                open_calls.add(part.tool_call_id)
            elif isinstance(part, ToolReturnPart):
                open_calls.discard(part.tool_call_id)
        assert all(text.strip("\u200b\u200d\ufeff \n") for text in _texts(message)), "blank block"
    assert not open_calls, "a call without its result"
    assert isinstance(messages[0], ModelRequest)


def say(text: str) -> ModelResponse:
    """A response with a text."""
    return ModelResponse(parts=[TextPart(text)])


def call(tool: str, id_: str = "call-1", **arguments: Any) -> ModelResponse:
    """A response with one tool call."""
    return ModelResponse(parts=[ToolCallPart(tool, arguments, tool_call_id=id_)])


def calls(*parts: tuple[str, str, dict[str, Any]]) -> ModelResponse:
    """A response with several tool calls: (tool, id, arguments)."""
    return ModelResponse(parts=[ToolCallPart(t, a, tool_call_id=i) for t, i, a in parts])
