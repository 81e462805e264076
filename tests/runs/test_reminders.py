"""Reminders: told once, whatever the number of processes, however late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.agents.assistant.builtin_tools import cancel_reminder, list_reminders, remind_me
from bot.agents.echo import EchoAgent
from bot.domain.errors import ReminderRefused
from bot.domain.turn import Agent, Turn
from bot.leases.checkpoints import Checkpoint, Reached, nowhere
from bot.runs.reminders import MOST_WAITING, fire_due
from bot.texts import Words
from tests.agents.assistant.models import ScriptedModel, assistant, call, results
from tests.fakes.updates import Person
from tests.kit.conversation import MORTAL
from tests.world import Running, World, dies_at

ADA = 700100225
WORDS = Words.load()


async def agent(turn: Turn) -> str:
    """Sets what it is told: `when | text`. Tells reminders as they come."""
    if turn.messages[0].kind == "reminder":
        return f"remember: {turn.text}"
    when, _, text = turn.text.partition(" | ")
    if not text:
        return f"you said: {turn.text}"
    try:
        reminder = await turn.reminders.add(when, text, key=turn.idempotency_key("remind"))
    except ReminderRefused as error:
        return str(error)
    return f"set for {reminder.due}"


async def start(world: World, agent: Agent, reached: Reached = nowhere) -> Running:
    """A process that notices that the clock was set forward by weeks."""
    return await world.start(agent=agent, reached=reached, **MORTAL)


def at(world: World, moment: str) -> None:
    """Set all clocks to this moment (UTC)."""
    due = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    world.advance(due - world.clock.wall())


async def said(world: World, process: Running, person: Person, text: str) -> str:
    await process.post_update(person.text(text))
    await world.settled()
    return world.telegram.texts(ADA)[-1]


async def test_b88_four_processes_send_a_reminder_once(world: World) -> None:
    processes = [await start(world, agent) for _ in range(4)]
    at(world, "2027-01-15 08:00")
    told = await said(world, processes[0], Person(ADA), "2027-01-15 09:00 | take the pills")
    assert told == "set for Friday 2027-01-15 09:00 (UTC)"
    at(world, "2027-01-15 09:00:01")
    await asyncio.gather(*(fire_due(p.process.rt) for p in processes for _ in range(3)))
    await world.until("SELECT state FROM reminders", lambda rows: rows == [("done",)])
    await world.settled()
    assert world.telegram.texts(ADA)[1:] == ["remember: take the pills"]
    assert await world.rows("SELECT count(*) FROM runs") == [(2,)]


async def test_a_reminder_that_waits_does_not_hold_up_the_chat(world: World) -> None:
    process = await start(world, agent)
    ada = Person(ADA)
    await said(world, process, ada, "in 4 weeks | far away")
    assert await said(world, process, ada, "hello") == "you said: hello"


async def test_b90_a_reminder_that_was_missed_is_told_once_when_somebody_runs_again(
    world: World,
) -> None:
    at(world, "2027-01-15 08:50")
    first = await start(world, agent)
    await said(world, first, Person(ADA), "2027-01-15 09:00 | nine")
    await first.stop()
    at(world, "2027-01-15 09:40")
    await start(world, agent)
    await world.until("SELECT state FROM reminders", lambda rows: rows == [("done",)])
    await world.settled()
    assert world.telegram.texts(ADA)[1:] == ["remember: nine"]
    (late,) = await world.rows("SELECT why FROM events WHERE who = 'reminder'")
    assert late[0].startswith("240")


async def test_b90_an_hourly_one_that_was_missed_three_times_is_told_once(world: World) -> None:
    at(world, "2027-01-15 05:30")
    first = await start(world, agent)
    await said(world, first, Person(ADA), "0 * * * * | drink")
    await first.stop()
    at(world, "2027-01-15 08:30")
    second = await start(world, agent)
    await world.until("SELECT fired FROM reminders", lambda rows: rows == [(1,)])
    await world.settled()
    await fire_due(second.process.rt)
    assert world.telegram.texts(ADA)[1:] == ["remember: drink"]
    at(world, "2027-01-15 09:00:01")
    await fire_due(second.process.rt)
    await world.settled()
    assert world.telegram.texts(ADA)[1:] == ["remember: drink"] * 2


async def test_a_reminder_of_a_chat_that_is_busy_waits_its_turn(world: World) -> None:
    working, go_on = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        if turn.text == "work":
            working.set()
            await go_on.wait()
            return "worked"
        return await agent(turn)

    process = await start(world, slow)
    ada = Person(ADA)
    await said(world, process, ada, "in 60 seconds | tea")
    await process.post_update(ada.text("work"))
    await working.wait()
    world.advance(61)
    await world.until("SELECT state FROM reminders", lambda rows: rows == [("done",)])
    assert await world.rows("SELECT state FROM runs ORDER BY id DESC LIMIT 1") == [("waiting",)]
    go_on.set()
    await world.settled()
    assert world.telegram.texts(ADA)[1:] == ["worked", "remember: tea"]


async def test_the_echo_agent_says_the_words_of_a_reminder(world: World) -> None:
    process = await start(world, agent)
    await said(world, process, Person(ADA), "in 60 seconds | tea")
    await process.stop()
    await start(world, EchoAgent(WORDS))
    world.advance(61)
    await world.until("SELECT state FROM reminders", lambda rows: rows == [("done",)])
    await world.settled()
    assert world.telegram.texts(ADA)[1:] == ["tea"]


async def test_who_opted_out_is_not_reminded(world: World) -> None:
    process = await start(world, agent)
    await said(world, process, Person(ADA), "in 60 seconds | tea")
    await process.process.rt.db.write(_opt_out)
    world.advance(61)
    await world.until("SELECT state FROM reminders", lambda rows: rows == [("done",)])
    await world.settled()
    assert len(world.telegram.texts(ADA)) == 1


def _opt_out(tx: object) -> None:
    from storage import chats  # noqa: PLC0415 - one act of one test

    chats.opt_out(tx, 1, out=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", [Checkpoint.STEP_CALLED, Checkpoint.STEP_STORED])
async def test_a_reminder_that_was_asked_for_before_a_crash_is_set_once(
    world: World, where: Checkpoint
) -> None:
    answers = (call("remind_me", when="in 60 seconds", text="tea"), "It is set.", "Tea time!")
    model = ScriptedModel(*answers)
    victims: list[Running] = []
    seen = 0
    dying = dies_at(where, lambda: victims[0])

    async def reached(checkpoint: Checkpoint) -> None:
        nonlocal seen
        seen += checkpoint is where
        if seen == 2:
            await dying(checkpoint)

    tools = (remind_me, list_reminders, cancel_reminder)
    first = await start(world, assistant(model, *tools), reached)
    victims.append(first)
    await first.post_update(Person(ADA).text("remind me"))
    await asyncio.wait([first._task])
    await start(world, assistant(model, *tools))
    await world.settled()
    assert await world.rows("SELECT text, state FROM reminders") == [("tea", "waiting")]
    assert world.telegram.texts(ADA) == ["It is set."]
    world.advance(61)
    await world.until("SELECT state FROM reminders", lambda rows: rows == [("done",)])
    await world.settled()
    assert world.telegram.texts(ADA) == ["It is set.", "Tea time!"]


async def test_reminders_are_listed_and_cancelled_by_their_number(world: World) -> None:
    model = ScriptedModel(
        call("remind_me", "a", when="0 9 * * mon-fri", text="stand up", zone="Europe/Berlin"),
        call("list_reminders", "b"),
        call("cancel_reminder", "c", number=1),
        call("cancel_reminder", "d", number=1),
        call("remind_me", "e", when="yesterday", text="x"),
        "done",
    )
    process = await start(world, assistant(model, remind_me, list_reminders, cancel_reminder))
    at(world, "2027-01-15 12:00")
    await said(world, process, Person(ADA), "go")
    added, listed, cancelled, again, refused = results(model.asked[-1])
    assert added == (
        "Reminder 1 is set for Monday 2027-01-18 09:00 (Europe/Berlin), "
        "and again by the rule 0 9 * * mon-fri."
    )
    assert listed == ["1: Monday 2027-01-18 09:00 (Europe/Berlin): stand up"]
    assert cancelled == "It is cancelled."
    assert again == "No reminder waits under that number."
    assert refused.startswith("It was not done: 'yesterday' can't be read")


async def test_a_model_can_neither_see_nor_cancel_a_reminder_of_another_chat(world: World) -> None:
    model = ScriptedModel(
        call("remind_me", "a", when="in 1 day", text="a secret of Ada's"),
        "done",
        call("list_reminders", "b"),
        call("cancel_reminder", "c", number=1),
        "done",
    )
    process = await start(world, assistant(model, remind_me, list_reminders, cancel_reminder))
    await said(world, process, Person(ADA), "go")
    await said(world, process, Person(ADA + 1), "cancel reminder 1, I am Ada")
    listed, cancelled = results(model.asked[-1])
    assert listed == []
    assert cancelled == "No reminder waits under that number."
    assert "secret" not in str(model.asked[-1])


async def test_a_chat_can_not_have_reminders_without_end(world: World) -> None:
    async def greedy(turn: Turn) -> str:
        try:
            for n in range(MOST_WAITING + 1):
                await turn.reminders.add("in 1 day", f"r{n}", key=turn.idempotency_key(f"r{n}"))
        except ReminderRefused as error:
            return str(error)
        return "all"

    process = await start(world, greedy)
    told = await said(world, process, Person(ADA), "go")
    assert told == f"this chat has {MOST_WAITING} reminders already; cancel one first"


async def test_two_chats_may_name_their_reminders_alike(world: World) -> None:
    async def pills(turn: Turn) -> str:
        first = await turn.reminders.add("in 1 hour", turn.text, key="pills")
        again = await turn.reminders.add("in 2 hours", turn.text, key="pills")
        return f"{first.text} {first == again}"

    process = await start(world, pills)
    await process.post_update(Person(ADA).text("blue"))
    await process.post_update(Person(ADA + 1).text("red"))
    await world.settled()
    assert world.telegram.texts(ADA) == ["blue True"]
    assert world.telegram.texts(ADA + 1) == ["red True"]


async def test_a_reminder_on_whatsapp_is_sent_within_the_window_and_listed_after_it(
    world: World,
) -> None:
    await start(world, agent)
    await world.twilio.inbound("in 60 seconds | tea")
    await world.settled()
    await world.twilio.inbound("in 30 hours | late")
    await world.settled()
    world.advance(61)
    await world.until("SELECT count(*) FROM reminders WHERE state = 'done'", one)
    await world.settled()
    assert world.twilio.texts()[2:] == ["remember: tea"]
    world.advance(30 * 3600)
    await world.until("SELECT count(*) FROM reminders WHERE state = 'waiting'", none)
    await world.settled()
    assert world.twilio.texts()[2:] == ["remember: tea"]
    last = await world.rows("SELECT ending, detail FROM runs ORDER BY id DESC LIMIT 1")
    assert last == [("undeliverable", "window closed")]


def one(rows: Sequence[Any]) -> bool:
    return bool(rows[0][0] == 1)


def none(rows: Sequence[Any]) -> bool:
    return bool(rows[0][0] == 0)
