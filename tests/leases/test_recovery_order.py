"""The order of a chat survives an outage in which webhooks and the platform's list mix."""

from __future__ import annotations

from bot.domain.message import Address, ChatKind, Inbound, InboundKind, Sender
from bot.intake.arrival import Arrival
from bot.wiring import Role
from storage import inbox
from tests.kit.agents import Echo
from tests.world import World

PHONE = "whatsapp:+15550100015"


def listed(request_id: str, text: str, sent_at: float) -> Inbound:
    """A message as the platform's list tells of it: with its time."""
    return Inbound(
        request_id=request_id,
        address=Address(PHONE),
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text=text,
        sender=Sender(PHONE),
        provider_id=request_id.removeprefix("wa-"),
        sent_at=sent_at,
    )


async def test_what_a_late_webhook_brought_goes_before_what_the_list_told_of_later_messages(
    world: World,
) -> None:
    door = await world.start(agent=Echo(), role=Role.WEB, burst="each")
    # The test is the platform's list here: the process's own look would tell other times.
    door.process.tasks.tasks[f"backfill {door.process.ids['whatsapp']}"].cancel()
    first = await world.twilio.inbound("one", webhook=False)
    second = await world.twilio.inbound("two", webhook=False)
    written = world.clock.wall()
    world.advance(12.0)
    for late in (first, second):
        await world.twilio.repeat(late.form)
    rt, account = door.process.rt, door.process.ids["whatsapp"]
    third = listed("wa-SM" + "3" * 32, "three", written + 2.0)
    times = {f"wa-{first.sid}": written, f"wa-{second.sid}": written + 1.0}
    await door.process.intake.take(Arrival(account, "{}"), [third])
    assert await rt.db.write(inbox.fill_sent_times, account, times) == 2
    await world.start(agent=Echo(), role=Role.WORKER, burst="each")
    await world.settled()
    assert world.twilio.texts() == ["re: one", "re: two", "re: three"]


async def test_a_message_that_webhook_and_list_bring_at_once_keeps_its_place(
    world: World,
) -> None:
    door = await world.start(agent=Echo(), role=Role.WEB, burst="each")
    # The test is the platform's list here: the process's own look would tell other times.
    door.process.tasks.tasks[f"backfill {door.process.ids['whatsapp']}"].cancel()
    first = await world.twilio.inbound("one", webhook=False)
    written = world.clock.wall()
    world.advance(12.0)
    await world.twilio.repeat(first.form)
    account = door.process.ids["whatsapp"]
    two = await world.twilio.inbound("two", webhook=False)
    await world.twilio.repeat(two.form)
    for message in (
        listed(f"wa-{two.sid}", "two", written + 1.0),
        listed("wa-SM" + "3" * 32, "three", written + 2.0),
    ):
        await door.process.intake.take(Arrival(account, "{}"), [message])
    await world.start(agent=Echo(), role=Role.WORKER, burst="each")
    await world.settled()
    assert world.twilio.texts() == ["re: one", "re: two", "re: three"]
