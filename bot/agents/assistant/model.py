"""The model that LLM_MODEL names, and a wrapper that makes each of its responses a turn's step.

A response is stored before anything acts on it: after a crash the same request returns the stored
response and costs nothing. So an attempt replays the conversation of the turn up to the point where
the last one was cut off, and does only the rest. A blank response is requested once more and then
replaced by a text of ours: none is ever acted on, shown, or sent back to a provider, which would
refuse it. `answers.py` lists what follows from every other response. The text of a provider's error
goes no further than this package.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from bot.agents.assistant.answers import ModelAnswer, of_error, of_response
from bot.agents.assistant.prompt import Files
from bot.agents.assistant.reasoning import without_reasoning
from bot.domain.decisions.retry import RETRY
from bot.domain.errors import AnswerbackError, ConfigurationError, Retry
from bot.domain.message import clean
from bot.domain.turn import AttachmentFile, Cost, Turn
from bot.texts import Text

_WRITTEN = "write provider:model, such as openai:gpt-5 or anthropic:claude-sonnet-4-5"
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`")
_PROVIDER = re.compile(r"to use the (.+?) provider")
_FAMILIES = {
    "anthropic": "anthropic",
    "claude": "anthropic",
    "openai": "openai",
    "gpt": "openai",
    "google": "google",
    "gemini": "google",
    "grok": "xai",
    "xai": "xai",
    "mistral": "mistral",
    "deepseek": "deepseek",
}
"""Providers by the beginnings of their own names and of their models' names."""
_REFUSES_FILES = (exceptions.UserError, NotImplementedError, AssertionError)
"""Errors that an adapter raises for a kind of file that it does not take."""
_UNREADABLE = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
)  # fmt: skip
"""Errors that an adapter raises when a provider's response has not the form of an answer. They may
quote the response."""
_MAYBE_FILES = frozenset({ModelAnswer.REJECTED, ModelAnswer.WINDOW})
"""Refusals that the request's files may have caused."""
_ASKED_AGAIN = frozenset({ModelAnswer.EMPTY, ModelAnswer.CUT_CALL})


def make_model(name: str, base_url: str) -> Model:
    """The model that `name` gives as `provider:model`; with `base_url`, a model of the server at
    that address, which speaks OpenAI's protocol. Raises ConfigurationError."""
    if not name:
        raise ConfigurationError(f"LLM_MODEL is empty: {_WRITTEN}")
    try:
        found = None if base_url else infer_model(name)
        # Compared by name: importing the class would need a package that may not be installed.
        if found is not None and type(found).__name__ != "OpenAIChatModel":
            return found
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - it takes a second

        from bot.agents.assistant.gateway import GatewayModel  # noqa: PLC0415 - as above

        if found is not None and found.provider is not None:
            return GatewayModel(found.model_name, provider=found.provider)
        provider = OpenAIProvider(base_url=base_url)
        return GatewayModel(name.removeprefix("openai:"), provider=provider)
    except exceptions.UserError as error:
        raise ConfigurationError(f"LLM_MODEL={name}: {_unusable(name, error.message)}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"LLM_MODEL={name}: its provider's package is missing ({error.name or error})"
        ) from error


def _unusable(name: str, said: str) -> str:
    """Advice on a model that pydantic-ai does not accept. `said` is its error message."""
    variables = list(dict.fromkeys(_VARIABLE.findall(said)))
    if variables:
        by = _PROVIDER.search(said)
        whose = f" It belongs to your account at {by[1]}." if by else ""
        return f"{' or '.join(variables)} is empty: set it in the environment or in .env.{whose}"
    provider, _, model = name.replace("/", ":", 1).partition(":")
    provider, model = provider.strip().lower(), model.strip()
    known = next((by for begin, by in _FAMILIES.items() if provider.startswith(begin)), "")
    if known:
        meant = f"{known}:{model or provider}"
        if meant != name:
            return f"did you mean {meant}? {_WRITTEN}"
    return f"there is no such model or provider; {_WRITTEN}"


