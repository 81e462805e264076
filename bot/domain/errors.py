"""Errors, split by what the one who meets them should do."""

from __future__ import annotations


class AnswerbackError(Exception):
    """Root of every error that we raise on purpose."""


class ForOperators(AnswerbackError):
    """An error whose words are written for operators: logs quote them. Not so those that an
    agent writes for a person (GiveUp, Retry), nor those that name a step."""


class ConfigurationError(ForOperators):
    """A setting is wrong: the message names it and the fix. The process does not start."""


class StaleLease(ForOperators):
    """The run was taken over or the lease ran out: stop quietly, send nothing."""


class DatabaseUnavailable(ForOperators):
    """The database does not answer: nothing was written; try again after `retry_after` s."""

    retry_after = 5.0


class AttachmentUnavailable(ForOperators):
    """A file can't be fetched; the message says why, in words for the agent."""


class NotAttached(ForOperators):
    """A file can't be sent in this chat; the words say why."""


class Retry(AnswerbackError):
    """Raised by an agent: try this turn again after `after` seconds, or after a wait of ours
    without it. `reason` is what the operator reads. Where the wait ends behind the deadline of
    the turn, the person gets an apology at once."""

    def __init__(self, after: float | None = None, reason: str = "") -> None:
        super().__init__(reason or "the agent asked to be tried again")
        self.after = after


class GiveUp(AnswerbackError):
    """Raised by an agent: this turn can't be answered; `text` is what the person is told, and
    `reason` what the operator reads."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.reason = reason or "the agent gave up"


class AgentFailed(ForOperators):
    """An agent, or its server, did not keep the contract. The message says what was wrong, and
    holds none of its words."""


class StepInterrupted(AnswerbackError):
    """A step had begun in an earlier attempt and left no result: it may have happened. Look,
    where you can, before you do it again under another key; `key` names it."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"step {key!r} was cut off and may have happened; check before doing it again"
        )
        self.key = key


class ReminderRefused(AnswerbackError):
    """A reminder can't be set; the message says why, in words for the one who asked."""


class StepResultInvalid(AnswerbackError):
    """A step returned something that can't be stored: no JSON, or more than 256 KiB."""


class PollUnavailable(ForOperators):
    """A platform can't be asked for updates now; `retry_after` in seconds if it named a wait."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class PollConflict(ForOperators):
    """Somebody else takes this account's updates."""


class PollRefused(ForOperators):
    """The platform refuses the account's token: only an operator can help."""


class RecordsUnavailable(ForOperators):
    """A platform's own records (missed messages, settings) can't be read, or not to their end.
    `refused`: since it does not take our credentials."""

    refused = False
