"""The demonstration's verdict, and its words when it could not be shown."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.domain.ending import Ending
from bot.operations.demonstration import DemonstrationFailed, Shown, Stage, demonstrate
from storage.engine.database import Database

HELD = Shown(
    deliveries=1,
    claims=2,
    paid=1,
    answers=1,
    ending=Ending.ANSWERED,
    answer="receipt R-1",
    paid_before="R-1",
    paid_after="R-1",
)


def test_one_answer_and_one_payment_over_two_processes_is_what_was_promised() -> None:
    assert HELD.held


@pytest.mark.parametrize(
    "changes",
    [
        {"deliveries": 2},
        {"claims": 1},
        {"paid": 2},
        {"answers": 0},
        {"answers": 2},
        {"ending": Ending.APOLOGISED},
        {"ending": None},
        {"paid_after": "R-2"},
        {"answer": "receipt R-2"},
    ],
)
def test_anything_else_is_not(changes: dict[str, object]) -> None:
    assert not replace(HELD, **changes).held  # type: ignore[arg-type]


async def test_a_process_that_ends_by_itself_is_named_with_its_last_words(tmp_path: Path) -> None:
    def unused() -> Database:
        raise AssertionError("there is no database yet")

    stage = Stage(
        clock=SystemClock(),
        db=unused,
        folder=tmp_path,
        program=("/bin/sh", "-c", "echo no port is free >&2; exit 3"),
        environment={"PATH": os.defpath},
        paid="pay",
        killed_in="write",
        seconds=1.0,
    )
    with pytest.raises(DemonstrationFailed, match=r"with code 3: no port is free"):
        await demonstrate(stage, lambda _said: None)
