"""People delete what they wrote, answer what they wrote before, and change their numbers; Meta
tells of our number itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import permutations

import pytest

from bot.domain.turn import Turn
from bot.privacy.requests import fulfil
from storage import audit_log
from storage.inbox import REVOKED
from tests.fakes.meta import payloads
from tests.fakes.recording import Json
from tests.kit.agents import Echo, Held, repeats
from tests.kit.whatsapp import CALM
from tests.kit.whatsapp_cloud import ALONE
from tests.world import World

ENDINGS = "SELECT ending FROM runs ORDER BY id"
TEXTS = "SELECT text FROM inbound ORDER BY id"
ALL_WORDS = """
SELECT text || payload || coalesce(quoted, '') FROM inbound
UNION ALL SELECT body FROM payloads UNION ALL SELECT text_before || text FROM edits
"""
FIRST = "wamid.first"
SECRET = "my card is 4711"


def text(wamid: str, words: str, at: float, **more: object) -> Json:
    return payloads.message(wamid, at, "text", {"body": words}) | more


async def post(world: World, *messages: Json) -> None:
    change = payloads.change(messages=messages, contacts=[payloads.contact()])
    delivery = await world.meta.deliver(payloads.envelope(change))
    assert delivery.acknowledged


def deletion(world: World, of: str, wamid: str = "wamid.deletion") -> Json:
    return payloads.message(wamid, world.meta.now(), "revoke", {"original_message_id": of})


def edit(world: World, of: str, words: str, wamid: str = "wamid.edit", later: float = 0) -> Json:
    said = {"type": "text", "text": {"body": words}}
    raw = {"original_message_id": of, "message": said}
    return payloads.message(wamid, world.meta.now() + later, "edit", raw)


async def kept(world: World) -> str:
    return " ".join(row[0] for row in await world.rows(ALL_WORDS))


async def test_b148_what_was_deleted_before_anybody_began_is_not_answered(world: World) -> None:
    agent = Held()
    await world.start(agent=agent, **ALONE)
    await post(world, text("wamid.0", "hello", world.meta.now()))
    await agent.begun.wait()
    await post(world, text(FIRST, SECRET, world.meta.now()))
    await post(world, deletion(world, FIRST))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["hello"]
    assert [row[0] for row in await world.rows(ENDINGS)] == ["answered", "withdrawn"]
    assert SECRET not in await kept(world)


async def test_b148_what_was_deleted_after_its_answer_is_gone_from_the_history(
    world: World,
) -> None:
    seen: list[list[str]] = []

    async def agent(turn: Turn) -> str:
        seen.append([line.text for line in turn.history if line.role == "user"])
        return "yes"

    await world.start(agent=agent, **ALONE)
    await post(world, text(FIRST, SECRET, world.meta.now()))
    await world.settled()
    await post(world, edit(world, FIRST, f"{SECRET}, really"))
    assert SECRET in await kept(world)
    for _ in range(2):
        await post(world, deletion(world, FIRST))
        assert SECRET not in await kept(world)
    await post(world, text("wamid.2", "and now?", world.meta.now()))
    await world.settled()
    assert seen == [[], [REVOKED]]
    assert len(world.meta.messages()) == 2


async def test_b148_an_old_delivery_brings_no_deleted_words_back(world: World) -> None:
    await world.start(agent=repeats, **ALONE)
    first = text(FIRST, SECRET, world.meta.now())
    await post(world, first)
    await world.settled()
    await post(world, deletion(world, FIRST))
    await post(world, first)
    await post(world, edit(world, FIRST, f"{SECRET}, really"))
    await world.settled()
    assert await world.rows(TEXTS) == [(REVOKED,)]
    assert SECRET not in await kept(world)
    assert len(world.meta.messages()) == 1


async def test_b148_of_several_messages_that_wait_together_one_may_be_deleted(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent, burst="merge", **ALONE)
    await post(world, text("wamid.0", "hello", world.meta.now()))
    await agent.begun.wait()
    for wamid, words in ((FIRST, SECRET), ("wamid.2", "two pizzas")):
        await post(world, text(wamid, words, world.meta.now()))
    await post(world, deletion(world, FIRST))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["hello", f"{REVOKED}\ntwo pizzas"]


async def test_b148_of_several_messages_that_wait_together_all_may_be_deleted(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent, burst="merge", **ALONE)
    await post(world, text("wamid.0", "hello", world.meta.now()))
    await agent.begun.wait()
    for wamid in (FIRST, "wamid.2"):
        await post(world, text(wamid, SECRET, world.meta.now()))
    for number, wamid in enumerate((FIRST, "wamid.2")):
        await post(world, deletion(world, wamid, f"wamid.deletion-{number}"))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["hello"]
    assert [row[0] for row in await world.rows(ENDINGS)] == ["answered", "withdrawn"]


async def test_b148_a_deletion_of_what_nobody_saw_is_kept_and_says_nothing(world: World) -> None:
    await world.start(agent=repeats, **ALONE)
    await post(world, deletion(world, "wamid.gone"))
    await world.settled()
    assert await world.rows("SELECT ignored FROM payloads") == [
        ("a deletion of a message that was never recorded",)
    ]
    assert world.meta.messages() == []


async def test_b148_what_was_deleted_before_it_came_is_neither_kept_nor_answered(
    world: World,
) -> None:
    agent = Echo()
    await world.start(agent=agent, **ALONE)
    first, other = (text(name, SECRET, world.meta.now()) for name in (FIRST, "wamid.second"))
    for _ in range(2):
        await post(world, deletion(world, FIRST))
    await post(world, first)
    await post(world, text("wamid.third", "hello", world.meta.now()), first)
    gone = deletion(world, "wamid.second", "wamid.other")
    await asyncio.gather(*(post(world, said) for said in (other, gone, other, gone)))
    await world.settled()
    assert agent.calls["hello"] == 1
    assert SECRET not in await kept(world)
    assert await world.rows("SELECT count(*) FROM chats") == [(1,)]
    assert await world.rows("SELECT count(*) FROM inbound") == [(3,)]


async def test_an_edit_that_comes_first_is_used_and_alone_makes_no_run(world: World) -> None:
    agent = Held()
    agent.go.set()
    await world.start(agent=agent, **ALONE)
    changed = edit(world, FIRST, "for four", later=5)
    await post(world, changed)
    await world.settled()
    assert await world.rows("SELECT text, run, ignored FROM inbound") == [
        ("for four", None, "awaited")
    ]
    for said in (text(FIRST, "for two", world.meta.now()), changed):
        await post(world, said, said)
    await world.settled()
    assert agent.texts == ["for four"]
    assert agent.turns[0].messages[0].edited
    assert await world.rows("SELECT deliveries FROM inbound") == [(2,)]
    assert len(world.meta.messages()) == 1


@pytest.mark.parametrize("when", ["confirmed", "done"])
async def test_what_was_written_before_all_was_forgotten_does_not_come_in_behind_its_edit(
    world: World, when: str
) -> None:
    agent = Echo()
    running = await world.start(agent=agent, **ALONE)
    running.process.tasks.tasks["data requests"].cancel()
    changed = edit(world, FIRST, SECRET, later=5)
    first = text(FIRST, f"it was {SECRET}", world.meta.now())
    await post(world, changed)
    for number in range(2):
        await post(world, text(f"wamid.forget.{number}", "/forget", world.meta.now()))
        await world.settled()
    if when == "done":
        assert await fulfil(running.process.rt) == 1
    for said in (changed, first, changed, first):
        await post(world, said)
    if when == "confirmed":
        assert await fulfil(running.process.rt) == 1
    await world.settled()
    assert SECRET not in await kept(world)
    assert agent.calls == Counter()
    assert len(world.meta.messages()) == 2, "the question and the confirmation"
    await post(world, text("wamid.next", "hello", world.meta.now()))
    await world.settled()
    assert agent.calls["hello"] == 1, "a new conversation"


async def test_a_command_in_an_edit_that_comes_first_has_no_effect(world: World) -> None:
    agent = Held()
    await world.start(agent=agent, **ALONE)
    await post(world, text("wamid.0", "think hard", world.meta.now()))
    await agent.begun.wait()
    await post(world, edit(world, FIRST, "stop", later=5))
    await post(world, text(FIRST, "go on", world.meta.now()))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["think hard", "stop"]


async def test_whatever_the_order_and_however_often_the_newest_words_are_answered(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent, **{**ALONE, **CALM, "burst": "each"})
    await post(world, text("wamid.0", "hello", world.meta.now()))
    await agent.begun.wait()
    orders = [*permutations("mde"), *permutations("mef"), *permutations("mefd")]
    for n, order in enumerate(orders):
        name = f"wamid.{n}.m"
        what = {
            "m": text(name, f"old {n}", world.meta.now()),
            "e": edit(world, name, f"new {n}", f"wamid.{n}.e", 2),
            "f": edit(world, name, f"newest {n}", f"wamid.{n}.f", 3),
            "d": deletion(world, name, f"wamid.{n}.d"),
        }
        for place, event in enumerate(order):
            await post(world, *[what[event]] * (1 + (n + place) % 2))
        await post(world, what[order[n % len(order)]])
    agent.go.set()
    await world.settled()
    kept_orders = [n for n, order in enumerate(orders) if "d" not in order]
    assert Counter(agent.texts) == Counter(["hello", *(f"newest {n}" for n in kept_orders)])
    assert await world.rows("SELECT count(*) FROM inbound") == [(len(orders) + 1,)]
    left = await kept(world)
    assert not any(
        f"{word} {n}{end}" in left
        for n, order in enumerate(orders)
        if "d" in order
        for word in ("old", "new", "newest")
        for end in ('"', " ")
    )


@pytest.mark.parametrize("ours", [False, True])
async def test_the_words_that_a_person_replied_to_are_told(world: World, ours: bool) -> None:
    quoted: list[str] = []

    async def agent(turn: Turn) -> str:
        found = turn.messages[0].quoted
        quoted.append(found.text if found else "")
        return "you are welcome"

    await world.start(agent=agent, **ALONE)
    await post(world, text(FIRST, "thank you", world.meta.now()))
    await world.settled()
    name = world.meta.messages()[0].wamid if ours else FIRST
    await post(world, text("wamid.2", "this one", world.meta.now(), context={"id": name}))
    await world.settled()
    assert quoted == ["", "you are welcome" if ours else "thank you"]


async def test_b145_who_changed_the_number_goes_on_in_the_same_chat(world: World) -> None:
    async def agent(turn: Turn) -> str:
        return " | ".join([*(x.text for x in turn.history if x.role == "user"), turn.text])

    await world.start(agent=agent, **ALONE)
    await post(world, text(FIRST, "one", world.meta.now(), from_user_id="US.1"))
    await world.settled()
    moved = {"type": "user_changed_number", "wa_id": "15550100777", "user_id": "US.2"}
    await post(world, payloads.message("wamid.s", world.meta.now(), "system", moved))
    await post(world, text("wamid.2", "two", world.meta.now()) | {"from": "15550100777"})
    await world.settled()
    await post(
        world, text("wamid.3", "three", world.meta.now(), from_user_id="US.2") | {"from": ""}
    )
    await world.settled()
    assert await world.rows("SELECT count(*) FROM chats WHERE merged_into IS NULL") == [(1,)]
    told = [message.text for message in world.meta.messages()]
    assert told == ["one", "one | two", "one | two | three"]


async def test_b145_who_changes_the_number_during_a_turn_is_answered_at_the_new_one(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent, burst="each", **ALONE)
    await post(world, text(FIRST, "one", world.meta.now(), from_user_id="US.1"))
    await agent.begun.wait()
    await post(world, text("wamid.2", "two", world.meta.now(), from_user_id="US.1"))
    moved = {"type": "user_changed_number", "wa_id": "15550100777", "user_id": "US.2"}
    await post(world, payloads.message("wamid.s", world.meta.now(), "system", moved))
    agent.go.set()
    await world.settled()
    told = [(message.text, message.to) for message in world.meta.messages()]
    assert told == [("one", "+15550100777"), ("two", "+15550100777")]


async def test_b145_who_gets_the_number_that_somebody_left_is_another_person(
    world: World,
) -> None:
    seen: list[list[str]] = []

    async def agent(turn: Turn) -> str:
        seen.append([line.text for line in turn.history])
        return "yes"

    await world.start(agent=agent, **ALONE)
    await post(world, text(FIRST, SECRET, world.meta.now(), from_user_id="US.1"))
    await world.settled()
    moved = {"type": "user_changed_number", "wa_id": "15550100777", "user_id": "US.2"}
    notice = payloads.message("wamid.s", world.meta.now(), "system", moved)
    for _ in range(2):
        await post(world, notice)
    await post(world, text("wamid.2", "hello", world.meta.now(), from_user_id="US.3"))
    await world.settled()
    assert seen == [[], []]
    assert await world.rows("SELECT count(*) FROM chats WHERE merged_into IS NULL") == [(2,)]
    # Meta may deliver what it delivered before; by then the number is the stranger's.
    await post(world, notice)
    await post(world, text("wamid.3", "and now?", world.meta.now(), from_user_id="US.3"))
    await world.settled()
    assert seen[2:] == [["hello", "yes"]]
    assert await world.rows("SELECT count(*) FROM chats WHERE merged_into IS NULL") == [(2,)]


async def test_b145_a_known_number_under_another_id_is_another_person_until_meta_says_otherwise(
    world: World,
) -> None:
    seen: list[list[str]] = []

    async def agent(turn: Turn) -> str:
        seen.append([line.text for line in turn.history if line.role == "user"])
        return "yes"

    await world.start(agent=agent, **ALONE)
    writers = {
        FIRST: ("one", "US.1"),
        "wamid.2": ("two", "US.3"),
        "wamid.3": ("three", ""),
        "wamid.4": ("four", "US.1"),
        "wamid.5": ("five", "US.3"),
    }
    for wamid, (words, person) in writers.items():
        who = {"from_user_id": person} if person else {}
        gone = {"from": ""} if words == "four" else {}
        await post(world, text(wamid, words, world.meta.now(), **who) | gone)
        await world.settled()
    assert seen == [[], [], ["two"], ["one"], ["two", "three"]]
    assert [message.to for message in world.meta.messages()][3] == "US.1"
    moved = {"type": "user_changed_user_id", "previous_user_id": "US.1", "user_id": "US.3"}
    await post(world, payloads.message("wamid.s", world.meta.now(), "system", moved))
    await post(world, text("wamid.6", "six", world.meta.now(), from_user_id="US.3"))
    await world.settled()
    assert seen[-1] == ["one", "two", "three", "four", "five"]


async def test_b148_another_agent_that_has_the_number_is_told_to_operators_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    process = await world.start(agent=repeats, **ALONE)
    for n in range(3):
        change = payloads.change(messages=[text(f"wamid.{n}", "hi", 1.0)], field="standby")
        assert (await world.meta.deliver(payloads.envelope(change))).acknowledged
    await world.settled()
    assert await world.rows(TEXTS) == []
    assert await world.rows("SELECT count(*) FROM payloads WHERE ignored LIKE 'standby%'") == [(3,)]
    assert await world.rows("SELECT what FROM events") == [(audit_log.ACCOUNT_REPORT,)]
    assert sum("another agent" in line for line in caplog.messages) == 1
    db = process.process.rt.db
    ((why, age),) = await db.read(audit_log.lately, audit_log.ACCOUNT_REPORT, 60.0 * 60.0)
    assert "another agent has the number" in why
    assert age >= 0.0
    assert await db.read(audit_log.lately, "another word", 60.0 * 60.0) == []
