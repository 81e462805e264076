"""Every statement that moves a run."""

from storage.runs.moves import (
    correct_ending,
    end_live,
    explain,
    fail,
    find,
    give_back,
    hold,
    last_ended,
    live_in_chat,
    mark_replied,
    progress,
    promote,
    retry_later,
    set_aside,
    settle,
)

__all__ = [
    "correct_ending",
    "end_live",
    "explain",
    "fail",
    "find",
    "give_back",
    "hold",
    "last_ended",
    "live_in_chat",
    "mark_replied",
    "progress",
    "promote",
    "retry_later",
    "set_aside",
    "settle",
]
