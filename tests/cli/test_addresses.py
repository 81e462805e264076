"""Lists show no whole phone number unless they are asked to, and acts take what lists show."""

from __future__ import annotations

import asyncio

import pytest

from bot.domain.message import shortened
from tests.cli.asking import call
from tests.e2e.processes import CLOUD, Ground
from tests.fakes.twilio import faults

EVA, EVE, IDA = "whatsapp:+15550100022", "whatsapp:+15551110022", "whatsapp:+4915112345678"
LISTS = [("runs", "list"), ("outbox", "list"), ("chats", "list"), ("runs", "show", "1")]


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        (EVA, "whatsapp:+1…0022"),
        ("to +4915112345678: no such number, +1234567", "to +4…5678: no such number, +1…4567"),
        ("-1001234567890123", "-1001234567890123"),
        ("1+123456", "1+123456"),
        ("2026-11-30T02:18:25+00:00", "2026-11-30T02:18:25+00:00"),
    ],
)
def test_the_middle_of_a_phone_number_is_left_out(whole: str, short: str) -> None:
    assert shortened(whole) == short
    assert shortened(short) == short


async def talked(ground: Ground) -> None:
    """Three people wrote; to Ida nothing can be sent."""
    await ground.serve(**CLOUD)
    twilio = ground.world.twilio
    for person in (EVA, EVE):
        await twilio.inbound("hello", from_=person)
    await ground.world.settled()
    twilio.fail("create", faults.refused(21211), times=None)
    await twilio.inbound("call me: +15559998877", from_=IDA)
    await ground.world.settled()


async def test_no_default_list_shows_a_whole_number(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    await talked(ground)
    await ground.world.meta.person_writes("hello")
    await ground.world.settled()
    [message] = ground.world.meta.messages()
    asked = [*LISTS, ("stuck", "--offline"), ("top", "--once"), ("letters", "list")]
    told = await asyncio.gather(
        *(call(ground, *words) for words in asked),
        *(call(ground, *words, "--json") for words in [*asked[:-2], ("top",)]),
    )
    for one in told:
        for person in (EVA, EVE, IDA):
            assert person.removeprefix("whatsapp:+") not in one.out, one.out
    for one in told[:3]:
        assert "whatsapp:+1…0022" in one.out
    assert f"wamid.…{message.wamid[-6:]}" in told[1].out, "its name holds the number"
    assert message.wamid not in told[1].out
    whole = await asyncio.gather(*(call(ground, *words, "--addresses") for words in LISTS))
    for one in whole:
        assert EVA in one.out
    texts = await call(ground, "runs", "show", "3", "--text")
    assert "call me: +15559998877" in texts.out, "what people wrote is not touched"


async def test_acts_take_the_short_form_where_it_names_one_chat(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    await talked(ground)
    listed = (await call(ground, "chats", "list", "--json")).json
    numbers = {chat["id"] for chat in listed if chat["address"] == "whatsapp:+1…0022"}
    assert len(numbers) == 2
    several = await call(ground, "chats", "pause", "+1…0022")
    assert several.code == 1
    assert f"names 2 chats: {', '.join(map(str, sorted(numbers)))}" in several.err
    assert "`chats list` tells them apart" in several.err
    for words in ("+4…5678", "whatsapp:+4...5678", IDA):
        paused = await call(ground, "chats", "pause", words, "--for", "5")
        assert paused.code == 0, paused.err
    shown = await call(ground, "chats", "show", "+4…5678", "--json")
    assert shown.json["address"] == IDA
    filtered = await call(ground, "runs", "list", "--chat", "+4…5678", "--json")
    assert [run["address"] for run in filtered.json] == ["whatsapp:+4…5678"]
    assert (await call(ground, "chats", "pause", "+9…9999")).code == 1
