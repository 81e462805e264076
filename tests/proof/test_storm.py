"""A very short storm goes through: real processes, killed for good."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.proof.grounds import Database, storm_on
from benchmarks.proof.ours import Answerback
from benchmarks.proof.plan import Kind, Load, Platform, draw

FEW = Load(rate=4.0, chats=6, takes=(0.05, 0.2))
KINDS = {Kind.KILL: 15.0, Kind.PROVIDER_FAULT: 15.0, Kind.REDELIVERY: 15.0}


@pytest.mark.timeout(900)
@pytest.mark.long
@pytest.mark.parametrize(
    ("database", "platforms"),
    [
        pytest.param(Database.SQLITE, (Platform.TELEGRAM, Platform.WEB), id="SQLite"),
        pytest.param(
            Database.POSTGRESQL,
            (Platform.TWILIO, Platform.META),
            id="PostgreSQL",
            marks=pytest.mark.deep,
        ),
    ],
)
async def test_everybody_is_answered_once_and_in_order_whoever_is_killed(
    database: Database, platforms: Sequence[Platform]
) -> None:
    plan = draw(1, 8.0, platforms, KINDS, FEW)
    async with storm_on(database, plan, Answerback) as storm:
        found = await storm.rage()
    assert found.verdict.findings == []
    assert found.violations == []
    assert found.left == []
    assert found.verdict.messages == len(plan.sayings)
    assert found.befell[Kind.KILL] == plan.of(Kind.KILL) == 2
    assert found.record.starts >= storm.contestant.places + 2
