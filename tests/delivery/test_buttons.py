"""Pressed buttons: answered at once, and once; what they stood for reaches the agent."""

from __future__ import annotations

from bot.domain.reply import Button, Reply
from bot.domain.turn import Turn
from bot.texts import Text, Words
from tests.fakes.telegram.faults import hang_after_storing, too_many
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.world import Running, World

CHAT = 700100226
LONG = "answer:" + "x" * 200


def pressed(world: World, ada: Person, label: str, query: str) -> dict[str, object]:
    """A press of the button with this label, as Telegram would send it."""
    shown = next(m for m in reversed(world.telegram.messages(CHAT)) if m.buttons)
    [data] = [b["callback_data"] for row in shown.buttons for b in row if b["text"] == label]
    message = {
        "message_id": shown.message_id,
        "chat": ada.chat,
        "date": ada.at,
        "text": shown.text,
        "reply_markup": {"inline_keyboard": shown.buttons},
    }
    return ada.press(data, message, query)


async def press(world: World, process: Running, ada: Person, label: str, query: str) -> None:
    response = await process.post_update(pressed(world, ada, label, query))
    assert response.status_code == 200


async def acknowledged(world: World, count: int) -> list[str]:
    """The texts over the buttons, when there are so many."""
    bot = world.telegram.main
    await world.telegram.record.wait_for(lambda: len(bot.answered) >= count)
    return [answer.get("text", "") for answer in bot.answered]


async def test_b101_a_press_during_a_long_run_is_acknowledged_once_and_answered_after_it(
    world: World,
) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("take your time"))
    await agent.begun.wait()
    query = {"id": "cq1", "from": ada.sender, "data": "opt:2"}
    message = {"message_id": 90, "date": ada.at, "chat": ada.chat}
    update = {"update_id": 810000300, "callback_query": {**query, "message": message}}
    for _ in range(3):
        assert (await process.post_update(update)).status_code == 200
    await acknowledged(world, 1)
    assert len(agent.turns) == 1
    agent.go.set()
    await world.settled()
    assert agent.texts == ["take your time", "opt:2"]
    assert agent.turns[1].messages[0].button == "opt:2"
    assert len(world.telegram.main.answered) == 1


async def test_a_button_with_long_data_gives_all_of_it_back(world: World) -> None:
    turns: list[Turn] = []

    async def agent(turn: Turn) -> Reply:
        turns.append(turn)
        return Reply("Which one?", buttons=(Button("This", LONG), Button("That", "short")))

    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("show me"))
    await world.settled()
    await press(world, process, ada, "This", "cq1")
    await world.settled()
    pressed_message = turns[1].messages[0]
    assert (pressed_message.text, pressed_message.button) == ("This", LONG)
    assert pressed_message.quoted is not None
    assert pressed_message.quoted.text == "Which one?"


async def test_the_retry_button_makes_one_new_run_however_often_it_is_pressed(
    world: World,
) -> None:
    broken = True
    calls = 0

    async def agent(turn: Turn) -> str:
        nonlocal calls
        calls += 1
        if broken:
            raise RuntimeError("out of order")
        return "here you are"

    process = await world.start(agent=agent, max_failures=1)
    ada = Person(CHAT)
    await process.post_update(ada.text("please"))
    await world.settled()
    broken = False
    for number in range(3):
        await press(world, process, ada, "Try again", f"cq{number}")
    await world.settled()
    assert calls == 2
    assert world.telegram.texts(CHAT)[-2:] in (
        ["I'm trying again.", "here you are"],
        ["here you are", "I'm trying again."],
    )
    toasts = await acknowledged(world, 3)
    assert toasts[0] == "I'm trying again."
    assert len(toasts) == 3
    assert await world.rows("SELECT ending FROM runs ORDER BY id") == [
        ("apologised",),
        ("answered",),
    ]


async def test_the_button_under_the_uncertain_note_sends_the_answer_once_more(
    world: World,
) -> None:
    lost = world.telegram.fail("sendMessage", hang_after_storing())
    process = await world.start(agent=repeats)
    ada = Person(CHAT)
    await process.post_update(ada.text("hello"))
    await world.settled()
    assert len(lost.hits) == 1
    for number in range(3):
        await press(world, process, ada, "Send it again", f"cq{number}")
    await world.settled()
    assert world.telegram.texts(CHAT).count("hello") == 2
    assert await world.rows("SELECT ending FROM runs") == [("answered",)]
    assert (await acknowledged(world, 3))[0] == "Here it is again."


async def test_an_answer_that_is_asked_for_again_days_later_is_as_young_as_the_wish(
    world: World,
) -> None:
    world.telegram.fail("sendMessage", hang_after_storing())
    process = await world.start(agent=repeats)
    ada = Person(CHAT)
    await process.post_update(ada.text("hello"))
    await world.settled()
    await process.stop()
    world.advance(3 * 86_400)
    process = await world.start(agent=repeats)
    await press(world, process, ada, "Send it again", "cq1")
    await world.settled()
    assert world.telegram.texts(CHAT).count("hello") == 2
    assert await world.rows("SELECT ending FROM runs") == [("answered",)]


async def test_a_stop_takes_back_the_wish_to_have_an_answer_again(world: World) -> None:
    world.telegram.fail("sendMessage", hang_after_storing())
    process = await world.start(agent=repeats)
    ada = Person(CHAT)
    await process.post_update(ada.text("hello"))
    await world.settled()
    world.telegram.fail("sendMessage", too_many(20), times=1)
    await press(world, process, ada, "Send it again", "cq1")
    await world.until(
        "SELECT count(*) FROM outbox WHERE kind = 'reply' AND state = 'pending' AND attempts = 2",
        lambda rows: rows[0][0] == 1,
    )
    await process.post_update(ada.command("/stop"))
    world.advance(25)
    await world.settled()
    assert world.telegram.texts(CHAT).count("hello") == 1
    assert world.telegram.texts(CHAT)[-1] == Words.load().say(Text.STOPPED)
