"""A server that speaks OpenAI's protocol, often a gateway in front of others: it may put their
errors into a success."""

from __future__ import annotations

from collections.abc import Mapping

from openai.types.chat import ChatCompletion
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel

from bot.agents.assistant.reasoning import without_reasoning


class GatewayModel(OpenAIChatModel):
    """OpenAI's protocol, read with the errors and the reasoning that gateways put into it."""

    def _process_response(self, response: ChatCompletion | str, **options: bool) -> ModelResponse:
        """Raises the error inside a success as if it had come with its own status."""
        if isinstance(response, ChatCompletion):
            said = response.model_dump(warnings=False)
            if (inside := _inside(said)) is not None:
                raise error_of(inside, self.model_name)
            for choice in response.choices or ():
                # The library takes an opening mark without its end for nothing.
                if isinstance(choice.message.content, str):
                    choice.message.content = without_reasoning(choice.message.content)
        return super()._process_response(response, **options)


def _inside(said: Mapping[str, object]) -> object | None:
    """The error that a body carries, in one of the places where gateways put it."""
    choices = said.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for place in (said, first):
        if isinstance(place, Mapping) and place.get("error"):
            return place["error"]
    bare = not choices and any(said.get(key) for key in ("code", "status", "type", "detail"))
    return said if bare or said.get("object") == "error" else None


_STATUS_WORDS = (
    (402, ("insufficient_quota", "insufficient credit", "billing", "payment required")),
    (429, ("rate_limit", "rate limit", "too many requests", "resource_exhausted", "throttl")),
    (401, ("api_key", "api key", "authentication", "unauthorized", "permission")),
    (404, ("model_not_found", "model not found", "not_found")),
    (503, ("overloaded", "unavailable", "capacity", "server_error", "timeout", "timed out",
           "bad gateway", "upstream")),
)  # fmt: skip


def error_of(inside: object, model: str) -> ModelHTTPError:
    """The error that `inside` names by a status or in words; an unknown one is a rejection."""
    named = inside if isinstance(inside, Mapping) else {"message": inside}
    kind = " ".join(str(named.get(key, "")).lower() for key in ("code", "type", "status"))
    said = f"{kind} {named.get('message', '')} {named.get('detail', '')}".lower()
    used_up = 402 if "quota" in kind else 0
    status = (
        used_up
        or _status(named)
        or next(
            (status for status, words in _STATUS_WORDS if any(word in said for word in words)), 400
        )
    )
    after = named.get("retry_after")
    wait = float(after) if isinstance(after, int | float) else None
    return ModelHTTPError(status, model, said, retry_after=wait)


def _status(named: Mapping[str, object]) -> int:
    """The HTTP status that an error names; 0 for none."""
    for key in ("code", "status", "status_code"):
        digits = str(named.get(key, ""))
        if len(digits) == 3 and digits.isascii() and digits.isdigit() and digits[0] in "45":
            return int(digits)
    return 0