class StoredModel(WrapperModel):
    """`model` for one attempt on `turn`. `number` is the number of the current response; setting it
    to 0 replays the conversation from the beginning. `say` gives our own texts in the person's
    language. `seconds` bounds a whole exchange, even one that a gateway keeps alive by sending
    blanks."""

    def __init__(
        self,
        model: Model,
        turn: Turn,
        files: Mapping[str, AttachmentFile],
        say: Callable[[Text], str],
        seconds: float,
    ) -> None:
        super().__init__(model)
        self.number = 0
        self.turn = turn
        self.say = say
        self._seconds = seconds
        self._files = Files(files, model.profile)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self.number += 1
        name = f"model:{self.number}"

        async def call() -> Any:
            response = await self._ask(messages, model_settings, model_request_parameters)
            return ModelMessagesTypeAdapter.dump_python([response], mode="json")

        response = await self._stored(name, call)
        if of_response(response) in _ASKED_AGAIN:
            response = await self._stored(f"{name}:again", call)
        answer = of_response(response)
        return response if answer is ModelAnswer.WHOLE else await self._instead(answer, response)

    async def _stored(self, key: str, call: Callable[[], Awaitable[Any]]) -> ModelResponse:
        stored = await self.turn.step(key, call, safe_to_repeat=True, cost=_cost)
        (response,) = ModelMessagesTypeAdapter.validate_json(json.dumps(stored))
        assert isinstance(response, ModelResponse)
        return response

    async def _instead(self, answer: ModelAnswer, response: ModelResponse) -> ModelResponse:
        """The response to act on instead of one that is not whole."""
        text = await self.remarked(answer)
        said = [part for part in response.parts if isinstance(part, TextPart)]
        if answer is ModelAnswer.CUT:
            return replace(response, parts=[*said, TextPart(f"\n\n{text}")], finish_reason="stop")
        return ModelResponse(parts=[TextPart(text)], model_name=self.model_name)

    async def remarked(self, answer: ModelAnswer) -> str:
        """Our text about this answer for the person. A step records the remark for `runs show`."""
        remark = answer.remark
        await self.turn.step(f"{remark} ({self.number})", lambda: remark, safe_to_repeat=True)
        return self.say(Text.CUT_OFF if answer is ModelAnswer.CUT else Text.EMPTY_ANSWER)

    async def _ask(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Call the provider; if it refuses the request, perhaps for its files, once more without.

        Raises ModelFailed for a response that can't be read: that is a failure of this attempt
        only, since the next response may be whole.
        """
        while True:
            try:
                response = _spoken(await self._exchange(messages, settings, parameters))
            except exceptions.AgentRunError as error:
                kind = of_error(error)
                if kind is ModelAnswer.UNFIT:  # the adapter itself could not read the answer
                    raise ModelFailed(spell(error)) from None
                if kind not in _MAYBE_FILES or not self._files.refused():
                    raise
            except _REFUSES_FILES:
                if not self._files.refused():
                    raise
            except _UNREADABLE as error:
                raise ModelFailed(spell(error)) from None
            else:
                if of_response(response) is ModelAnswer.BROKEN:
                    raise ModelFailed("the response ended with an error")
                return response

    async def _exchange(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        filled = await self._files.into(messages)
        try:
            async with asyncio.timeout(self._seconds):
                return await self.wrapped.request(filled, settings, parameters)
        except TimeoutError:
            raise exceptions.ModelRequestTimeout(self.model_name, self._seconds) from None


def _spoken(response: ModelResponse) -> ModelResponse:
    """The response without reasoning in its texts, and with a distinct id for each tool call: some
    servers give two calls the same id."""
    seen: Counter[str] = Counter()
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            parts.append(replace(part, content=clean(without_reasoning(part.content))))
        elif isinstance(part, ToolCallPart):
            seen[part.tool_call_id] += 1
            again = seen[part.tool_call_id]
            name = part.tool_call_id if again == 1 else f"{part.tool_call_id}-{again}"
            parts.append(replace(part, tool_call_id=name))
        else:
            parts.append(part)
    return replace(response, parts=parts)


def _cost(stored: Any) -> Cost:
    usage = stored[0]["usage"]
    return Cost(int(usage["input_tokens"]), int(usage["output_tokens"]))


class ModelFailed(AnswerbackError):
    """The model did not answer as it should. The message is for the operator and quotes nothing
    that the model or its provider said."""


def spell(error: Exception) -> str:
    """The error's type, and its HTTP status if it has one."""
    status = f" ({error.status_code})" if isinstance(error, exceptions.ModelHTTPError) else ""
    return f"{type(error).__name__}{status}"


def busy(error: exceptions.AgentRunError, turn: Turn, jitter: float) -> Retry:
    """A Retry of the turn: no earlier than the provider asks for, after a wait that grows with each
    attempt and is jittered."""
    asked = error.retry_after if isinstance(error, exceptions.ModelAPIError) else None
    wait = RETRY.model.after(turn.attempt, jitter)
    if asked is not None:
        wait = asked + wait / 2
    return Retry(wait, f"the model is not available: {spell(error)}")
