"""A status with our tag is the witness of a send that Meta took and never answered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bot.delivery.status import record_early
from bot.domain.delivery import PartState
from bot.domain.reply import Reply
from bot.domain.turn import Turn
from bot.operations import parts as operated
from bot.operations.reports.explain import explain_run
from bot.operations.reports.stuck import Trouble, find_stuck
from storage.views.parts import PartFilter, parts_listed
from tests.fakes.faults import Misbehaviour
from tests.fakes.meta import faults, payloads
from tests.fakes.meta.book import Message
from tests.fakes.meta.server import StatusPlan
from tests.fakes.recording import Call, Json
from tests.kit.agents import Echo
from tests.kit.conversation import endings
from tests.kit.operating import ANN, act
from tests.kit.receipts import RECEIPTS
from tests.kit.whatsapp import CALM
from tests.kit.whatsapp_cloud import ALONE, parts, taken
from tests.limits import moment
from tests.world import Running, World

ADA, BOB = "15550100186", "15550100189"
ON: dict[str, Any] = {**ALONE, **CALM, "burst": "each"}
STATES = "SELECT state, provider_status FROM outbox WHERE kind = 'reply' ORDER BY id DESC LIMIT 1"
WAITS_FOR = 120.0
UNANSWERED: list[Callable[[], Misbehaviour]] = [
    faults.hang_after_storing,
    faults.drop_after_storing,
    faults.cut_answer,
    faults.server_error,
    faults.bad_gateway,
    faults.without_id,
    faults.not_json,
    faults.empty_body,
]


def is_reply(call: Call) -> bool:
    """Notes of ours are answered as ever."""
    return str(call.params.get("text", {}).get("body", "")).startswith("re: ")


def replies(world: World) -> list[Message]:
    return [m for m in world.meta.messages() if m.text.startswith("re: ")]


async def unanswered(world: World, text: str, fault: Misbehaviour | None = None) -> Message:
    """A message whose reply Meta takes without an answer."""
    if fault is not None:
        world.meta.fail("send", fault, when=is_reply)
    before = len(replies(world))
    await world.meta.person_writes(text, from_=ADA)
    await world.until(STATES, lambda rows: bool(rows) and rows[0].state == "uncertain")
    assert len(replies(world)) == before + 1
    return replies(world)[-1]


async def passes(world: World, seconds: float) -> None:
    """Let time pass, in steps that a process at work sees."""
    for _ in range(int(seconds / 5)):
        world.advance(5)
        await moment()


async def post_statuses(world: World, *statuses: Json, messages: Sequence[Json] = ()) -> None:
    who = [payloads.contact(BOB)] if messages else []
    change = payloads.change(contacts=who, statuses=statuses, messages=messages)
    delivery = await world.meta.deliver(payloads.envelope(change))
    assert delivery.answers == [200]


@pytest.fixture(autouse=True)
def _silent(world: World) -> None:
    world.meta.plan = lambda _message: StatusPlan.nothing()


@pytest.mark.parametrize("fault", UNANSWERED, ids=lambda make: make.__name__)
@pytest.mark.parametrize("state", ["sent", "delivered", "read"])
async def test_b143_a_status_with_our_tag_is_the_receipt(
    world: World, fault: Callable[[], Misbehaviour], state: str
) -> None:
    world.meta.fail("send", fault(), when=is_reply)
    await world.start(agent=Echo(), **ON)
    message = await unanswered(world, "a")
    await passes(world, 5)
    assert (await world.meta.report(message.wamid, state)) is not None
    await world.settled()
    assert await endings(world) == [("a", "answered")]
    assert await world.rows("SELECT receipt FROM outbox WHERE kind = 'reply'") == [(message.wamid,)]
    assert len(world.meta.calls_of("send")) == 1
    assert world.meta.calls_of("unknown") == []
    assert world.meta.violations == []


async def listed(process: Running) -> tuple[int, bool]:
    """The number of uncertain parts that the operator is shown, and whether `stuck` names one."""
    rt = process.process.rt
    wanted = PartFilter(states=(PartState.UNCERTAIN,))
    shown = await rt.db.read(parts_listed, wanted)
    stuck = await rt.db.read(find_stuck, 0.0, 15.0)
    return len(shown), any(one.kind is Trouble.UNCERTAIN for one in stuck)


async def test_b143_what_no_status_settles_ends_uncertain_and_is_never_sent_again(
    world: World,
) -> None:
    world.meta.fail("send", faults.drop_after_storing(), when=is_reply, times=None)
    process = await world.start(agent=Echo(), **ON)
    message = await unanswered(world, "b")
    await passes(world, WAITS_FOR - 20)
    [(_, waiting)] = await endings(world)
    assert waiting in ("running", "ready")
    await passes(world, 60)
    await world.settled()
    assert await endings(world) == [("b", "uncertain")]
    assert await listed(process) == (1, True)
    for _ in range(2):
        await process.die()
        process = await world.start(agent=Echo(), **ON)
        await passes(world, 30)
        await world.settled()
    assert await endings(world) == [("b", "uncertain")]
    assert [m.wamid for m in replies(world)] == [message.wamid]
    assert len(world.meta.messages()) <= 2, "one note at most"
    assert len([c for c in world.meta.calls_of("send") if is_reply(c)]) == 1


async def test_b143_a_status_that_comes_ten_minutes_late_makes_it_answered(world: World) -> None:
    world.meta.fail("send", faults.drop_after_storing(), when=is_reply, times=None)
    await world.start(agent=Echo(), **ON)
    message = await unanswered(world, "c")
    await passes(world, WAITS_FOR + 30)
    await world.settled()
    assert await endings(world) == [("c", "uncertain")]
    world.advance(600)
    await world.meta.report(message.wamid, "delivered")
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    assert [m.wamid for m in replies(world)] == [message.wamid]
    assert (await world.rows(STATES))[0].state == "delivered"


async def test_b143_the_wait_does_not_run_while_nobody_of_us_lives(world: World) -> None:
    world.meta.fail("send", faults.drop_after_storing(), when=is_reply, times=None)
    process = await world.start(agent=Echo(), **ON)
    message = await unanswered(world, "d")
    await process.die()
    world.advance(3600)
    await world.start(agent=Echo(), **ON)
    await passes(world, 30)
    assert (await endings(world))[0][1] != "uncertain", "an outage of ours counted as a wait"
    await world.meta.report(message.wamid, "sent")
    await world.settled()
    assert await endings(world) == [("d", "answered")]
    assert len(world.meta.messages()) == 1


async def test_b143_a_failure_that_the_tag_tells_was_accepted_and_is_not_sent_again(
    world: World,
) -> None:
    world.meta.fail("send", faults.drop_after_storing(), when=is_reply, times=None)
    await world.start(agent=Echo(), **ON)
    message = await unanswered(world, "e")
    await world.meta.report(message.wamid, "failed", 131026)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("undeliverable",)])
    assert await parts(world) == [("refused", 1, "131026")]
    assert len([c for c in world.meta.calls_of("send") if is_reply(c)]) == 1


async def test_b143_a_failure_that_may_go_once_more_goes_once_more_under_another_tag(
    world: World,
) -> None:
    await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("f", from_=ADA)
    [first] = await taken(world, 1)
    await world.meta.report(first.wamid, "failed", 131000)
    await passes(world, 60)
    await world.meta.wait_for(lambda: len(world.meta.calls_of("send")) == 2)
    [second] = replies(world)
    assert second.tag != first.tag
    await world.meta.report(second.wamid, "delivered")
    await world.settled()
    assert await endings(world) == [("f", "answered")]
    await world.meta.report(second.wamid, "failed", 131000)
    await passes(world, 60)
    assert len(world.meta.calls_of("send")) == 2


async def test_b143_every_send_has_a_tag_of_its_own_without_words_or_digits_of_a_phone(
    world: World,
) -> None:
    async def three(turn: Turn) -> str:
        return "\n\n".join(f"{n} " + f"{turn.text} " * 400 for n in (1, 2, 3))

    world.meta.plan = lambda _message: StatusPlan(("sent",))
    await world.start(agent=three, **ON)
    for person in (ADA, BOB):
        await world.meta.person_writes("swordfish", from_=person)
    await world.settled()
    tags = [message.tag for message in world.meta.messages()]
    assert len(set(tags)) == len(tags) >= 4
    for tag in tags:
        assert 0 < len(tag) <= 512
        assert "sword" not in tag
        assert not re.search(r"\d{7}", tag), f"{tag} looks like a phone number"


async def test_b143_a_second_acceptance_of_one_part_is_recorded_and_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    process = await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("g", from_=ADA)
    [message] = await taken(world, 1)
    await world.meta.report(message.wamid, "sent")
    await world.settled()
    twin = payloads.status(
        world.meta.book.wamid(ADA, ours=True), "sent", world.clock.wall(), to=ADA, tag=message.tag
    )
    await post_statuses(world, twin)
    await world.until(f"SELECT count(*) FROM {RECEIPTS} r", lambda rows: rows == [(2,)])
    assert any(line.levelname in ("ERROR", "CRITICAL") for line in caplog.records)
    assert message.wamid not in caplog.text
    assert await endings(world) == [("g", "answered")]
    assert not process.dead


async def test_b144_statuses_before_the_answer_backwards_twice_beside_a_message_and_a_stranger(
    world: World,
) -> None:
    held = world.meta.fail("send", faults.held_after_storing(), when=is_reply)
    process = await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("hello", from_=BOB)
    await world.meta.wait_for(lambda: bool(held.hits and replies(world)))
    [message] = replies(world)
    at, tag = world.clock.wall(), message.tag

    def status(state: str, later: float) -> Json:
        return payloads.status(message.wamid, state, at + later, to=BOB, tag=tag)

    strangers = payloads.status(
        world.meta.book.wamid("15550100999", ours=True), "sent", at, to="15550100999"
    )
    thanks = world.meta.message("thanks", from_=BOB)
    for _ in range(2):
        await post_statuses(world, status("read", 3))
        await post_statuses(
            world, status("sent", 1), strangers, status("delivered", 2), messages=[thanks]
        )
    held.release()
    await world.until("SELECT count(*) FROM runs", lambda rows: rows == [(2,)])
    await world.settled()
    first = "SELECT state, provider_status, receipt FROM outbox WHERE kind = 'reply' ORDER BY id"
    row = (await world.rows(first))[0]
    assert (row.state, row.receipt) == ("read", message.wamid)
    await post_statuses(world, status("played", 9), status("teleported", 10))
    assert (await world.rows(first))[0].state == "read"
    failed = payloads.status(
        message.wamid, "failed", at + 20, to=BOB, tag=tag, code=131026, words="Undeliverable"
    )
    await post_statuses(world, failed)
    await post_statuses(world, status("sent", 1))
    assert (await world.rows(first))[0].state == "read"
    assert await world.rows(f"SELECT count(*) FROM {RECEIPTS} r") == [(2,)]
    assert await endings(world) == [("hello", "answered"), ("thanks", "answered")]
    assert [m.text for m in replies(world)] == ["re: hello", "re: thanks"]
    assert "teleported" in str(await world.rows("SELECT body FROM payloads"))
    rt = process.process.rt
    [(run,)] = await world.rows("SELECT min(id) FROM runs")
    why = await rt.db.read(explain_run, rt, run, 15.0)
    assert "131026" in repr(why)


async def test_b144_statuses_alone_never_start_anything(world: World) -> None:
    await world.start(agent=Echo(), **ON)
    at = world.clock.wall()
    for tag in ("", "ab1.unknown.1", "ab1.1.1", "ab1.999999.1.6b49d200", "x" * 512, "ab1..", "ü"):
        for state in ("sent", "failed", "read"):
            wamid = world.meta.book.wamid(BOB, ours=True)
            code = 131026 if state == "failed" else None
            await post_statuses(world, payloads.status(wamid, state, at, tag=tag, code=code))
    assert await world.rows("SELECT count(*) FROM runs") == [(0,)]
    assert await world.rows("SELECT count(*) FROM outbox") == [(0,)]
    assert world.meta.calls_of("send") == []


async def test_a_word_on_what_an_earlier_database_sent_is_not_taken_for_this_one(
    world: World,
) -> None:
    await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("hello", from_=ADA)
    [message] = await taken(world, 1)
    await world.settled()
    *_, began = message.tag.split(".")
    older = message.tag.removesuffix(began) + "6553f100"
    at = world.clock.wall()
    wamid = world.meta.book.wamid(ADA, ours=True)
    await post_statuses(world, payloads.status(wamid, "read", at, to=ADA, tag=older))
    assert (await world.rows(STATES))[0].state == "sent"
    assert await world.rows(f"SELECT count(*) FROM {RECEIPTS} r") == [(1,)]


async def test_without_a_tag_the_name_of_the_message_tells(world: World) -> None:
    await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("hello", from_=ADA)
    await world.settled()
    [message] = await taken(world, 1)
    await world.meta.report(message.wamid, "delivered", tagged=False)
    await world.until(STATES, lambda rows: rows[0].state == "delivered")


async def test_a_status_without_a_tag_that_comes_before_the_answer_is_matched_when_it_comes(
    world: World,
) -> None:
    held = world.meta.fail("send", faults.held_after_storing(), when=is_reply)
    await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("hello", from_=ADA)
    await world.meta.wait_for(lambda: bool(held.hits and replies(world)))
    [message] = replies(world)
    for _ in range(2):
        for state in ("read", "sent"):
            await world.meta.report(message.wamid, state, tagged=False)
    assert await world.rows("SELECT count(*) FROM early_statuses") == [(2,)]
    held.release()
    await world.until(STATES, lambda rows: rows[0].state == "sent")
    world.advance(5)
    await world.until(STATES, lambda rows: rows[0].state == "read")
    await world.until("SELECT count(*) FROM early_statuses", lambda rows: rows == [(0,)])
    assert await endings(world) == [("hello", "answered")]


async def test_b144_statuses_of_strangers_are_kept_once_and_not_for_long(world: World) -> None:
    process = await world.start(agent=Echo(), **ON)
    wamid = world.meta.book.wamid("15550100999", ours=True)
    told = [
        payloads.status(wamid, state, world.clock.wall(), to="15550100999", tag=tag)
        for state in ("sent", "delivered")
        for tag in ("", "another bot's")
    ]
    for _ in range(3):
        await post_statuses(world, *told)
    assert await world.rows("SELECT count(*) FROM payloads") == [(len(told),)]
    assert await world.rows("SELECT count(*) FROM early_statuses") == [(2,)]
    world.advance(700)
    await record_early(process.process.rt)
    assert await world.rows("SELECT count(*) FROM early_statuses") == [(0,)]


async def test_parts_wait_for_the_one_before_to_be_sent(world: World) -> None:
    async def three(turn: Turn) -> Reply:
        assert turn.text
        return Reply("\n\n".join(f"{n} " + "word " * 700 for n in (1, 2, 3)))

    await world.start(agent=three, **ON)
    await world.meta.person_writes("hello", from_=ADA)
    for count in (1, 2, 3):
        *_, last = await taken(world, count)
        await moment()
        assert len(world.meta.calls_of("send")) == count
        await world.meta.report(last.wamid, "sent")
    await world.settled()
    assert [text[0] for text in world.meta.texts()] == ["1", "2", "3"]


async def sent_twice(world: World) -> tuple[Message, Message]:
    """A reply that Meta took twice: the operator gave the first attempt up as lost."""
    world.meta.fail("send", faults.drop_after_storing(), when=is_reply)
    process = await world.start(agent=Echo(), **{**ON, "uncertain_delivery": "hold"})
    first = await unanswered(world, "h")
    await passes(world, WAITS_FOR + 30)
    await world.settled()
    [(part,)] = await world.rows("SELECT id FROM outbox WHERE kind = 'reply'")
    rt = process.process.rt
    await act(process, lambda tx: operated.resolve(tx, rt, ANN, part, arrived=False))
    await world.meta.wait_for(lambda: len(replies(world)) == 2)
    await world.settled()
    return first, replies(world)[1]


async def test_b143_the_late_failure_of_an_earlier_attempt_is_not_that_of_the_later_one(
    world: World,
) -> None:
    first, second = await sent_twice(world)
    assert first.tag != second.tag
    await world.meta.report(first.wamid, "failed", 131026)
    await world.meta.report(second.wamid, "delivered")
    assert (await world.rows(STATES))[0].state == "delivered"
    assert await endings(world) == [("h", "answered")]
    await passes(world, 60)
    assert len([c for c in world.meta.calls_of("send") if is_reply(c)]) == 2


async def test_b143_an_earlier_attempt_that_arrived_after_all_is_told_as_a_double(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await sent_twice(world)
    await world.meta.report(second.wamid, "delivered")
    await world.meta.report(first.wamid, "read")
    receipts = f"SELECT receipt FROM {RECEIPTS} r"
    assert {row[0] for row in await world.rows(receipts)} == {first.wamid, second.wamid}
    assert any(line.levelname in ("ERROR", "CRITICAL") for line in caplog.records)
    assert await endings(world) == [("h", "answered")]


async def test_b143_a_failure_told_by_answer_and_by_status_counts_once_an_attempt(
    world: World,
) -> None:
    world.meta.fail("send", faults.server_error(), when=is_reply, times=None)
    await world.start(agent=Echo(), **ON)
    first = await unanswered(world, "i")
    await world.meta.report(first.wamid, "failed", 131000)
    await passes(world, 60)
    await world.meta.wait_for(lambda: len(world.meta.calls_of("send")) == 2)
    [second] = replies(world)
    assert second.tag != first.tag
    for _ in range(2):
        await world.meta.report(first.wamid, "failed", 131000)
        await world.meta.report(second.wamid, "failed", 131000)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("undeliverable",)])
    await passes(world, 60)
    assert len([c for c in world.meta.calls_of("send") if is_reply(c)]) == 2
    assert await parts(world) == [("refused", 2, "131000")]


async def test_b144_the_same_status_ten_times_at_once_with_the_answer_is_one_receipt(
    world: World,
) -> None:
    held = world.meta.fail("send", faults.held_after_storing(), when=is_reply)
    await world.start(agent=Echo(), **ON)
    await world.meta.person_writes("hello", from_=ADA)
    await world.meta.wait_for(lambda: bool(held.hits and replies(world)))
    [message] = replies(world)
    told = world.meta.becomes(message, "delivered")
    status = world.meta.prepare(payloads.envelope(payloads.change(statuses=[told])))
    posting = asyncio.create_task(world.meta.courier.again(status, times=10))
    held.release()
    assert set(await posting) == {200}
    await world.settled()
    assert await world.rows(f"SELECT receipt FROM {RECEIPTS} r") == [(message.wamid,)]
    assert (await world.rows(STATES))[0].state == "delivered"
    assert await endings(world) == [("hello", "answered")]
    assert len(world.meta.calls_of("send")) == 1
