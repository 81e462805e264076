"""A model whose every response is a step: stored before anything acts on it.

Asked again after a crash, the same request returns the stored response and costs nothing; so
the whole conversation of a turn is played again up to the point where it was cut off, and
only what is missing is done. A blank response is asked for once more and then replaced, so
that none is ever acted on, shown or sent back to a provider, which would refuse it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelRequestRejectedError,
    OutputTokenLimitExceeded,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from bot.agents.assistant.errors import ModelFailed, spell
from bot.agents.assistant.files import Files
from bot.agents.assistant.prompt import is_blank
from bot.domain.turn import AttachmentFile, Cost, Turn

_NOT_THE_FILES = (
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
)
_REFUSES_FILES = (ModelRequestRejectedError, UserError, NotImplementedError, AssertionError)
"""What comes of a file that a model does not take: from its server, or from its adapter."""


class StoredModel(WrapperModel):
    """`model` for one attempt on one turn. `number` is that of the response acted on now."""

    def __init__(
        self, model: Model, turn: Turn, files: Mapping[str, AttachmentFile], empty: str
    ) -> None:
        super().__init__(model)
        self.number = 0
        self._turn = turn
        self._files = Files(files, model.profile)
        self._empty = empty

    def rewind(self) -> None:
        """The conversation is played again from its beginning."""
        self.number = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self.number += 1

        async def call() -> Any:
            response = await _understood(
                self._ask(
                    lambda filled: self.wrapped.request(
                        filled, model_settings, model_request_parameters
                    ),
                    messages,
                )
            )
            return ModelMessagesTypeAdapter.dump_python([_unique_calls(response)], mode="json")

        for key in (f"model:{self.number}", f"model:{self.number}:again"):
            stored = await self._turn.step(key, call, safe_to_repeat=True, cost=_cost)
            (response,) = ModelMessagesTypeAdapter.validate_json(json.dumps(stored))
            if isinstance(response, ModelResponse) and not _says_nothing(response):
                return response
        return ModelResponse(parts=[TextPart(self._empty)], model_name=self.model_name)

    async def _ask(
        self,
        request: Callable[[list[ModelMessage]], Awaitable[ModelResponse]],
        messages: list[ModelMessage],
    ) -> ModelResponse:
        """Call the provider; once more without files when it may be they that it refuses."""
        try:
            return await request(await self._files.into(messages))
        except _NOT_THE_FILES:
            raise
        except _REFUSES_FILES:
            if not self._files.refused():
                raise
        return await request(await self._files.into(messages))


async def _understood(asked: Awaitable[ModelResponse]) -> ModelResponse:
    """The response. One that can't be read is a failure of this attempt: the next may be
    whole. Raises ModelFailed."""
    try:
        return await asked
    except (ContentFilterError, OutputTokenLimitExceeded):
        raise
    except UnexpectedModelBehavior as error:
        raise ModelFailed(spell(error)) from None


def _says_nothing(response: ModelResponse) -> bool:
    """Neither a tool is called nor anything visible said."""
    return not any(
        isinstance(part, ToolCallPart)
        or (isinstance(part, TextPart) and not is_blank(part.content))
        for part in response.parts
    )


def _unique_calls(response: ModelResponse) -> ModelResponse:
    """Calls are known by their ids; some servers give two calls the same."""
    seen: Counter[str] = Counter()
    parts = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            seen[part.tool_call_id] += 1
            again = seen[part.tool_call_id]
            if again > 1:
                part = replace(part, tool_call_id=f"{part.tool_call_id}-{again}")  # noqa: PLW2901
        parts.append(part)
    return replace(response, parts=parts)


def _cost(stored: Any) -> Cost:
    usage = stored[0]["usage"]
    return Cost(int(usage["input_tokens"]), int(usage["output_tokens"]))
