"""People who write, the terms of a process, and short words for what tests wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fakes.updates import Person
from tests.world import Running, World

ADA, BOB = 700100201, 700100202
PATIENT: dict[str, Any] = {
    "burst": "each",
    "still_working_after": 1e6,
    "lease_seconds": 3600.0,
    "heartbeat_seconds": 60.0,
    "max_failures": 3,
}
"""For a test that sets the clock forward by minutes: no lease may end by that. It counts on this
number of failures, whatever the default is."""
MORTAL: dict[str, Any] = {**PATIENT, "lease_seconds": 120.0, "heartbeat_seconds": 5.0}
"""A lease that `tests.kit.passing.outlive` lets the dead lose, and no slow machine the living."""


async def endings(world: World) -> list[tuple[str, str]]:
    """(text, ending) of every message that has a run, oldest first."""
    rows = await world.rows(
        "SELECT i.text, coalesce(r.ending, r.state) FROM inbound i JOIN runs r ON r.id = i.run "
        "ORDER BY i.id"
    )
    return [(text, ending) for text, ending in rows]


async def until_running(world: World, runs: int = 1) -> None:
    """Wait until so many runs are under way."""
    sql = "SELECT count(*) FROM runs WHERE state = 'running'"
    await world.until(sql, lambda rows: rows[0][0] == runs)


async def post(running: Running, *updates: dict[str, Any]) -> list[int]:
    """Deliver updates one after the other; the status codes."""
    return [(await running.post_update(update)).status_code for update in updates]


def people(count: int, first: int = 700_200_001) -> Sequence[Person]:
    """So many persons in chats of their own."""
    return [Person(first + n) for n in range(count)]
