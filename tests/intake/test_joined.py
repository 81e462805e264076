"""Messages that belong together are one turn: pieces of a text, files picked at once, forwards;
and the payload of a link reaches the agent."""

from __future__ import annotations

import pytest

from bot.domain.decisions.terms import Burst
from bot.domain.turn import Turn
from tests.fakes.updates import Person, entity, supergroup, user
from tests.kit.agents import Echo, Held, repeats
from tests.kit.conversation import until_running
from tests.world import World

ADA = 700200110
GROUP = -1007000000910
PIECE = "x" * 4096
TAIL = "tail: what do you think?"


class Brief(Held):
    """Remembers its turns, and answers each with one word, once it may."""

    async def __call__(self, turn: Turn) -> str:
        await super().__call__(turn)
        return "ok"


def brief() -> Brief:
    """One that may answer at once."""
    agent = Brief()
    agent.go.set()
    return agent


@pytest.mark.parametrize("burst", Burst)
@pytest.mark.parametrize("later", [0.06, 0.7])
async def test_b115_a_text_that_its_client_cut_is_one_turn(
    world: World, burst: Burst, later: float
) -> None:
    agent = brief()
    process = await world.start(agent=agent, burst=burst)
    world.stop_time()
    ada = Person(ADA, first_message=501)
    await process.post_update(ada.text(PIECE))
    world.advance(later)
    await process.post_update(ada.text(TAIL))
    world.advance(2.1)
    await world.settled()
    assert [[m.text for m in turn.messages] for turn in agent.turns] == [[PIECE, TAIL]]
    assert await world.rows("SELECT count(*) FROM runs") == [(1,)]
    assert len(world.telegram.texts(ADA)) >= 1


async def test_b115_the_pieces_come_together_although_the_process_died_between_them(
    world: World,
) -> None:
    agent = brief()
    process = await world.start(agent=agent)
    world.stop_time()
    ada = Person(ADA, first_message=501)
    await process.post_update(ada.text(PIECE))
    await process.die()
    world.advance(30)
    process = await world.start(agent=agent)
    world.advance(1)
    await process.post_update(ada.text(TAIL))
    world.advance(7)
    await world.settled()
    assert [[m.text for m in turn.messages] for turn in agent.turns] == [[PIECE, TAIL]]


async def test_a_process_that_begins_beside_one_that_listens_puts_no_piece_off(
    world: World,
) -> None:
    process = await world.start(agent=brief())
    world.stop_time()
    await process.post_update(Person(ADA, first_message=501).text(PIECE))
    due = await world.rows("SELECT not_before FROM runs")
    await world.start(agent=brief(), holder_name="beside")
    assert await world.rows("SELECT not_before FROM runs") == due


async def test_b115_a_short_text_alone_waits_for_nothing(world: World) -> None:
    process = await world.start(agent=repeats)
    world.stop_time()
    await process.post_update(Person(700200111).text("hi"))
    await world.settled()
    assert world.telegram.texts(700200111) == ["hi"]


@pytest.mark.parametrize("burst", Burst)
async def test_a_text_of_many_pieces_is_waited_for_from_piece_to_piece(
    world: World, burst: Burst
) -> None:
    agent = brief()
    process = await world.start(agent=agent, burst=burst)
    world.stop_time()
    ada = Person(ADA)
    pieces = [f"{number}{'x' * 3000}" for number in range(6)]
    for piece in (*pieces, TAIL):
        await process.post_update(ada.text(piece))
        world.advance(1.5)
    world.advance(1)
    await world.settled()
    assert [[m.text for m in turn.messages] for turn in agent.turns] == [[*pieces, TAIL]]


