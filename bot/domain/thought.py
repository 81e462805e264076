"""The result of calling the agent, and what follows from it: a decision over values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import Reply
from bot.domain.retry import RetryPolicy
from bot.domain.run import Run
from bot.domain.verdict import Apologise


@dataclass(frozen=True, slots=True)
class Answer:
    """The agent returned; None is its choice to say nothing."""

    reply: Reply | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The agent raised something it did not mean to."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """The agent asked to be tried again, after so many seconds if it named them."""

    after: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The agent can't answer and says so itself; without a text in the usual words."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The deadline passed while the agent was at work."""


Thought = Answer | Failed | Later | GaveUp | OutOfTime


@dataclass(frozen=True, slots=True)
class PutBack:
    """The run is ready again after `wait` seconds; `failed` counts against it."""

    wait: float
    reason: str
    failed: bool


def follows(
    thought: Thought, run: Run, retry: RetryPolicy, jitter: float
) -> Close | Reply | Apologise | PutBack:
    """Decide what follows a thought of this attempt on the run; `jitter` is in [0, 1)."""
    match thought:
        case Answer(reply):
            return Close(Ending.SILENT, Cause.CHOSE_SILENCE) if reply is None else reply
        case GaveUp(text, reason):
            return Apologise(Cause.GAVE_UP, reason, text.strip())
        case OutOfTime():
            return Apologise(Cause.DEADLINE)
        case Later(after, reason):
            asked = None if after is None else max(retry.soonest, after) * (1 + jitter / 10)
            wait = retry.agent.after(run.attempts, jitter) if asked is None else asked
            return PutBack(wait, reason, failed=False)
        case Failed(reason):
            failures = run.failures + 1
            last = failures >= retry.max_failures
            wait = 0.0 if last else retry.agent.after(failures, jitter)
            return PutBack(wait, reason, failed=True)
        case other:
            assert_never(other)
