"""What the author of a tool can say about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_SAFE = "answerback_safe_to_repeat"


def safe_to_repeat(function: F) -> F:
    """Declare that a tool may be called again after a crash: it only reads, or whom it calls
    honours the `idempotency_key`, which is the same each time. Decorates the tool."""
    setattr(function, _SAFE, True)
    return function


def is_safe_to_repeat(function: Callable[..., Any]) -> bool:
    """Whether the author declared it so."""
    return getattr(function, _SAFE, False) is True
