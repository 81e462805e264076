"""The model behind LLM_MODEL, and one whose every response is a step of the turn.

A response is stored before anything acts on it: asked again after a crash, the same request
returns the stored one and costs nothing. So the whole conversation of a turn is played again
up to the point where it was cut off, and only what is missing is done. A blank response is
asked for once more and then replaced, so that none is ever acted on, shown or sent back to a
provider, which would refuse it. None of a provider's words in an error go any further.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
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
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from bot.agents.assistant.prompt import Files, is_blank
from bot.domain.errors import AnswerbackError, ConfigurationError, Retry
from bot.domain.ports import Clock
from bot.domain.retry import RETRY
from bot.domain.turn import AttachmentFile, Cost, Turn

_OPENAI = "openai:"
_PASSING = (
    ModelConnectionError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)
_FOR_THE_OPERATOR = (ModelAuthenticationError, ModelNotFoundError, ModelQuotaExceededError)
_PASSING_STATUS = frozenset({408, 409, 425, 429})
_OPERATOR_STATUS = frozenset({401, 402, 403, 404})
_NOT_THE_FILES = (
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
)
_REFUSES_FILES = (ModelRequestRejectedError, UserError, NotImplementedError, AssertionError)
"""Errors of a file that a model does not take: of its server, or of its adapter."""


def make_model(name: str, base_url: str) -> Model:
    """`provider:model`; with `base_url` the model of a server that speaks OpenAI's protocol.
    Raises ConfigurationError."""
    if not name:
        raise ConfigurationError("LLM_MODEL is empty: set it to provider:model, as openai:gpt-5")
    try:
        return _behind(name.removeprefix(_OPENAI), base_url) if base_url else infer_model(name)
    except UserError as error:
        said = error.message.partition(". ")[0]
        raise ConfigurationError(f"LLM_MODEL={name}: {said}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"LLM_MODEL={name}: its provider's package is missing ({error.name or error})"
        ) from error


def _behind(name: str, base_url: str) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - it takes a second
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=base_url))


def settings_of(timeout: float) -> ModelSettings:
    """Settings of every request: our own queue tries again, so the SDK must not."""
    return ModelSettings(timeout=timeout, max_retries=0)


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


class ModelFailed(AnswerbackError):
    """The model did not answer as it should. For the operator; holds none of its words."""


def spell(error: AgentRunError) -> str:
    """An error by its name and its HTTP status."""
    status = f" ({error.status_code})" if isinstance(error, ModelHTTPError) else ""
    return f"{type(error).__name__}{status}"


def passes(error: ModelAPIError) -> bool:
    """Whether waiting may help: the provider is busy, broken or can't be reached."""
    if isinstance(error, _FOR_THE_OPERATOR):
        return False
    if isinstance(error, _PASSING):
        return True
    return isinstance(error, ModelHTTPError) and (
        error.status_code in _PASSING_STATUS or error.status_code >= 500
    )


def concerns_operator(error: ModelAPIError) -> bool:
    """Whether nothing will work before somebody changes the key, the account or the model."""
    if isinstance(error, _FOR_THE_OPERATOR):
        return True
    return isinstance(error, ModelHTTPError) and error.status_code in _OPERATOR_STATUS


def later(error: ModelAPIError, turn: Turn, clock: Clock) -> Retry:
    """Try the turn again: not before the provider asks for, longer with every attempt, spread
    out, and no later than the turn's deadline, when the person gets an apology."""
    wait = RETRY.model.after(turn.attempt, clock.jitter())
    if error.retry_after is not None:
        wait = error.retry_after + wait / 2
    left = max(1.0, turn.deadline - clock.wall())
    return Retry(min(wait, left), f"the model is not available: {spell(error)}")
