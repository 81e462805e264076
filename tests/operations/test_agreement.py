"""Every screen has one opinion of what is uncertain, of the next command, and of the note to the
person."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Ending
from bot.domain.reply import PartKind
from bot.operations import parts
from bot.operations.reports.explain import Explained, explain_run
from bot.operations.reports.stuck import Trouble, find_stuck, stuck_of_run, told_of_run, uncertain
from bot.operations.reports.told import told, what_was_told
from storage.outbox import Notice
from storage.statements.tx import Tx
from storage.views.health.gauges import read_gauges
from storage.views.parts import PartLine
from storage.views.runs import RunLine, run_line
from storage.views.timeline import timeline
from tests.cli.test_shapes import made
from tests.fakes import faults
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.operating import ANN, act, close
from tests.world import Running, World

ADA = 700100222
LEASE = 15.0
_REPLY, _NOTE = 1, 2
"""The sends of a run that ends as uncertain, in their order."""


async def one_uncertain(world: World) -> Running:
    """A run whose send lost its answer."""
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=_REPLY)
    process = await world.start(agent=repeats)
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    return process


def line(tx: Tx) -> RunLine:
    found = run_line(tx, 1, LEASE)
    assert found is not None
    return found


async def explained(process: Running) -> Explained:
    rt = process.process.rt
    return await rt.db.read(explain_run, rt, 1, LEASE)


async def test_all_name_the_same_uncertain_part_and_the_same_command(world: World) -> None:
    process = await one_uncertain(world)
    db = process.process.rt.db
    [listed] = [s for s in await db.read(find_stuck, 60.0, LEASE) if s.kind is Trouble.UNCERTAIN]
    [counted] = await db.read(uncertain)
    [of_run] = await db.read(lambda tx: stuck_of_run(tx, line(tx), LEASE))
    why = await explained(process)
    assert (await db.read(read_gauges)).uncertain == 1
    assert listed.id == counted.id == of_run.id
    assert listed.act == counted.act == of_run.act == why.act
    assert told_of_run(of_run, 1) in why.says
    resolve = partial(parts.resolve, arrived=True)
    rt = process.process.rt
    acted = await act(process, lambda tx: resolve(tx, rt, ANN, int(listed.id)))
    assert acted.result.value == "done"
    assert (await db.read(read_gauges)).uncertain == 0
    assert await db.read(uncertain) == []
    assert (await explained(process)).act == "answerback runs show 1  # what happened"


async def test_what_somebody_settled_is_uncertain_nowhere(world: World) -> None:
    process = await one_uncertain(world)
    db = process.process.rt.db
    await close(process, 1, Ending.CANCELLED)
    assert (await db.read(read_gauges)).uncertain == 0
    assert await db.read(uncertain) == []
    assert await db.read(find_stuck, 60.0, LEASE) == []
    assert await db.read(lambda tx: stuck_of_run(tx, line(tx), LEASE)) == []


async def test_a_note_that_did_not_arrive_is_not_claimed(world: World) -> None:
    world.telegram.fail("sendMessage", telegram_faults.blocked(), nth=_NOTE)
    process = await one_uncertain(world)
    said = await process.process.rt.db.read(lambda tx: what_was_told(tx, line(tx)))
    assert "was refused" in said
    assert said in (await explained(process)).says


async def test_the_time_line_has_causes_before_effects(world: World) -> None:
    process = await one_uncertain(world)
    course = await process.process.rt.db.read(timeline, 1)
    told_of = [m.what for m in course if not m.what.startswith(("notice", "receipt"))]
    assert told_of == [
        "message recorded",
        "run made",
        "last claimed",
        "reply stored",
        "reply 1 (part 1) stored",
        "reply 1 (part 1) sending",
        "reply 1 (part 1) is uncertain",
        "ended: uncertain",
        "ended uncertain",
    ]


async def test_a_part_that_waits_says_when_it_is_due(world: World) -> None:
    world.telegram.fail("sendMessage", telegram_faults.too_many(600), nth=1)
    process = await world.start(agent=repeats)
    await process.post_update(Person(ADA).text("hello"))
    put_off = "SELECT 1 FROM outbox WHERE state = 'pending' AND error <> ''"
    await world.until(put_off, lambda rows: rows != [])
    course = await process.process.rt.db.read(timeline, 1)
    [waits] = [m for m in course if m.due is not None]
    assert waits.due is not None
    assert waits.due > waits.at + 500
    assert f"{waits.due:.0f}" not in waits.detail


def note(kind: PartKind, number: int, state: PartState, error: str = "") -> PartLine:
    blank: PartLine = made(PartLine)
    return replace(blank, id=9, kind=kind, part=number, state=state, error=error)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (PartState.PENDING, "is on its way"),
        (PartState.SENDING, "is on its way"),
        (PartState.SENT, "was sent"),
        (PartState.DELIVERED, "arrived"),
        (PartState.READ, "arrived"),
        (PartState.UNCERTAIN, "may not have arrived either"),
        (PartState.REFUSED, "was refused: blocked"),
        (PartState.DROPPED, "was not sent"),
    ],
)
def test_a_note_is_told_as_far_as_it_came(state: PartState, said: str) -> None:
    notes = [
        note(PartKind.NOTICE, Notice.STILL_WORKING, PartState.READ),
        note(PartKind.NOTICE, Notice.UNCERTAIN, state, "blocked"),
        note(PartKind.APOLOGY, 1, state, "blocked"),
    ]
    of_doubt = told(Ending.UNCERTAIN, Cause.UNCONFIRMED, notes)
    assert of_doubt == f"The note about it to the person (part 9) {said}."
    assert told(Ending.APOLOGISED, Cause.FAILURES, notes) == f"The apology (part 9) {said}."
    assert told(Ending.ANSWERED, Cause.DELIVERED, notes) == ""


def test_where_no_note_was_sent_none_is_claimed() -> None:
    assert told(Ending.UNCERTAIN, Cause.UNCONFIRMED, []) == "The person was told nothing of it."
    assert told(Ending.EXPIRED, Cause.TOO_OLD, []) == "The person was told nothing of it."
    assert told(Ending.UNCERTAIN, Cause.SENT_AGAIN, []) == "", "none was owed"
    assert told(Ending.UNDELIVERABLE, Cause.WINDOW_CLOSED, []) == ""
