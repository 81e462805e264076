"""A number at Meta sends: one message a part, and every failure is told for what it proves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bot.domain.delivery import (
    ChannelDown,
    LimitOf,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Sent,
    Unknown,
)
from bot.domain.message import Address, ChatKind
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import Button, FileOut, PartBody, Reply
from bot.settings import read, settings_of
from channels.whatsapp_cloud.channel import WhatsAppCloudChannel
from channels.whatsapp_cloud.parse import parse_tag
from channels.whatsapp_cloud.settings import MetaSettings
from tests.clocks import ShiftedClock
from tests.fakes.faults import Misbehaviour, answers_within
from tests.fakes.meta import FakeMeta, faults
from tests.fakes.meta.server import NUMBER, PERSON, SECRET, TOKEN, VERIFY_TOKEN
from tests.kit.whatsapp_cloud import wamids

TO = f"+{PERSON}"
BSUID = "US.13491208655302741918"
REF = SendRef(7, 2, 1_800_000_000.0)


@dataclass
class Line:
    fake: FakeMeta
    channel: WhatsAppCloudChannel

    async def send(self, reply: Reply, to: str = TO, ref: SendRef = REF) -> Outcome:
        address = Recipient(Address(to), ChatKind.PRIVATE)
        [part] = self.channel.compose(reply, address)
        return await self.channel.send(address, part, ref)


@asynccontextmanager
async def line(**settings: Any) -> AsyncIterator[Line]:
    clock = ShiftedClock()
    async with FakeMeta(now=clock.wall, sleep=clock.sleep) as fake:
        made = read(
            settings_of([MetaSettings]),
            _env_file=None,
            public_url="https://bot.example.test",
            meta_phone_number_id=NUMBER,
            meta_access_token=TOKEN,
            meta_app_secret=SECRET,
            meta_verify_token=VERIFY_TOKEN,
            meta_api_url=fake.url,
            **settings,
        )
        assert isinstance(made, MetaSettings)
        channel = WhatsAppCloudChannel(made, made.numbers[0], clock)
        await channel.open()
        try:
            yield Line(fake, channel)
        finally:
            await channel.close()


async def test_a_message_goes_to_the_number_with_our_tag() -> None:
    async with line() as at:
        outcome = await at.send(Reply("hi"))
        [message] = at.fake.messages()
        assert outcome == Sent(message.wamid)
        assert message.body["to"] == TO
        assert "recipient" not in message.body
        assert parse_tag(message.tag) == (7, 2, 1_800_000_000.0)
        assert at.fake.record.violations == []


async def test_b145_a_person_without_a_number_is_reached_by_their_scoped_id() -> None:
    async with line() as at:
        await at.send(Reply("hi"), to=BSUID)
        [message] = at.fake.messages()
        assert message.body["recipient"] == BSUID
        assert "to" not in message.body


async def test_an_answer_to_a_group_goes_to_the_group() -> None:
    async with line() as at:
        [part] = at.channel.compose(Reply("hi"), Recipient(Address("G1"), ChatKind.GROUP))
        ref = SendRef(7, 2, 1_800_000_000.0)
        await at.channel.send(Recipient(Address("G1"), ChatKind.GROUP), part, ref)
        [call] = at.fake.calls_of("send")
        assert (call.params["recipient_type"], call.params["to"]) == ("group", "G1")
        assert "recipient" not in call.params


async def test_b143_every_tag_is_short_without_digits_in_a_row_and_its_own() -> None:
    async with line() as at:
        for part, attempt in ((1, 1), (1, 2), (11, 1)):
            await at.send(Reply("hi"), ref=SendRef(part, attempt, 1_800_000_000.0))
        tags = [message.tag for message in at.fake.messages()]
        assert len(set(tags)) == 3
        assert all(len(tag) < 100 and "5550100" not in tag and "1800" not in tag for tag in tags)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (faults.refused(131056), NotSent),
        (faults.refused(190), ChannelDown),
        (faults.refused(131047), Refused),
        (faults.refused(131026), Refused),
        (faults.words_only(), Refused),
        (faults.server_error(), Unknown),
        (faults.bad_gateway(), Unknown),
        (faults.without_id(), Unknown),
        (faults.drop_after_storing(), Unknown),
        (faults.hang_after_storing(), Unknown),
        (faults.not_json(), Unknown),
    ],
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", "")),
)
async def test_each_failure_is_told_for_what_it_proves(
    fault: Misbehaviour, kind: type[Outcome]
) -> None:
    async with line(meta_timeout=answers_within(fault)) as at:
        at.fake.fail("send", fault)
        assert isinstance(await at.send(Reply("hi")), kind)


async def test_a_number_that_nobody_answers_for_was_sent_nothing() -> None:
    async with line() as at:
        await at.fake.__aexit__(None, None, None)
        assert isinstance(await at.send(Reply("hi")), NotSent)


async def test_the_time_that_the_usage_header_names_is_kept() -> None:
    async with line() as at:
        at.fake.fail("send", faults.busy_account(minutes=3))
        outcome = await at.send(Reply("hi"))
        assert isinstance(outcome, NotSent)
        assert (outcome.retry_after, outcome.limited) == (180.0, LimitOf.ACCOUNT)


async def test_a_refused_file_goes_as_words_and_a_closed_window_does_not() -> None:
    photo = Reply(files=(FileOut("photo", url="https://files.example/cat.jpg"),))
    async with line() as at:
        at.fake.fail("send", faults.refused(131053))
        assert isinstance(await at.send(photo), Sent)
        [message] = at.fake.messages()
        assert "https://files.example/cat.jpg" in str(message.body["text"])
        at.fake.fail("send", faults.refused(131047))
        outcome = await at.send(photo)
        assert isinstance(outcome, Refused)
        assert outcome.scope is Scope.WINDOW
        assert len(at.fake.messages()) == 1


async def test_text_as_a_file_is_handed_over_first() -> None:
    document = Reply(files=(FileOut("document", content="grüße", name="a.txt"),))
    async with line() as at:
        assert isinstance(await at.send(document), Sent)
        [message] = at.fake.messages()
        media = at.fake.media_host.all[message.body["document"]["id"]]
        assert media.data == "grüße".encode()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(faults.bad_gateway(), NotSent), (faults.unauthorized(), ChannelDown)],
    ids=["gateway", "token"],
)
async def test_a_file_that_can_not_be_handed_over_proves_that_nothing_was_sent(
    fault: Misbehaviour, kind: type[Outcome]
) -> None:
    document = Reply(files=(FileOut("document", content="x" * 5000, name="a.txt"),))
    async with line() as at:
        at.fake.fail("upload", fault)
        assert isinstance(await at.send(document), kind)
        assert at.fake.messages() == []


async def test_choices_are_buttons_and_meta_takes_them() -> None:
    async with line() as at:
        await at.send(Reply("Which?", (Button("Yes", "y"), Button("No", "n"))))
        [message] = at.fake.messages()
        assert message.body["interactive"]["type"] == "button"
        assert at.fake.record.violations == []


async def test_what_is_stored_of_another_channel_is_refused_and_not_sent() -> None:
    async with line() as at:
        to = Recipient(Address(TO), ChatKind.PRIVATE)
        for wire in ("", "[]", '{"body": "x"}', "null"):
            assert isinstance(await at.channel.send(to, PartBody("x", wire), REF), Refused)
        assert at.fake.messages() == []


async def test_a_message_is_marked_as_read_with_the_indicator() -> None:
    async with line() as at:
        written = await at.fake.person_writes("hi")
        [wamid] = wamids(written.body)
        await at.channel.typing(Recipient(Address(TO), ChatKind.PRIVATE, reply_to=wamid))
        assert at.fake.typing == [wamid]
    async with line(meta_typing=False) as at:
        await at.channel.typing(Recipient(Address(TO), ChatKind.PRIVATE, reply_to=wamid))
        assert at.fake.typing == []
