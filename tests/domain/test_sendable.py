"""Reasons that keep a part from leaving now, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.delivery import ChatDoor, Forbidden, Hold, Outgoing, sendable
from bot.domain.ending import Ending

NOW = 1_000_000.0
DAY = 86_400.0
OPEN = ChatDoor()
OF_RUN = Outgoing(standalone=False)
ALONE = Outgoing(standalone=True, posted_at=NOW)
OWN = replace(ALONE, own_notice=True)


def judged(part: Outgoing, chat: ChatDoor) -> str:
    match sendable(part, chat, NOW, DAY):
        case None:
            return "leaves"
        case Hold(until, _):
            return "until resumed" if until is None else f"in {until - NOW:.0f} s"
        case Forbidden(scope, end):
            assert end.ending is Ending.UNDELIVERABLE
            return f"{scope.name} {end.cause.name}"


PAUSED = replace(OPEN, paused_until=NOW + 60)
HELD = replace(OPEN, held_until=NOW + 7)
BLOCKED = replace(OPEN, unreachable="blocked")
DOWN = replace(OPEN, down=True)
SILENT = replace(OPEN, opted_out=True)
CLOSED = replace(OPEN, window_open=False)
OLD = replace(ALONE, posted_at=NOW - DAY - 1)


@pytest.mark.parametrize(
    ("part", "chat", "said"),
    [
        (OF_RUN, OPEN, "leaves"),
        (ALONE, OPEN, "leaves"),
        (OF_RUN, PAUSED, "until resumed"),
        (OF_RUN, replace(OPEN, paused_until=NOW - 1), "leaves"),
        (ALONE, PAUSED, "leaves"),
        (OF_RUN, HELD, "in 7 s"),
        (ALONE, HELD, "in 7 s"),
        (OF_RUN, replace(BLOCKED, held_until=NOW + 7), "in 7 s"),
        (OF_RUN, DOWN, "until resumed"),
        (ALONE, DOWN, "until resumed"),
        (OWN, replace(BLOCKED, down=True), "until resumed"),
        (OF_RUN, BLOCKED, "CHAT UNREACHABLE"),
        (OWN, BLOCKED, "CHAT UNREACHABLE"),
        (OF_RUN, SILENT, "CONSENT OPTED_OUT"),
        (ALONE, SILENT, "CONSENT OPTED_OUT"),
        (OWN, SILENT, "leaves"),
        (OF_RUN, CLOSED, "WINDOW WINDOW_CLOSED"),
        (OWN, CLOSED, "WINDOW WINDOW_CLOSED"),
        (OLD, OPEN, "PAYLOAD TOO_OLD"),
        (OLD, CLOSED, "WINDOW WINDOW_CLOSED"),
        (replace(OF_RUN, posted_at=NOW - 2 * DAY), OPEN, "leaves"),
    ],
)
def test_what_may_leave(part: Outgoing, chat: ChatDoor, said: str) -> None:
    assert judged(part, chat) == said
