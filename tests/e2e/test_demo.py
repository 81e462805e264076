"""The demonstration from outside: real processes, a real kill, and nothing of the user's."""

from __future__ import annotations

import re

from tests.e2e.processes import Ground
from tests.limits import PATIENCE


async def test_killed_in_the_middle_the_next_process_answers_and_nothing_is_paid_twice(
    sqlite_ground: Ground,
) -> None:
    ground = sqlite_ground
    within = f"{PATIENCE:.0f}"
    # A user's settings, even wrong ones, are none of its business.
    program = await ground.spawn(
        "demo", "kill", "--seconds", "1", "--within", within, TELEGRAM_MODE="nonsense"
    )
    assert await program.ended() == 0, program.output
    receipts = re.findall(r"R-[0-9A-F]{6}", program.output)
    assert len(receipts) == 2
    assert receipts[0] == receipts[1]
    killed, answering = re.findall(r"listens \(process (\d+)\)", program.output)
    assert f"kill -9 {killed}, in the middle of step write" in program.output
    assert killed != answering
    facts = [line.split()[-1 if "claims" not in line else -5] for line in program.printed[-5:-1]]
    assert facts == ["1", "2", "1", "1"]
    assert program.printed[-1].endswith("the promise held.")
    assert await ground.world.rows("SELECT count(*) FROM inbound") == [(0,)]
