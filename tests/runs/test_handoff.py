"""A person whom an agent asks for: the chat is told, the agent is silent, somebody comes or not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from bot.domain.errors import GiveUp, Retry
from bot.domain.reply import Reply
from bot.domain.turn import Turn
from bot.operations import chats
from bot.operations.actions import Result
from bot.operations.reports.stuck import Trouble, find_stuck
from bot.runs.handoffs import tell_forsaken
from storage.views import handoffs
from tests.crash.stages import STAGES
from tests.fakes.telegram.faults import too_many
from tests.fakes.updates import Person
from tests.kit.conversation import ADA, PATIENT, endings
from tests.kit.operating import ANN, act
from tests.kit.passing import settle
from tests.world import Running, World

WHY = "wants their money back"
HANDED_OVER = "A person will answer you here"
NOBODY_YET = "Sorry, nobody has been able to answer you yet"


@dataclass
class Asking:
    """Asks for a person where the message says so; what it says besides stands in the message."""

    texts: list[str] = field(default_factory=list)

    async def __call__(self, turn: Turn) -> Reply | str | None:
        self.texts.append(turn.text)
        if "person" not in turn.text:
            return f"re: {turn.text}"
        turn.hand_over(WHY)
        if "gives up" in turn.text:
            raise GiveUp("That is beyond me.")
        if "fails" in turn.text and turn.attempt == 1:
            raise RuntimeError("the agent broke")
        if "later" in turn.text and turn.attempt == 1:
            raise Retry(after=5.0)
        if "says" in turn.text:
            return "\n\n".join(f"{n} I pass that on. ".ljust(3900, ".") for n in (1, 2))
        return None


def said(world: World) -> list[str]:
    """The first sentences of what Ada was shown."""
    return [text.partition(".")[0] for text in world.telegram.texts(ADA)]


async def give_back(process: Running, *, drop: bool = False) -> Result:
    rt = process.process.rt
    acted = await act(process, lambda tx: chats.resume(tx, rt, ANN, 1, drop=drop))
    return acted.result


async def answer(process: Running, world: World, text: str) -> None:
    """Write as the bot, and wait until it arrived."""
    rt = process.process.rt
    acted = await act(process, lambda tx: chats.reply(tx, rt, ANN, 1, text))
    assert acted.result is Result.DONE
    await world.until(
        "SELECT count(*) FROM outbox WHERE kind = 'operator' AND sent_at IS NULL",
        lambda rows: rows[0][0] == 0,
    )


async def begun(world: World, *texts: str) -> tuple[Running, Asking, Person]:
    """Ada's messages, each written when all before is settled."""
    agent = Asking()
    process = await world.start(agent=agent, **PATIENT)
    ada = Person(ADA)
    for text in texts:
        await process.post_update(ada.text(text))
        await settle(world)
    return process, agent, ada


async def wanted(process: Running) -> list[tuple[int, int]]:
    """(chat, messages that wait) of every chat that wants a person."""
    found = await process.process.rt.db.read(handoffs.wanted)
    return [(one.chat, one.messages) for one in found]


async def test_the_answer_is_sent_then_the_notice_and_the_agent_is_silent(world: World) -> None:
    process, agent, ada = await begun(world, "says person")
    assert said(world) == ["1 I pass that on", "2 I pass that on", HANDED_OVER]
    assert await endings(world) == [("says person", "answered")]
    await process.post_update(ada.text("hello?"))
    await process.post_update(ada.text("anybody?"))
    assert agent.texts == ["says person"]
    assert await wanted(process) == [(1, 2)]
    assert [text for text, _ in await endings(world)] == ["says person", "hello?", "anybody?"]
    assert {ending for _, ending in (await endings(world))[1:]} == {"waiting"}


@pytest.mark.parametrize("channel", sorted(STAGES))
async def test_every_channel_has_the_answer_the_notice_and_then_silence(
    world: World, channel: str
) -> None:
    agent, stage = Asking(), STAGES[channel](world)
    running = await stage.start(world, agent=agent, **PATIENT)
    assert await stage.say(running, "person, gives up")
    await settle(world)
    assert await stage.say(running, "hello?")
    texts = [text.partition(".")[0] for text in await stage.shown()]
    assert texts == ["That is beyond me", HANDED_OVER]
    assert agent.texts == ["person, gives up"]
    assert await wanted(running) == [(1, 1)]


async def test_who_asks_for_the_status_is_told_of_the_person(world: World) -> None:
    process, _, ada = await begun(world, "person")
    await process.post_update(ada.command("/status"))
    await settle(world)
    assert said(world) == [
        HANDED_OVER,
        "A person is looking after this chat and will answer you here",
    ]


