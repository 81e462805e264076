"""People on WhatsApp: a phone, a business-scoped id, or both, and what they want."""

from __future__ import annotations

from bot.domain.turn import Turn
from bot.operations import chats
from bot.operations.actions import Result
from bot.texts import Text, Words
from tests.fakes.twilio.faults import refused
from tests.kit.agents import Held, repeats
from tests.kit.operating import ANN, act
from tests.kit.whatsapp import CALM, PERSON, echo, endings
from tests.world import World

USER = "whatsapp:US.4566546130240823"
NAMED = "whatsapp:US." + "9aB" * 40
CHATS = "SELECT count(*) FROM chats WHERE merged_into IS NULL"
WORDS = Words.load()


async def says_what_was_said(turn: Turn) -> str:
    return " | ".join([*(line.text for line in turn.history if line.role == "user"), turn.text])


async def test_a_sender_without_a_phone_is_answered_at_the_very_id(world: World) -> None:
    await world.start(agent=echo)
    await world.twilio.inbound("hello", from_=NAMED, user_id=NAMED)
    await world.settled()
    assert world.twilio.texts(NAMED) == ["you said: hello"]
    assert await world.rows("SELECT address FROM chats") == [(NAMED,)]


async def test_phone_and_user_id_are_one_chat_and_each_is_answered_where_it_wrote(
    world: World,
) -> None:
    await world.start(agent=says_what_was_said)
    for text, from_, user in (("one", PERSON, ""), ("two", PERSON, USER), ("three", USER, USER)):
        await world.twilio.inbound(text, from_=from_, user_id=user)
        await world.settled()
    assert await world.rows(CHATS) == [(1,)]
    assert world.twilio.texts(PERSON) == ["one", "one | two"]
    assert world.twilio.texts(USER) == ["one | two | three"]


async def test_b109_two_forms_of_a_number_are_two_chats_and_each_answer_goes_to_its_from(
    world: World,
) -> None:
    await world.start(agent=says_what_was_said)
    old, new = "whatsapp:+520055550012", "whatsapp:+5210055550012"
    await world.twilio.inbound("first", from_=old)
    await world.settled()
    await world.twilio.inbound("second", from_=new, fields={"WaId": "5210055550012"})
    await world.settled()
    assert world.twilio.texts(old) == ["first"]
    assert world.twilio.texts(new) == ["second"]


async def test_b109_with_one_user_id_they_are_one_chat_and_each_is_answered_where_it_wrote(
    world: World,
) -> None:
    await world.start(agent=says_what_was_said)
    old, new = "whatsapp:+520055550012", "whatsapp:+5210055550012"
    for text, from_ in (("first", old), ("second", new)):
        await world.twilio.inbound(text, from_=from_, user_id=USER)
        await world.settled()
    assert await world.rows(CHATS) == [(1,)]
    assert world.twilio.texts(old) == ["first"]
    assert world.twilio.texts(new) == ["first | second"]


async def test_an_answer_goes_where_its_message_came_from_though_the_person_moved_on(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent)
    await world.twilio.inbound("from the phone", user_id=USER)
    await agent.begun.wait()
    await world.twilio.inbound("by name", from_=USER, user_id=USER)
    agent.go.set()
    await world.settled()
    assert world.twilio.texts(PERSON) == ["from the phone"]
    assert world.twilio.texts(USER) == ["by name"]
    assert agent.overlaps == 0


async def test_two_chats_that_turn_out_to_be_one_person_lose_nothing(world: World) -> None:
    for first, second in ((PERSON, USER), (f"{NAMED}X", f"{PERSON}9")):
        agent = Held()
        running = await world.start(agent=agent)
        for from_ in (first, second):
            agent.begun.clear()
            await world.twilio.inbound(f"alone {from_[-2:]}", from_=from_)
            await agent.begun.wait()
        phone, user = sorted((first, second), key=lambda address: "+" not in address)
        await world.twilio.inbound("both", from_=phone, user_id=user)
        agent.go.set()
        await world.settled()
        assert world.twilio.texts(first) + world.twilio.texts(second) == (
            [f"alone {first[-2:]}", "both", f"alone {second[-2:]}"]
            if phone == first
            else [f"alone {first[-2:]}", f"alone {second[-2:]}", "both"]
        )
        assert set(await endings(world)) == {"answered"}
        await running.stop()
    assert await world.rows(CHATS) == [(2,)]


async def test_who_opted_out_at_twilio_opted_out_here_until_start(world: World) -> None:
    world.twilio.fail("create", refused(21610), times=1)
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    assert await endings(world) == ["undeliverable"]
    await world.twilio.inbound("are you there?")
    await world.settled()
    assert world.twilio.texts() == []
    assert await endings(world) == ["undeliverable"]
    for text in ("START", "hello again"):
        await world.twilio.inbound(text)
        await world.settled()
    assert world.twilio.texts() == [WORDS.say(Text.OPTED_IN), "you said: hello again"]


async def test_an_operator_can_not_write_to_who_opted_out(world: World) -> None:
    running = await world.start(agent=repeats, **CALM)
    await world.twilio.inbound("STOP")
    await world.settled()
    ((chat,),) = await world.rows("SELECT id FROM chats")
    rt = running.process.rt
    acted = await act(running, lambda tx: chats.reply(tx, rt, ANN, chat, "one more thing"))
    await world.settled()
    assert acted.result is Result.REFUSED
    assert world.twilio.texts() == [WORDS.say(Text.OPTED_OUT)]


async def test_words_that_were_set_up_at_twilio_opt_out_and_in(world: World) -> None:
    await world.start(agent=echo)
    for text, told in (("genug", "STOP"), ("hello?", ""), ("wieder da", "START"), ("hello!", "")):
        await world.twilio.inbound(text, fields={"OptOutType": told})
        await world.settled()
    said = [WORDS.say(Text.OPTED_OUT), WORDS.say(Text.OPTED_IN), "you said: hello!"]
    assert world.twilio.texts() == said
