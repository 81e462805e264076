"""Shared parts of the Telegram channel's tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.domain.delivery import Outcome
from bot.domain.message import Address, ChatKind, Edited, Event, Inbound
from bot.domain.plugin import Host
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import PartBody, Reply
from bot.settings import read, settings_of
from channels.telegram.channel import TelegramChannel
from channels.telegram.compose import Wire
from channels.telegram.parse import BotIdentity, parse
from channels.telegram.settings import TelegramSettings
from tests.fakes.telegram import FakeTelegram
from tests.fakes.telegram.server import TOKEN, USERNAME

SAMPLES = Path(__file__).parent / "samples"
NOON = 1_800_003_600
ME = BotIdentity(7000000001, USERNAME)
US = {"id": ME.id, "is_bot": True, "first_name": "Relay", "username": USERNAME}
ADA = {"id": 700100201, "is_bot": False, "first_name": "Ada"}
PRIVATE = {"id": 700100201, "type": "private", "first_name": "Ada"}
GROUP = {"id": -1007000000501, "type": "supergroup", "title": "Tea"}

Json = dict[str, Any]


def sample(name: str) -> Json:
    """An update as Telegram sends it."""
    found: Json = json.loads((SAMPLES / f"{name}.json").read_text())
    return found


def samples() -> dict[str, Json]:
    return {path.stem: sample(path.stem) for path in sorted(SAMPLES.glob("*.json"))}


def message(**fields: Any) -> Json:
    """An update with a message of Ada to us; `fields` replace and add (`from_` is `from`)."""
    if "from_" in fields:
        fields["from"] = fields.pop("from_")
    base: Json = {"message_id": 41, "date": NOON, "chat": PRIVATE, "from": ADA}
    return {"update_id": 810000001, "message": base | fields}


def event(update: Json, *, channel_posts: bool = False) -> Event:
    """The one event of an update."""
    (found,) = parse(update, ME, channel_posts=channel_posts)
    return found


def inbound(update: Json, *, channel_posts: bool = False) -> Inbound:
    found = event(update, channel_posts=channel_posts)
    assert isinstance(found, Inbound), found
    return found


def edited(update: Json) -> Edited:
    found = event(update)
    assert isinstance(found, Edited), found
    return found


def private(chat: str = "700100201", topic: str = "") -> Recipient:
    return Recipient(Address(chat, topic), ChatKind.PRIVATE, "41")


def group(chat: str = "-1007000000401", topic: str = "") -> Recipient:
    return Recipient(Address(chat, topic), ChatKind.GROUP, "41")


@dataclass
class StillClock:
    """A clock that a test moves."""

    at: float = float(NOON)

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
        self.at += seconds


@dataclass
class Line:
    """A channel and the fake that it talks to."""

    fake: FakeTelegram
    channel: TelegramChannel
    clock: StillClock

    def parts(self, reply: Reply | str, to: Recipient | None = None) -> list[PartBody]:
        whole = Reply(reply) if isinstance(reply, str) else reply
        return list(self.channel.compose(whole, to or private()))

    async def send(self, reply: Reply | str = "hello", to: Recipient | None = None) -> Outcome:
        """Send the only part of a reply."""
        (part,) = self.parts(reply, to)
        return await self.channel.send(to or private(), part, SendRef(7, 1, NOON))


def settings_with(**values: Any) -> TelegramSettings:
    """The settings of a bot that is polled, as a process reads them."""
    given = {"telegram_bot_token": TOKEN, "telegram_mode": "polling"} | values
    made = read(settings_of([TelegramSettings]), _env_file=None, **given)
    assert isinstance(made, TelegramSettings)
    return made


def channel_with(clock: StillClock, api_url: str = "", **values: Any) -> TelegramChannel:
    """A channel, not yet open. `api_url` may be one that no setting would take."""
    made = settings_with(**values).model_copy(update={"telegram_api_url": api_url})
    return TelegramChannel(made, Host(clock, lambda _language: ""))


@asynccontextmanager
async def line(api_url: str = "", **settings: Any) -> AsyncIterator[Line]:
    """An open channel at a fake that behaves until a test says otherwise. Every call that
    was made must fit the description of the Bot API."""
    async with FakeTelegram() as fake:
        clock = StillClock()
        channel = channel_with(clock, api_url or fake.url, **settings)
        await channel.open()
        try:
            yield Line(fake, channel, clock)
        finally:
            await channel.close()
        assert fake.violations == []


def params(part: PartBody) -> Json:
    """The parameters that a stored part is sent with."""
    return dict(Wire.decode(part.wire).params)
