"""Ends by which a chat is given to the person whom its agent asked for."""

from __future__ import annotations

import pytest

from bot.domain.decisions.handoff import hands_over
from bot.domain.ending import Cause, Close, Ending


@pytest.mark.parametrize(
    ("ending", "cause", "gives"),
    [
        (Ending.ANSWERED, Cause.DELIVERED, True),
        (Ending.ANSWERED, Cause.HUMAN_ANSWERED, False),
        (Ending.ANSWERED, Cause.OPERATOR, False),
        (Ending.UNCERTAIN, Cause.UNCONFIRMED, True),
        (Ending.SILENT, Cause.CHOSE_SILENCE, True),
        (Ending.UNDELIVERABLE, Cause.REFUSED, True),
        (Ending.UNDELIVERABLE, Cause.UNREACHABLE, False),
        (Ending.UNDELIVERABLE, Cause.WINDOW_CLOSED, False),
        (Ending.WITHDRAWN, Cause.STOPPED, False),
        (Ending.CANCELLED, Cause.OPERATOR, False),
        (Ending.EXPIRED, Cause.TOO_OLD, False),
        (Ending.APOLOGISED, Cause.OPERATOR, False),
        (Ending.FAILED, Cause.OPERATOR, False),
    ],
)
def test_a_chat_is_given_to_a_person_where_one_can_still_help(
    ending: Ending, cause: Cause, gives: bool
) -> None:
    assert hands_over(Close(ending, cause)) is gives