async def test_an_agent_that_says_nothing_has_the_notice_alone(world: World) -> None:
    process, _, _ = await begun(world, "person")
    assert said(world) == [HANDED_OVER]
    assert await endings(world) == [("person", "silent")]
    [[detail, reason]] = await world.rows("SELECT detail, handoff FROM runs")
    assert (detail, reason) == ("left to a person", WHY)
    [item] = await process.process.rt.db.read(find_stuck, 60.0, 15.0)
    assert (item.kind, item.id) == (Trouble.WANTED, 1)
    assert WHY not in item.why
    assert "answerback chats show 1 --text" in item.act


async def test_a_chat_that_is_given_back_is_answered_by_the_agent(world: World) -> None:
    process, agent, ada = await begun(world, "person")
    await process.post_update(ada.text("hello?"))
    assert await give_back(process) is Result.DONE
    await settle(world)
    assert agent.texts == ["person", "hello?"]
    assert said(world) == [HANDED_OVER, "re: hello?"]
    assert await wanted(process) == []
    assert await give_back(process) is Result.TOO_LATE


async def test_what_waited_can_be_dropped_when_it_is_given_back(world: World) -> None:
    process, agent, ada = await begun(world, "person")
    await process.post_update(ada.text("hello?"))
    assert await give_back(process, drop=True) is Result.DONE
    await process.post_update(ada.text("again"))
    await settle(world)
    assert agent.texts == ["person", "again"]


async def test_a_person_who_answers_is_wanted_again_by_the_next_message(world: World) -> None:
    process, agent, ada = await begun(world, "person")
    await process.post_update(ada.text("hello?"))
    await answer(process, world, "Ann here.")
    assert await wanted(process) == []
    world.advance(1.0)
    await process.post_update(ada.text("thanks, and?"))
    assert await wanted(process) == [(1, 1)]
    assert await give_back(process) is Result.DONE
    await settle(world)
    assert agent.texts == ["person", "thanks, and?"]


async def test_an_agent_that_asked_and_gives_up_has_its_words_sent_and_no_apology(
    world: World,
) -> None:
    await begun(world, "person, gives up")
    assert said(world) == ["That is beyond me", HANDED_OVER]
    assert await endings(world) == [("person, gives up", "answered")]


@pytest.mark.parametrize("how", ["fails", "later"])
async def test_a_turn_that_is_tried_again_tells_once(world: World, how: str) -> None:
    _, agent, _ = await begun(world, f"person {how}")
    assert len(agent.texts) == 2
    assert said(world) == [HANDED_OVER]


async def test_a_step_that_asked_for_a_person_keeps_that_when_it_is_not_done_again(
    world: World,
) -> None:
    calls = []

    async def agent(turn: Turn) -> str:
        def passed_on() -> str:
            calls.append(turn.attempt)
            turn.hand_over(WHY)
            return "passed on"

        found = await turn.step("pass it on", passed_on)
        if turn.attempt == 1:
            raise RuntimeError("the agent broke")
        return str(found)

    process = await world.start(agent=agent, **PATIENT)
    await process.post_update(Person(ADA).text("hello"))
    await settle(world)
    assert calls == [1]
    assert said(world) == ["passed on", HANDED_OVER]


async def test_an_agent_that_breaks_after_it_asked_leaves_the_chat_to_a_person(
    world: World,
) -> None:
    async def agent(turn: Turn) -> str:
        def passed_on() -> None:
            turn.hand_over(WHY)

        await turn.step("pass it on", passed_on)
        raise RuntimeError("the agent broke")

    process = await world.start(agent=agent, **PATIENT)
    await process.post_update(Person(ADA).text("hello"))
    await settle(world)
    assert said(world) == [HANDED_OVER]
    assert await endings(world) == [("hello", "silent")]


async def test_a_person_who_stops_the_turn_is_handed_to_nobody(world: World) -> None:
    agent = Asking()
    process = await world.start(agent=agent, **PATIENT)
    ada = Person(ADA)
    world.telegram.fail("sendMessage", too_many(20))
    await process.post_update(ada.text("says person"))
    await world.until(
        "SELECT count(*) FROM runs WHERE replied AND state = 'ready'", lambda rows: rows[0][0] == 1
    )
    await process.post_update(ada.command("/stop"))
    await settle(world)
    assert said(world) == ["Okay, I've stopped"]
    assert await wanted(process) == []


async def test_nobody_comes_and_that_is_said_once(world: World) -> None:
    process, _, _ = await begun(world, "person")
    rt = process.process.rt
    assert await tell_forsaken(rt) == 0
    world.advance(3601.0)
    told = [await tell_forsaken(rt) for _ in range(2)]
    await settle(world)
    assert sum(told) <= 1  # The process's own look may have been first.
    assert said(world) == [HANDED_OVER, NOBODY_YET]


async def test_nothing_is_said_of_nobody_where_a_person_answered(world: World) -> None:
    process, _, _ = await begun(world, "person")
    world.advance(1.0)
    await answer(process, world, "Ann here.")
    world.advance(3601.0)
    assert await tell_forsaken(process.process.rt) == 0
    assert said(world) == [HANDED_OVER, "Ann here"]
