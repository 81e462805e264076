"""Messages that nobody listened for are listed wholly, or said not to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest

from bot.domain.message import Inbound, InboundKind
from channels.whatsapp import records
from channels.whatsapp.records import TwilioUnavailable
from tests.channels.whatsapp.kit import NOON, PERSON, Line, line, nothing_known, part, ref, to
from tests.fakes.faults import Answer, Fault
from tests.fakes.twilio import faults

SINCE = datetime.fromtimestamp(NOON, UTC)


async def listed(at: Line, since: datetime = SINCE) -> list[Inbound]:
    return [message async for message in at.channel.inbound_since(since, nothing_known)]


async def partly(at: Line) -> tuple[list[str], str]:
    """The texts that came, and why they were not all."""
    found = []
    try:
        async for message in at.channel.inbound_since(SINCE, nothing_known):
            found.append(message.text)  # noqa: PERF401 - what came before the error counts
    except TwilioUnavailable as failure:
        return found, str(failure)
    return found, ""


async def write(at: Line, count: int) -> None:
    for number in range(count):
        at.clock.at += 1
        await at.fake.inbound(f"word {number}", webhook=False)


async def test_fifty_messages_of_an_outage_are_listed_oldest_first() -> None:
    async with line() as at:
        await write(at, 50)
        found = await listed(at)
        assert [m.text for m in found] == [f"word {n}" for n in range(50)]
        assert len({m.request_id for m in found}) == 50
        assert [m.sent_at for m in found] == [NOON + n + 1 for n in range(50)]
        assert at.fake.violations == []


async def test_our_own_words_and_what_came_before_are_left_out() -> None:
    async with line() as at:
        at.clock.at = NOON - 10
        await at.fake.inbound("before", webhook=False)
        at.clock.at = NOON + 10
        await at.channel.send(to(), part("ours"), ref())
        await at.fake.inbound("after", webhook=False)
        await at.fake.inbound("to another sender", to="whatsapp:+15550100098", webhook=False)
        assert [m.text for m in await listed(at)] == ["after"]


async def test_the_list_is_read_to_its_end_over_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PAGE_SIZE", 20)
    async with line() as at:
        await write(at, 95)
        assert len(await listed(at)) == 95
        assert len(at.fake.calls_of("list")) == 5


async def test_what_is_known_is_asked_a_page_at_a_time_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "PAGE_SIZE", 20)
    asked = []

    async def all_but_every_tenth(seen: Mapping[str, float | None]) -> frozenset[str]:
        asked.append(len(seen))
        return frozenset(name for name, at in seen.items() if at is not None and at % 10)

    async with line() as at:
        await write(at, 95)
        found = [m.text async for m in at.channel.inbound_since(SINCE, all_but_every_tenth)]
        assert found == [f"word {n}" for n in range(95) if (NOON + n + 1) % 10 == 0]
        assert asked == [20, 20, 20, 20, 15]


async def test_pages_older_than_the_mark_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PAGE_SIZE", 20)
    async with line() as at:
        at.clock.at = NOON - 7200
        await write(at, 95)
        at.clock.at = NOON
        await write(at, 5)
        assert len(await listed(at)) == 5
        assert len(at.fake.calls_of("list")) == 2


async def test_the_time_zone_of_the_mark_does_not_shift_it() -> None:
    async with line() as at:
        await write(at, 3)
        there = SINCE.astimezone(timezone(timedelta(hours=13)))
        assert len(await listed(at, there)) == 3
        (first,) = at.fake.calls_of("list")
        assert first.params["DateSent>"] == "2027-01-14T00:00:00Z"
        with pytest.raises(ValueError, match="time zone"):
            await listed(at, SINCE.replace(tzinfo=None))


@pytest.mark.parametrize(
    "fault",
    [faults.server_error(), faults.too_many(), faults.not_json(), faults.drop_before_storing()],
    ids=lambda fault: str(fault.name),
)
async def test_a_list_that_breaks_off_gives_what_it_had_and_says_so(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PAGE_SIZE", 20)
    async with line() as at:
        await write(at, 50)
        at.fake.fail("list", fault, nth=2)
        found, why = await partly(at)
        assert found == [f"word {n}" for n in range(30, 50)]
        assert "broke off" in why


async def test_a_list_without_an_end_is_given_up_and_not_counted_as_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "PAGE_SIZE", 1)
    async with line() as at:
        await write(at, 10)
        found = records.inbound_since(
            at.channel._api, at.fake.sender, SINCE, nothing_known, most_pages=4
        )
        with pytest.raises(TwilioUnavailable, match="more than 4 pages"):
            assert [m async for m in found] == []


async def test_a_next_page_outside_our_account_is_not_followed() -> None:
    async with line() as at:
        await write(at, 1)
        for uri in (
            "https://evil.example/2010-04-01/x",
            "//evil.example/x",
            "/2010-04-01/Accounts/AC2/M",
        ):
            page = Answer.of(200, {"messages": [], "next_page_uri": uri})
            at.fake.fail("list", Fault("elsewhere", stores=False, answer=page))
            with pytest.raises(TwilioUnavailable, match="not in this account"):
                await listed(at)
        assert len(at.fake.calls) == 3


async def test_files_are_looked_up_and_named_as_a_form_names_them() -> None:
    async with line() as at:
        at.clock.at += 1
        sent = await at.fake.inbound("see", media=[("image/jpeg", b"jpeg")], webhook=False)
        (message,) = await listed(at)
        assert (message.kind, message.text) == (InboundKind.PHOTO, "see")
        named = dict(sent.form)["MediaUrl0"]
        assert message.attachments[0].ref == named
        assert await at.channel.fetch(message.attachments[0]) == b"jpeg"


async def test_a_message_whose_file_is_gone_is_not_lost() -> None:
    async with line() as at:
        at.clock.at += 1
        await at.fake.inbound("", media=[("image/jpeg", b"jpeg")], webhook=False)
        at.fake.fail("media_list", faults.refused(20404))
        (message,) = await listed(at)
        assert (message.kind, message.attachments) == (InboundKind.OTHER, ())


async def test_a_file_that_can_not_be_looked_up_keeps_the_mark_where_it_is() -> None:
    async with line() as at:
        await write(at, 2)
        at.clock.at += 1
        await at.fake.inbound("see", media=[("image/jpeg", b"jpeg")], webhook=False)
        at.fake.fail("media_list", faults.server_error())
        found, why = await partly(at)
        assert found == ["word 0", "word 1"]
        assert "files" in why


async def test_a_row_that_names_nobody_does_not_stop_the_rest() -> None:
    async with line() as at:
        await write(at, 2)
        at.clock.at += 1
        nobody = at.fake.take("redacted", from_="")
        assert nobody.as_json()["from"] is None
        assert [m.text for m in await listed(at)] == ["word 0", "word 1"]


async def test_the_address_of_a_listed_message_is_the_exact_one() -> None:
    async with line() as at:
        at.clock.at += 1
        await at.fake.inbound("hola", from_="whatsapp:AR.1A2B3C4D5E6F7a8b9c0d", webhook=False)
        await at.fake.inbound("hi", webhook=False)
        found = {m.address.chat for m in await listed(at)}
        assert found == {"whatsapp:AR.1A2B3C4D5E6F7a8b9c0d", PERSON}


@pytest.mark.parametrize("uri", ["http://[::1", "//[a]b/x", "https://elsewhere.example/x"])
async def test_a_next_page_at_no_address_of_ours_leaves_the_mark(uri: str) -> None:
    async with line() as at:
        body = json.dumps({"messages": [], "next_page_uri": uri}).encode()
        at.fake.fail("list", Fault("another page", stores=True, answer=Answer(200, body)))
        assert (await partly(at))[1]
