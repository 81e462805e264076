"""Concerns: the reasons for which a chat wants a person, the most urgent first."""

from __future__ import annotations

from bot.domain.ending import Ending, Worded

GIVEN_UP = (Ending.APOLOGISED, Ending.FAILED, Ending.EXPIRED)
"""The endings after which a person is without an answer and was asked to send it again."""


class Concern(Worded):
    """A reason for which a chat wants a person; the members stand in the order of lists."""

    ASKED = "asked", "its agent asked for a person"
    APOLOGISED = "apologised", "its last message was given up"
    REFUSED = "refused", "the platform refused what was sent"
    UNCERTAIN = "uncertain", "nobody knows whether a message arrived"
    PAUSED = "paused", "its agent is paused"

    @property
    def rank(self) -> int:
        """The place in the order, from 0."""
        return _ORDER[self]


_ORDER = {concern: rank for rank, concern in enumerate(Concern)}
