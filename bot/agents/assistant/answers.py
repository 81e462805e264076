"""The table of all that a model, its provider or a gateway can answer, each with the one reaction
to it. `docs/agents.md` shows it.
"""

from __future__ import annotations

import re
from enum import Enum

from pydantic_ai import exceptions
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from bot.agents.assistant.prompt import is_blank


class ModelAnswer(Enum):
    """One outcome of asking a model. `happens` and `follows` are a row of the table. `remark` is
    shown by `runs show` for an answer that is not, or not entirely, the model's own."""

    def __init__(self, happens: str, follows: str, remark: str = "") -> None:
        self.happens = happens
        self.follows = follows
        self.remark = remark

    WHOLE = (
        "a text or tool calls, and any other reason to end than those below",
        "the answer, without the reasoning that stands in it (`<think>` and its like)",
    )
    CUT = (
        "a text that the output limit cut",
        "the text, and a word that it is cut",
        "the output limit cut the answer",
    )
    CUT_CALL = (
        "a tool call that the output limit may have cut",
        "it is not made; asked once more, then a fixed text",
        "the output limit cut the tool calls",
    )
    CUT_EMPTY = (
        "the output limit before anything was said",
        "a fixed text",
        "the output limit came before any answer",
    )
    EMPTY = (
        "an empty answer, or reasoning alone",
        "asked once more, then a fixed text",
        "the model said nothing, twice",
    )
    FILTERED = (
        "a refusal, or a filter of contents, also in the middle of a text",
        "a fixed text; no tool is called",
        "the model or a filter refused the answer",
    )
    UNFIT = (
        "a call of a tool that is not there, or with arguments that do not fit",
        "the model is told; after three in a row an apology",
    )
    ENDLESS = (
        "the thirtieth response that calls a tool",
        "an apology",
    )
    BUSY = (
        "408, 409, 425, 429, 529, 5xx, a timeout, no connection",
        "tried again after `Retry-After`, longer each time; an apology at the deadline, or at once",
    )
    REFUSES_US = (
        "401, 402, 403, 404, a quota that is used up",
        "the person is told once that it is unavailable; the log and the run say why",
    )
    WINDOW = (
        "the window is too small, or the request too large",
        "files described, then half of the history, and again; without any left, an apology",
    )
    REFUSES_FILES = (
        "any other refusal of a request with files",
        "once more, with the files described",
    )
    BROKEN = (
        "no answer in it: a page, other JSON, no choices, an end by an error",
        "a failure: three of them, then an apology",
    )
    REJECTED = (
        "any other refusal",
        "a failure: three of them, then an apology",
    )


_LIMITS = frozenset({
    "context_length_exceeded", "length", "max_length", "max_output_tokens", "max_tokens",
    "model_context_window_exceeded", "model_length", "token_limit",
})  # fmt: skip
_FILTERS = frozenset({
    "blocked", "blocklist", "content_filter", "content_filtered", "guardrail_intervened",
    "prohibited_content", "recitation", "refusal", "safety", "sensitive", "spii",
})  # fmt: skip
_ERRORS = frozenset({
    "abort", "aborted", "canceled", "cancelled", "error", "failed", "insufficient_system_resource",
    "network_error", "timeout",
})  # fmt: skip
"""The reasons for which a response ended, as providers spell them."""


def of_response(response: ModelResponse) -> ModelAnswer:
    """The kind of a response that could be read."""
    raw = (response.provider_details or {}).get("finish_reason")
    ends = {
        str(reason).lower().rpartition(".")[2].replace("-", "_")
        for reason in (response.finish_reason, raw)
        if reason
    }
    calls = any(isinstance(part, ToolCallPart) for part in response.parts)
    says = any(isinstance(p, TextPart) and not is_blank(p.content) for p in response.parts)
    if ends & _FILTERS:
        return ModelAnswer.FILTERED
    if ends & _ERRORS:
        return ModelAnswer.BROKEN
    if ends & _LIMITS:
        if calls:
            return ModelAnswer.CUT_CALL
        return ModelAnswer.CUT if says else ModelAnswer.CUT_EMPTY
    return ModelAnswer.WHOLE if says or calls else ModelAnswer.EMPTY


_OF_ERRORS: tuple[tuple[type[exceptions.AgentRunError], ModelAnswer], ...] = (
    (exceptions.ContentFilterError, ModelAnswer.FILTERED),
    (exceptions.OutputTokenLimitExceeded, ModelAnswer.CUT_EMPTY),
    (exceptions.UsageLimitExceeded, ModelAnswer.ENDLESS),
    (exceptions.UnexpectedModelBehavior, ModelAnswer.UNFIT),
    (exceptions.ModelContextWindowExceededError, ModelAnswer.WINDOW),
    (exceptions.ModelAuthenticationError, ModelAnswer.REFUSES_US),
    (exceptions.ModelNotFoundError, ModelAnswer.REFUSES_US),
    (exceptions.ModelQuotaExceededError, ModelAnswer.REFUSES_US),
    (exceptions.ModelConnectionError, ModelAnswer.BUSY),
    (exceptions.ModelRateLimitError, ModelAnswer.BUSY),
    (exceptions.ModelRequestTimeout, ModelAnswer.BUSY),
    (exceptions.ModelServerError, ModelAnswer.BUSY),
    (exceptions.ModelUnavailableError, ModelAnswer.BUSY),
)
_OF_STATUS = {
    **dict.fromkeys((408, 409, 425, 429), ModelAnswer.BUSY),
    **dict.fromkeys((401, 402, 403, 404), ModelAnswer.REFUSES_US),
    413: ModelAnswer.WINDOW,
}
_IN_WORDS = (
    (
        ModelAnswer.WINDOW,
        re.compile(
            r"context.?(length|size|window|overflow)|max_new_tokens|too many (input )?tokens|"
            r"(input|prompt|request) is too long"
        ),
    ),
    (ModelAnswer.FILTERED, re.compile(r"content.?(filter|policy)|moderation|flagged")),
)
"""Words in a rejection that tell its kind where neither its status nor the error's type does."""


def of_error(error: exceptions.AgentRunError) -> ModelAnswer:
    """The kind of an error with which the library ended a run."""
    for type_, kind in _OF_ERRORS:
        if isinstance(error, type_):
            return kind
    if not isinstance(error, exceptions.ModelHTTPError):
        return ModelAnswer.BROKEN
    if error.status_code >= 500:
        return ModelAnswer.BUSY
    said = str(error.body).lower()
    in_words = (kind for kind, words in _IN_WORDS if words.search(said))
    return _OF_STATUS.get(error.status_code) or next(in_words, ModelAnswer.REJECTED)
