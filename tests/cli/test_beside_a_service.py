"""The command line as a process, on both databases, while a service runs."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.asking import call
from tests.e2e.processes import Ground
from tests.fakes import faults
from tests.fakes.telegram.server import USERNAME
from tests.fakes.updates import Person, entity, supergroup

ADA = 700100201
BIG = 5000000123
GROUP = -1001234567890123
WIDE = 4503599627370495

RUN_KEYS = {
    "id", "request_id", "requests", "channel", "chat", "state", "ending", "detail", "attempts",
    "failures", "holder", "age_s", "created_at",
}  # fmt: skip
PART_KEYS = {"id", "run", "kind", "part", "state", "receipt", "attempts", "error"}
STATUS_KEYS = {"request_id", "status", "queued", "ending", "answer", "text"}
STUCK_KEYS = {"kind", "id", "since_s", "why", "act"}


async def test_reading_verbs_print_the_promised_json(ground: Ground) -> None:
    service = await ground.serve()
    world = ground.world
    ada = Person(ADA)
    await service.post_update(ada.text("hello"))
    await world.settled()
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=1)
    await service.post_update(ada.text("unknown"))
    await world.settled()
    listed, first, sent, stuck, shown = await asyncio.gather(
        call(ground, "runs", "list", "--json"),
        call(ground, "status", f"tg-{ADA}-41", "--json"),
        call(ground, "outbox", "list", "--json", "--state", "uncertain"),
        call(ground, "stuck", "--json", "--offline"),
        call(ground, "runs", "show", f"tg-{ADA}-41", "--json"),
    )
    assert [run["ending"] for run in listed.json] == ["uncertain", "answered"]
    assert set(listed.json[0]) >= RUN_KEYS
    assert listed.json[1]["requests"] == [f"tg-{ADA}-41"]
    assert set(first.json) == STATUS_KEYS
    assert (first.code, first.json["status"]) == (0, "completed")
    assert set(sent.json[0]) >= PART_KEYS
    assert stuck.code == 1
    assert set(stuck.json[0]) == STUCK_KEYS
    assert stuck.json[0]["kind"] == "sent? unknown"
    assert {"run made", "reply stored"} <= {moment["what"] for moment in shown.json["timeline"]}
    assert "hello" not in shown.out
    for told in (listed, first, sent, stuck, shown):
        assert told.err == ""


async def test_b51_big_and_negative_ids_are_shown_and_taken(ground: Ground) -> None:
    service = await ground.serve()
    big = Person(BIG)
    member = Person(WIDE, supergroup(GROUP))
    mention = entity("mention", f"@{USERNAME} hello", f"@{USERNAME}")
    await service.post_update(big.text("hello"))
    await service.post_update(member.text(f"@{USERNAME} hello", mention))
    await ground.world.settled()
    shown, listed, filtered = await asyncio.gather(
        call(ground, "chats", "show", str(GROUP), "--json"),
        call(ground, "runs", "list", "--chat", str(GROUP), "--json"),
        call(ground, "runs", "list", f"--chat={BIG}", "--json"),
    )
    assert shown.json["address"] == str(GROUP)
    assert {run["address"] for run in listed.json} == {str(GROUP)}
    assert [run["address"] for run in filtered.json] == [str(BIG)]
    replied = await call(ground, "chats", "reply", str(GROUP), "-5 degrees")
    assert replied.code == 0, replied.err
    await ground.world.settled()
    assert "-5 degrees" in ground.world.telegram.texts(GROUP)


async def test_acts_work_beside_the_service_and_exit_codes_tell(ground: Ground) -> None:
    service = await ground.serve()
    world = ground.world
    ada = Person(ADA)
    await service.post_update(ada.text("hello"))
    await world.settled()
    paused = await call(ground, "chats", "pause", str(ADA), "--reason", "by hand")
    assert (paused.code, "paused" in paused.out) == (0, True)
    await service.post_update(ada.text("waits"))
    refused, unknown, planned = await asyncio.gather(
        call(ground, "runs", "requeue", f"tg-{ADA}-41"),
        call(ground, "runs", "requeue", "tg-0-0"),
        call(ground, "runs", "close", "--as", "cancelled", "--state", "waiting", "--dry-run"),
    )
    assert (refused.code, "answer twice" in refused.out) == (1, True)
    assert (unknown.code, "no run is named tg-0-0" in unknown.err) == (1, True)
    assert (planned.code, "would be done" in planned.out) == (0, True)
    replied = await call(ground, "chats", "reply", str(ADA), "Ann is here", "--who", "ann@session")
    assert replied.code == 0, replied.err
    arrived = "SELECT count(*) FROM outbox WHERE kind = 'operator' AND state = 'sent'"
    await world.until(arrived, lambda rows: rows[0][0] == 1)  # Only what arrived is an answer.
    resumed = await call(ground, "chats", "resume", str(ADA))
    assert resumed.code == 0, resumed.err
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == "Ann is here"
    rows = await world.rows("SELECT who, what FROM events WHERE what = 'replied by hand'")
    assert [tuple(row) for row in rows] == [("ann@session", "replied by hand")]


async def test_b97_two_shells_at_once_and_one_wins(ground: Ground) -> None:
    service = await ground.serve(UNCERTAIN_DELIVERY="hold")
    world = ground.world
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=1)
    await service.post_update(Person(ADA).text("hello"))
    await world.settled()
    shells = await asyncio.gather(
        *(call(ground, "runs", "requeue", "1", "--may-duplicate") for _ in range(2))
    )
    assert sorted(shell.code for shell in shells) == [0, 1]
    await world.settled()
    assert len(world.telegram.calls_of("sendMessage", ADA)) == 2


@pytest.mark.parametrize("given", ["1\n2\n", '[{"id": 1}, {"id": 2}]'])
async def test_many_need_a_yes_and_may_come_from_standard_input(
    sqlite_ground: Ground, given: str
) -> None:
    ground = sqlite_ground
    service = await ground.serve("web")
    await service.post_update(Person(ADA).text("one"))
    await service.post_update(Person(BIG).text("two"))
    words = ("runs", "close", "-", "--as", "cancelled")
    asked = await call(ground, *words, given=given)
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert await ground.world.rows("SELECT DISTINCT state FROM runs") == [("ready",)]
    done = await call(ground, *words, "--yes", "--json", given=given)
    assert done.code == 0
    assert [acted["result"] for acted in done.json] == ["done", "done"]
    assert await ground.world.rows("SELECT DISTINCT ending FROM runs") == [("cancelled",)]
