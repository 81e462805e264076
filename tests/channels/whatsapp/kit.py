"""Shared parts of the WhatsApp channel's tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.domain.message import Address, ChatKind
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import PartBody
from bot.settings import read, settings_of
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.compose import Wire
from channels.whatsapp.settings import TwilioSettings
from tests.fakes.twilio import FakeTwilio
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER

SAMPLES = Path(__file__).parent / "samples"
PUBLIC = "https://bot.example"
PERSON = "whatsapp:+15550100015"
NOON = 1_800_000_000.0


@dataclass
class StillClock:
    """A clock that moves only when somebody sleeps."""

    at: float = NOON
    slept: list[float] = field(default_factory=list)

    def wall(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def boot(self) -> tuple[str, float]:
        return "boot", self.at

    def jitter(self) -> float:
        return 0.5

    def token(self) -> str:
        return "0" * 32

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def settings_with(**values: Any) -> TwilioSettings:
    """The settings of a sender, as a process reads them."""
    given = {
        "twilio_account_sid": ACCOUNT,
        "twilio_auth_token": AUTH_TOKEN,
        "twilio_whatsapp_from": SENDER,
        "public_url": PUBLIC,
    }
    made = read(settings_of([TwilioSettings]), _env_file=None, **given | values)
    assert isinstance(made, TwilioSettings)
    return made


def to(address: str = PERSON, reply_to: str = "") -> Recipient:
    return Recipient(Address(address), ChatKind.PRIVATE, reply_to)


def part(body: str, **wire: Any) -> PartBody:
    return PartBody(body, Wire(body=body, **wire).dumps())


def ref(number: int = 7, attempt: int = 1, at: float = NOON) -> SendRef:
    return SendRef(number, attempt, at)


async def nothing_known(_seen: Mapping[str, float | None]) -> frozenset[str]:
    """A database that has recorded nothing."""
    return frozenset()


def samples(field: str = "form") -> Mapping[str, dict[str, Any]]:
    """The recorded shapes that have this field: `form` or `status_form`."""
    found = {p.stem: json.loads(p.read_text()) for p in sorted(SAMPLES.glob("*.json"))}
    return {name: sample for name, sample in found.items() if field in sample}


@dataclass
class Line:
    """A channel and the fake that it talks to."""

    fake: FakeTwilio
    channel: WhatsAppChannel
    clock: StillClock


@asynccontextmanager
async def line(public_url: str = PUBLIC, **settings: Any) -> AsyncIterator[Line]:
    """A fake Twilio and a channel on it, on one clock. `public_url` may be empty here, which
    no setting allows."""
    still = StillClock()
    async with FakeTwilio(now=still.wall) as fake:
        made = settings_with(**{"twilio_api_url": fake.url} | settings)
        channel = WhatsAppChannel(
            made.model_copy(update={"public_url": public_url}), made.twilio_senders[0], still
        )
        await channel.open()
        try:
            yield Line(fake, channel, still)
        finally:
            await channel.close()
