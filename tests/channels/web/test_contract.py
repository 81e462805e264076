"""The web keeps the contract of all channels; its parts are sent when they are committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest

from bot.domain.clients.desk import Desk
from bot.domain.delivery import Lookup, NotSent, Sent, Unknown
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address, ChatKind, Inbound
from bot.domain.ports import STILL_OURS, Recipient, SendRef
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.web.access.tokens import Session
from channels.web.channel import WebChannel
from channels.web.submission import submitted
from tests.channels.contract import ChannelContract, Subject

GUEST = Session("s1", Address("guest:1"), 2e9)
TO = Recipient(GUEST.address, ChatKind.PRIVATE)


@dataclass
class Journal:
    """A database as the channel sees it: it takes a part once, or is away."""

    attempts: list[int] = field(default_factory=list)
    parts: set[int] = field(default_factory=set)
    away: bool = False
    over: bool = False

    async def write(self, ref: SendRef) -> bool:
        if self.away:
            raise DatabaseUnavailable("it is away")
        if not self.over:
            self.attempts.append(ref.part)
            self.parts.add(ref.part)
        return not self.over

    async def written(self, ref: SendRef) -> bool:
        if self.away:
            raise DatabaseUnavailable("it is away")
        return ref.part in self.parts


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def channel(journal: Journal) -> WebChannel:
    channel = WebChannel()
    channel.bind(cast("Desk", journal))
    return channel


def parse(payload: object) -> tuple[Inbound, ...]:
    return (submitted(cast("dict[str, object]", payload), 1000).message(GUEST, "en", ()),)


class TestWeb(ChannelContract):
    @pytest.fixture
    async def subject(self, channel: WebChannel, journal: Journal) -> Subject:
        payloads: Mapping[str, object] = {
            "first": {"request_id": "m-1", "text": "hello \n"},
            "second": {"request_id": "m-2", "text": "a\x00b\ud800"},
            "button": {"request_id": "m-3", "button": "yes"},
        }
        return Subject(
            channel=channel,
            to=TO,
            payloads=payloads,
            parse=parse,
            sent=lambda: journal.attempts,
            shown=lambda: len(journal.parts),
        )


BODY = PartBody("hello", "{}")


async def test_a_send_whose_lease_is_over_writes_nothing(
    channel: WebChannel, journal: Journal
) -> None:
    STILL_OURS.set(lambda: False)
    assert isinstance(await channel.send(TO, BODY, SendRef(7, 1, 0.0)), NotSent)
    assert journal.attempts == []
    STILL_OURS.set(lambda: True)


async def test_an_attempt_that_is_over_is_not_sent(channel: WebChannel, journal: Journal) -> None:
    journal.over = True
    assert isinstance(await channel.send(TO, BODY, SendRef(7, 1, 0.0)), NotSent)


async def test_a_commit_whose_answer_was_lost_is_looked_for_and_told_for_certain(
    channel: WebChannel, journal: Journal
) -> None:
    ref = SendRef(7, 1, 0.0)
    journal.away = True
    assert isinstance(await channel.send(TO, BODY, ref), Unknown)
    assert await channel.look_up(TO, BODY, ref, frozenset()) is Lookup.CANNOT_TELL
    journal.away = False
    assert isinstance(await channel.look_up(TO, BODY, ref, frozenset()), NotSent)
    sent = await channel.send(TO, BODY, SendRef(7, 2, 0.0))
    assert isinstance(sent, Sent)
    assert await channel.look_up(TO, BODY, ref, frozenset()) == sent


async def test_a_process_without_a_desk_sends_nothing() -> None:
    assert isinstance(await WebChannel().send(TO, BODY, SendRef(7, 1, 0.0)), NotSent)


def test_choices_and_files_hang_on_the_last_part(channel: WebChannel) -> None:
    reply = Reply("one\n\n" + "x" * 60_000, (Button("Yes", "y"),), (FileOut("document", url="u"),))
    first, *_, last = channel.compose(reply, TO)
    assert '"buttons": []' in first.wire
    assert '"label": "Yes"' in last.wire
    pressed = parse({"request_id": "m-3", "button": "y"})[0]
    assert channel.recall(pressed, [last]).text == "Yes"
    assert channel.recall(pressed, []).text == "y"
