"""The turn status of a message, as told to whoever asks."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.ending import Ending, TurnStatus


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """One of five answers, each with its one right reaction in `text`.

    `queued` says that nobody works on it yet; `answer` is the stored answer of a completed
    turn, None where there was none to store.
    """

    request_id: str
    status: TurnStatus
    text: str
    queued: bool = False
    ending: Ending | None = None
    answer: str | None = None

    @property
    def send_again(self) -> bool:
        """Tell whether the right reaction is to send the message again."""
        return self.status in (TurnStatus.INTERRUPTED, TurnStatus.UNKNOWN)
