"""A server that speaks OpenAI's protocol. Often it is a gateway in front of other providers, which
may report their errors in a response with status 200."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from openai.types.chat import ChatCompletion
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel

from bot.agents.assistant.reasoning import without_reasoning


class GatewayModel(OpenAIChatModel):
    """A model by OpenAI's protocol that copes with the errors and the reasoning that gateways put
    into a response."""

    def _process_response(self, response: ChatCompletion | str, **options: bool) -> ModelResponse:
        """Read the response. Raises an error inside it as if it had come with its own status."""
        if isinstance(response, ChatCompletion):
            said = response.model_dump(warnings=False)
            if (inside := _inside(said)) is not None:
                raise error_of(inside, self.model_name)
            response = ChatCompletion.construct(**_filled(said, self.model_name))
        return super()._process_response(response, **options)


def _filled(said: dict[str, Any], model: str) -> dict[str, Any]:
    """The completion, with those fields filled in that small servers omit and the library needs."""
    kept = {**said, "id": said.get("id") or "", "model": said.get("model") or model}
    created = said.get("created")
    kept["created"] = int(created) if isinstance(created, int | float) else 0
    kept["object"] = "chat.completion"
    usage = said.get("usage")
    if not isinstance(usage, dict) or not isinstance(usage.get("prompt_tokens"), int):
        kept["usage"] = None
    choices = said.get("choices")
    if isinstance(choices, list):
        kept["choices"] = [_choice(n, one) for n, one in enumerate(choices)]
    return kept


def _choice(number: int, said: dict[str, Any]) -> dict[str, Any]:
    message = said.get("message") or said.get("delta") or said.get("text")
    if isinstance(message, str):
        message = {"content": message}
    if not isinstance(message, dict):
        return said
    content = message.get("content")
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        refused = (part["refusal"] for part in parts if part.get("refusal"))
        message = {**message, "refusal": message.get("refusal") or next(refused, None)}
        texts = (part.get("text") for part in parts)
        content = "".join(text for text in texts if isinstance(text, str)) or None
    if isinstance(content, str):
        # The library ignores an opening mark that has no end.
        content = without_reasoning(content)
    calls = message.get("tool_calls")
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    kept = {
        **message,
        "role": "assistant",
        "content": content,
        "tool_calls": [_call(n, call) for n, call in enumerate(calls)] or None,
    }
    return {
        **said, "index": number, "finish_reason": said.get("finish_reason") or None, "message": kept
    }  # fmt: skip


def _call(number: int, said: dict[str, Any]) -> dict[str, Any]:
    function = said.get("function")
    if isinstance(function, dict) and isinstance(function.get("arguments"), dict):
        function = {**function, "arguments": json.dumps(function["arguments"])}
    kind = said.get("type") or "function"
    return {**said, "id": said.get("id") or f"call-{number}", "type": kind, "function": function}


_ERROR = ("error", "Error", "fault", "base_resp")
"""The names of members that hold an error, as gateways spell them."""
_NAMES_AN_ERROR = ("code", "status", "type", "detail", "message", "errors")


def _inside(said: Mapping[str, Any]) -> object | None:
    """The error in a body, from any of the places where gateways put one; None if there is none."""
    choices = said.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    places = [place for place in (said, first) if isinstance(place, Mapping)]
    for error in (place.get(name) for place in places for name in _ERROR):
        if error and not _is_none(error, beside_answer=bool(choices)):
            return said if error is True else error
    bare = not choices and any(said.get(key) for key in _NAMES_AN_ERROR)
    return said if bare or said.get("object") == "error" else None


def _is_none(error: object, *, beside_answer: bool) -> bool:
    """Tell whether an error object reports no error: some gateways add one to every answer."""
    if not isinstance(error, Mapping):
        return False
    return error.get("status_code") == 0 or (beside_answer and not any(error.values()))


_STATUS_WORDS = (
    (402, ("insufficient quota", "insufficient credit", "billing", "payment required")),
    (429, ("rate limit", "too many requests", "resource exhausted", "throttl")),
    (401, ("api key", "authentication", "unauthorized", "permission")),
    (404, ("model not found", "not found")),
    (503, ("overloaded", "unavailable", "capacity", "server error", "timeout", "timed out",
           "bad gateway", "upstream")),
)  # fmt: skip


_WORDS = ("message", "detail", "msg", "status_msg", "faultstring", "Code", "Message")
"""The names of members that describe an error in words."""


def error_of(inside: object, model: str) -> ModelHTTPError:
    """The error that `inside` stands for, by a status or by its words; an unknown one becomes a
    400, a rejection."""
    named = _innermost(inside)
    kind = " ".join(str(named.get(key, "")).lower() for key in ("code", "type", "status"))
    said = " ".join((kind, *(str(named.get(key, "")) for key in _WORDS))).lower()
    plain = said.replace("_", " ").replace("-", " ")
    used_up = 402 if "quota" in kind else 0
    status = (
        used_up
        or _status(named)
        or next(
            (status for status, words in _STATUS_WORDS if any(word in plain for word in words)), 400
        )
    )
    after = str(named.get("retry_after", ""))
    wait = float(after) if _NUMBER.fullmatch(after) else None
    return ModelHTTPError(status, model, said, retry_after=wait)


_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")


def _innermost(error: object) -> Mapping[str, Any]:
    """The innermost error, unwrapped from lists and outer errors; bare text becomes its message."""
    while True:
        if isinstance(error, list):
            error = error[0] if error else ""
        elif isinstance(error, Mapping):
            further = error.get("errors") or error.get("error")
            if not isinstance(further, list | Mapping):
                return error
            error = further
        else:
            return {"message": error}


def _status(named: Mapping[str, Any]) -> int:
    """The HTTP status that an error names; 0 if it names none."""
    for key in ("code", "status", "status_code", "Code"):
        digits = str(named.get(key, "")).removesuffix(".0")
        if len(digits) == 3 and digits.isascii() and digits.isdigit() and digits[0] in "45":
            return int(digits)
    return 0
