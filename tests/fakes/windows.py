"""The 24 hours after a person's last message, in which free text may be sent."""

from __future__ import annotations

from enum import Enum, auto

from tests.fakes.recording import Now

WINDOW = 86_400.0


class Window(Enum):
    """The refusal of a message outside the window."""

    OFF = auto()
    """It is not: the fake does not know when the person wrote."""
    SYNC = auto()
    """By the answer to the send."""
    CALLBACK = auto()
    """The send is taken, and the message fails later."""


class Windows:
    """The time at which each person wrote last, as far as the fake saw it or was told."""

    def __init__(self, now: Now) -> None:
        self.mode = Window.OFF
        self._now = now
        self._opened: dict[str, float] = {}

    def opened(self, person: str, at: float | None = None) -> None:
        self._opened[person] = self._now() if at is None else at

    def closed_for(self, person: str) -> bool:
        """Tell whether free text to this person is outside the window."""
        if self.mode is Window.OFF:
            return False
        return self._now() - self._opened.get(person, -WINDOW) >= WINDOW
