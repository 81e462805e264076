"""The model behind LLM_MODEL, and one whose every response is a step of the turn.

A response is stored before anything acts on it: asked again after a crash, the same request
returns the stored one and costs nothing. So the whole conversation of a turn is played again
up to the point where it was cut off, and only what is missing is done. A blank response is
asked for once more and then replaced, so that none is ever acted on, shown or sent back to a
provider, which would refuse it. None of a provider's words in an error go any further.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from bot.agents.assistant.prompt import Files, is_blank
from bot.domain.errors import AnswerbackError, ConfigurationError, GiveUp, Retry
from bot.domain.ports import Clock
from bot.domain.retry import RETRY
from bot.domain.turn import AttachmentFile, Cost, Turn

_log = logging.getLogger("answerback.llm")

_PASSING = (
    exceptions.ModelConnectionError,
    exceptions.ModelRateLimitError,
    exceptions.ModelRequestTimeout,
    exceptions.ModelServerError,
    exceptions.ModelUnavailableError,
)
_FOR_THE_OPERATOR = (
    exceptions.ModelAuthenticationError,
    exceptions.ModelNotFoundError,
    exceptions.ModelQuotaExceededError,
)
_PASSING_STATUS = frozenset({408, 409, 425, 429})
_OPERATOR_STATUS = frozenset({401, 402, 403, 404})
_NOT_THE_FILES = (
    exceptions.ContentFilterError,
    exceptions.ModelAuthenticationError,
    exceptions.ModelContextWindowExceededError,
    exceptions.ModelNotFoundError,
    exceptions.OutputTokenLimitExceeded,
)
_REFUSES_FILES = (
    exceptions.ModelRequestRejectedError,
    exceptions.UserError,
    NotImplementedError,
    AssertionError,
)
"""Errors of a file that a model does not take: of its server, or of its adapter."""


def make_model(name: str, base_url: str) -> Model:
    """`provider:model`; with `base_url` the model of a server that speaks OpenAI's protocol.
    Raises ConfigurationError."""
    if not name:
        raise ConfigurationError("LLM_MODEL is empty: set it to provider:model, as openai:gpt-5")
    try:
        if not base_url:
            return infer_model(name)
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - it takes a second
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

        provider = OpenAIProvider(base_url=base_url)
        return OpenAIChatModel(name.removeprefix("openai:"), provider=provider)
    except exceptions.UserError as error:
        said = error.message.partition(". ")[0]
        raise ConfigurationError(f"LLM_MODEL={name}: {said}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"LLM_MODEL={name}: its provider's package is missing ({error.name or error})"
        ) from error


class StoredModel(WrapperModel):
    """`model` for one attempt on `turn`. `number` is that of the response acted on now; 0 plays
    the conversation again from its beginning."""

    def __init__(
        self, model: Model, turn: Turn, files: Mapping[str, AttachmentFile], empty: str
    ) -> None:
        super().__init__(model)
        self.number = 0
        self.turn = turn
        self._files = Files(files, model.profile)
        self._empty = empty

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self.number += 1

        async def call() -> Any:
            response = await self._ask(messages, model_settings, model_request_parameters)
            return ModelMessagesTypeAdapter.dump_python([_unique_calls(response)], mode="json")

        for key in (f"model:{self.number}", f"model:{self.number}:again"):
            stored = await self.turn.step(key, call, safe_to_repeat=True, cost=_cost)
            (response,) = ModelMessagesTypeAdapter.validate_json(json.dumps(stored))
            if isinstance(response, ModelResponse) and not _says_nothing(response):
                return response
        return ModelResponse(parts=[TextPart(self._empty)], model_name=self.model_name)

    async def _ask(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Call the provider; once more without files when it may be they that it refuses.

        A response that can't be read is a failure of this attempt, since the next may be whole:
        raises ModelFailed.
        """
        while True:
            try:
                filled = await self._files.into(messages)
                return await self.wrapped.request(filled, settings, parameters)
            except _NOT_THE_FILES:
                raise
            except _REFUSES_FILES:
                if not self._files.refused():
                    raise
            except exceptions.UnexpectedModelBehavior as error:
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


class ModelFailed(AnswerbackError):
    """The model did not answer as it should. For the operator; holds none of its words."""


def spell(error: exceptions.AgentRunError) -> str:
    """An error by its name and its HTTP status."""
    status = f" ({error.status_code})" if isinstance(error, exceptions.ModelHTTPError) else ""
    return f"{type(error).__name__}{status}"


def reaction(
    error: exceptions.ModelAPIError, turn: Turn, clock: Clock, unavailable: str
) -> AnswerbackError:
    """The error to raise in the place of a provider's.

    Where the provider is busy, broken or can't be reached, the turn is tried again: not before
    the provider asks for, longer with every attempt, spread out, and no later than the turn's
    deadline, when the person gets an apology. Where nothing will work before somebody changes
    the key, the account or the model, the person is told `unavailable`.
    """
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else 0
    passes = isinstance(error, _PASSING) or status in _PASSING_STATUS or status >= 500
    if passes and not isinstance(error, _FOR_THE_OPERATOR):
        wait = RETRY.model.after(turn.attempt, clock.jitter())
        if error.retry_after is not None:
            wait = error.retry_after + wait / 2
        left = max(1.0, turn.deadline - clock.wall())
        return Retry(min(wait, left), f"the model is not available: {spell(error)}")
    if isinstance(error, _FOR_THE_OPERATOR) or status in _OPERATOR_STATUS:
        _log.error("the model refuses us: %s; check LLM_MODEL and its key", spell(error))
        return GiveUp(unavailable, f"the model refuses us: {spell(error)}")
    return ModelFailed(spell(error))
