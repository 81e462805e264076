"""Shared parts of the tests of WhatsApp through Meta."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bot.domain.message import Address, ChatKind
from bot.domain.ports import Recipient
from bot.settings import read, settings_of
from channels.whatsapp_cloud.channel import WhatsAppCloudChannel
from channels.whatsapp_cloud.settings import MetaSettings, Number
from tests.channels.whatsapp.kit import PUBLIC, StillClock
from tests.fakes.meta import FakeMeta
from tests.fakes.meta.server import NUMBER, TOKEN, StatusPlan
from tests.world import META

ADA = "+15550100181"


def settings_with(**values: Any) -> MetaSettings:
    """The settings of a number, as a process reads them."""
    given = {**META, "public_url": PUBLIC}
    made = read(settings_of([MetaSettings]), _env_file=None, **given | values)
    assert isinstance(made, MetaSettings)
    return made


def to(address: str = ADA, reply_to: str = "") -> Recipient:
    return Recipient(Address(address), ChatKind.PRIVATE, reply_to)


@dataclass
class Line:
    """A channel and the fake that it talks to."""

    fake: FakeMeta
    channel: WhatsAppCloudChannel
    clock: StillClock


@asynccontextmanager
async def line(**settings: Any) -> AsyncIterator[Line]:
    """A fake Meta and a channel on it, on one clock."""
    still = StillClock()
    async with FakeMeta(now=still.wall, sleep=still.sleep) as fake:
        fake.plan = lambda _message: StatusPlan.nothing()
        made = settings_with(**{"meta_api_url": fake.url} | settings)
        channel = WhatsAppCloudChannel(made, Number(NUMBER, TOKEN), still)
        await channel.open()
        try:
            yield Line(fake, channel, still)
        finally:
            await channel.close()
