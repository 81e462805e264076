"""Several numbers in one installation: each is an account, and its people are its own."""

from __future__ import annotations

from tests.fakes.meta.server import NUMBER, OTHER_NUMBER
from tests.fakes.meta.server import PERSON as PERSON_AT_META
from tests.fakes.twilio.server import SENDER
from tests.kit.whatsapp import echo
from tests.kit.whatsapp_cloud import TWO
from tests.limits import until
from tests.world import World

OTHER_SENDER = "whatsapp:+15550100098"
_STATES = "SELECT a.account, o.state FROM outbox o JOIN accounts a ON a.id = o.account ORDER BY 1"


async def test_two_senders_at_twilio_answer_each_its_own_chat_with_a_person(world: World) -> None:
    world.twilio.senders.add(OTHER_SENDER)
    await world.start(agent=echo, twilio_whatsapp_from=f"{SENDER},{OTHER_SENDER}")
    await world.twilio.inbound("to the first")
    await world.twilio.inbound("to the other", to=OTHER_SENDER)
    await world.settled()
    sent = {(m.from_, m.body) for m in world.twilio.messages()}
    assert sent == {
        (SENDER, "you said: to the first"),
        (OTHER_SENDER, "you said: to the other"),
    }
    assert await world.rows("SELECT count(*) FROM chats") == [(2,)]
    delivered = [(OTHER_SENDER, "delivered"), (SENDER, "delivered")]

    async def both_are_told_of() -> bool:
        return [tuple(row) for row in await world.rows(_STATES)] == delivered

    await until(both_are_told_of)


async def test_two_numbers_at_meta_beside_a_sender_at_twilio_are_three_chats(world: World) -> None:
    await world.start(agent=echo, **{k: v for k, v in TWO.items() if k != "twilio_account_sid"})
    await world.meta.person_writes("A", number=NUMBER)
    await world.meta.person_writes("B", number=OTHER_NUMBER)
    await world.twilio.inbound("C", from_=f"whatsapp:+{PERSON_AT_META}")
    await world.settled()
    sent = {(m.number, m.body["text"]["body"]) for m in world.meta.messages()}
    assert sent == {(NUMBER, "you said: A"), (OTHER_NUMBER, "you said: B")}
    assert world.twilio.texts() == ["you said: C"]
    assert await world.rows("SELECT count(*) FROM chats") == [(3,)]
