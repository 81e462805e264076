"""What a provider's error means for the turn. None of its words go any further."""

from __future__ import annotations

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)

from bot.domain.errors import AnswerbackError, Retry
from bot.domain.ports import Clock
from bot.domain.retry import RETRY
from bot.domain.turn import Turn

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
