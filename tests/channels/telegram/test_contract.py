"""The Telegram channel keeps the contract of all channels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import cast

import pytest

from bot.domain.message import Event
from channels.telegram.endpoint import secret_matches
from channels.telegram.parse import parse
from tests.channels.contract import Arrange, ProviderContract, Subject, Trouble, trouble_takes
from tests.channels.telegram.kit import ME, Line, line, private, samples
from tests.fakes.faults import Misbehaviour
from tests.fakes.telegram import faults

FAULTS: dict[Trouble, Misbehaviour] = {
    Trouble.RATE_LIMITED: faults.too_many(37),
    Trouble.PERSON_GONE: faults.blocked(),
    Trouble.PAYLOAD: faults.refused(400, "Bad Request: message is too long"),
    Trouble.TOKEN: faults.unauthorized(),
    Trouble.NO_ANSWER: faults.hang_after_storing(),
    Trouble.DISCONNECTED: faults.drop_after_storing(),
    Trouble.SERVER_ERROR: faults.server_error(),
}


def read(payload: object) -> tuple[Event, ...]:
    return parse(cast("Mapping[str, object]", payload), ME, channel_posts=True)


def arrangements(at: Line) -> dict[Trouble, Arrange]:
    def playing(fault: Misbehaviour) -> Arrange:
        async def play() -> None:
            at.fake.fail("sendMessage", fault, times=None)

        return play

    made = {trouble: playing(fault) for trouble, fault in FAULTS.items()}
    return made | {Trouble.UNREACHABLE: at.fake.refuse_connections}


class TestTelegram(ProviderContract):
    @pytest.fixture
    async def subject(self, request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
        async with line(telegram_read_timeout=trouble_takes(request, FAULTS)) as at:
            yield Subject(
                channel=at.channel,
                to=private(),
                payloads=samples(),
                parse=read,
                sent=lambda: [call.params for call in at.fake.calls_of("sendMessage")],
                shown=lambda: len(at.fake.messages(700100201)),
                ours=["our_own"],
                genuine=lambda: secret_matches("s3cret", "s3cret"),
                forged={
                    "missing": lambda: secret_matches(None, "s3cret"),
                    "wrong": lambda: secret_matches("s3cre", "s3cret"),
                    "other case": lambda: secret_matches("S3CRET", "s3cret"),
                    "none set": lambda: secret_matches("", ""),
                },
                arrange=arrangements(at),
                limit=4096,
            )
