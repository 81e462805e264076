"""A message that answers an older one brings its words, on a platform that only names it."""

from __future__ import annotations

import json

from bot.agents.http.contract import request_body
from bot.domain.message import Quoted
from bot.domain.turn import Turn
from tests.fakes.twilio.forms import reply
from tests.kit.whatsapp import sent, three_parts
from tests.world import World

ADA, BOB = "whatsapp:+15550100181", "whatsapp:+15550100182"
BLUE = "SM0000000000000000000000000000b0a2"


class Reader:
    """Answers, and keeps what its turns quoted, as a function and as an HTTP agent sees it."""

    def __init__(self) -> None:
        self.quoted: list[Quoted | None] = []

    async def __call__(self, turn: Turn) -> str:
        quoted = turn.messages[0].quoted
        [told] = json.loads(await request_body(turn, 0))["messages"]
        assert told["quoted"] == (
            None
            if quoted is None
            else {
                "provider_id": quoted.provider_id,
                "text": quoted.text,
                "from_us": quoted.from_us,
            }
        )
        self.quoted.append(quoted)
        return f"answer {len(self.quoted)}"


async def test_b126_a_quoted_message_brings_its_words_also_after_a_restart(world: World) -> None:
    agent = Reader()
    process = await world.start(agent=agent)
    await world.twilio.inbound("price of A?", from_=ADA)
    [ours] = await sent(world, 1)
    await world.settled()
    await world.twilio.inbound("the blue one costs 12", from_=ADA, sid=BLUE)
    await world.settled()
    for _ in range(2):
        await world.twilio.inbound("is that per month?", from_=ADA, fields=reply(ours.sid))
        await world.settled()
        theirs = reply(BLUE) | {"OriginalRepliedMessageSender": ADA}
        await world.twilio.inbound("make it two", from_=ADA, fields=theirs)
        await world.settled()
        unknown = "SM000000000000000000000000000fffff"
        await world.twilio.inbound("and this?", from_=ADA, fields=reply(unknown))
        await world.settled()
        assert agent.quoted[-3:] == [
            Quoted(ours.sid, "answer 1", from_us=True),
            Quoted(BLUE, "the blue one costs 12", from_us=False),
            Quoted(unknown, "", from_us=False),
        ]
        await process.die()
        process = await world.start(agent=agent)


async def test_b126_a_message_of_another_chat_is_never_shown(world: World) -> None:
    agent = Reader()
    await world.start(agent=agent)
    await world.twilio.inbound("the blue one costs 12", from_=ADA, sid=BLUE)
    [ours] = await sent(world, 1)
    await world.settled()
    for sid in (ours.sid, BLUE):
        await world.twilio.inbound("and this?", from_=BOB, fields=reply(sid))
        await world.settled()
        quoted = agent.quoted[-1]
        assert quoted is not None
        assert (quoted.provider_id, quoted.text) == (sid, "")


async def test_b126_a_part_of_a_long_answer_brings_that_part(world: World) -> None:
    agent = Reader()

    async def answer(turn: Turn) -> str:
        if turn.messages[0].quoted is None:
            return await three_parts(turn)
        return await agent(turn)

    await world.start(agent=answer)
    await world.twilio.inbound("tell me", from_=ADA)
    second = (await sent(world, 3))[1]
    await world.settled()
    await world.twilio.inbound("what is this?", from_=ADA, fields=reply(second.sid))
    await world.settled()
    [quoted] = agent.quoted
    assert quoted is not None
    assert quoted.text.startswith("2 word")
    assert quoted.from_us