async def test_a_piece_behind_a_running_turn_takes_its_rest_and_nothing_later(
    world: World,
) -> None:
    agent = Brief()
    process = await world.start(agent=agent, burst="each", lease_seconds=1e6)
    ada = Person(ADA)
    await process.post_update(ada.text("first"))
    await until_running(world)
    await process.post_update(ada.text(PIECE))
    await process.post_update(ada.text(TAIL))
    world.advance(60)
    await process.post_update(ada.text("something else"))
    agent.go.set()
    await world.settled()
    said = [[m.text for m in turn.messages] for turn in agent.turns]
    assert said == [["first"], [PIECE, TAIL], ["something else"]]


@pytest.mark.parametrize("asked_in", [0, 1])
async def test_in_a_group_the_whole_text_is_for_the_bot_if_a_piece_of_it_is(
    world: World, asked_in: int
) -> None:
    agent = brief()
    process = await world.start(agent=agent)
    world.stop_time()
    ada = Person(ADA, supergroup(GROUP))
    bob = Person(700200119, supergroup(GROUP), sender=user(700200119, "Bob"))
    texts = [PIECE[:4000], TAIL]
    texts[asked_in] = f"@relay_test_bot {texts[asked_in]}"
    for number, text in enumerate(texts):
        marks = [entity("mention", text, "@relay_test_bot")] if number == asked_in else []
        await process.post_update(ada.text(text, *marks))
        await process.post_update(bob.text("between"))
    world.advance(2.1)
    await world.settled()
    assert [[m.text for m in turn.messages] for turn in agent.turns] == [texts]


async def test_messages_forwarded_at_once_are_one_turn(world: World) -> None:
    agent = brief()
    process = await world.start(agent=agent)
    world.stop_time()
    ada = Person(ADA)
    origin = {"type": "hidden_user", "sender_user_name": "Bob", "date": 1}
    for text in ("one", "two", "three"):
        await process.post_update(ada.forward(text, origin))
        world.advance(0.3)
    world.advance(2)
    await world.settled()
    assert [len(turn.messages) for turn in agent.turns] == [3]


async def test_pictures_picked_at_once_on_whatsapp_are_one_turn(world: World) -> None:
    agent = brief()
    await world.start(agent=agent, lease_seconds=1e6)
    world.stop_time()
    for number, caption in enumerate(("which one?", "", "")):
        fields = {
            "NumMedia": "1",
            "MediaUrl0": f"https://api.twilio.com/media/{number}",
            "MediaContentType0": "image/jpeg",
            "MessageType": "image",
        }
        await world.twilio.inbound(caption, fields=fields)
        world.advance(0.4)
    world.advance(2)
    await world.settled()
    [turn] = agent.turns
    assert [m.text for m in turn.messages] == ["which one?", "[a photo]", "[a photo]"]


async def test_b116_the_payload_of_a_link_reaches_the_agent(world: World) -> None:
    agent = Echo()
    process = await world.start(agent=agent)
    ada = Person(700200112, first_message=601)
    await process.post_update(ada.command("/start ref_42-abc"))
    await world.settled()
    await process.post_update(ada.text("hello"))
    await world.settled()
    assert world.telegram.texts(700200112) == ["re: /start ref_42-abc", "re: hello"]


@pytest.mark.parametrize("start", ["/start", "/start ", "/start \u200b", "/START \u2060\u3164"])
async def test_b116_a_bare_start_is_greeted_and_makes_no_run(world: World, start: str) -> None:
    agent = Echo()
    process = await world.start(agent=agent)
    await process.post_update(Person(700200113).command(start))
    await world.settled()
    assert len(world.telegram.texts(700200113)) == 1
    assert not agent.calls


async def test_b116_in_a_group_the_payload_comes_with_our_name(world: World) -> None:
    agent = Echo()
    process = await world.start(agent=agent)
    ada = Person(ADA, supergroup(-1007000000912))
    await process.post_update(ada.command("/start@relay_test_bot g_7"))
    await process.post_update(ada.command("/start@other_bot g_8"))
    await process.post_update(ada.command("/start g_9"))
    await world.settled()
    assert list(agent.calls) == ["/start@relay_test_bot g_7"]
