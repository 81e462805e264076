"""The people of a crash test: their platform, their words, and what they get to see."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from bot.wiring import typed
from channels.web.channel import LONGEST
from tests.channels import file_channel
from tests.fakes.meta.courier import Delivery
from tests.fakes.twilio.forms import PERSON
from tests.fakes.updates import Person
from tests.kit.web import Visitor
from tests.kit.whatsapp_cloud import ALONE
from tests.world import PUBLIC, Running, World

ADA = 700100201


class Stage(Protocol):
    """One person in one chat. `tells` says that the provider can be asked what arrived."""

    limit: int
    tells: bool

    async def start(self, world: World, **options: object) -> Running:
        """A process that speaks with this person."""
        ...

    async def say(self, running: Running, text: str) -> bool:
        """Deliver a message as the platform does, once. False: it was not acknowledged."""
        ...

    async def command(self, running: Running) -> bool:
        """Ask for something that is answered by a notice."""
        ...

    async def shown(self) -> list[str]:
        """Everything that the person sees, in order."""
        ...


@dataclass
class TelegramStage:
    """A private chat; a message that was not acknowledged comes again as the same update."""

    world: World
    limit: int = 4096
    tells: bool = False
    _ada: Person = field(default_factory=lambda: Person(ADA))
    _updates: dict[str, dict[str, object]] = field(default_factory=dict)

    async def start(self, world: World, **options: object) -> Running:
        return await world.start(twilio_account_sid="", **options)  # type: ignore[arg-type]

    async def say(self, running: Running, text: str) -> bool:
        update = self._updates.setdefault(text, self._ada.text(text))
        return await self._post(running, update)

    async def command(self, running: Running) -> bool:
        update = self._updates.setdefault("/start", self._ada.command("/start"))
        return await self._post(running, update)

    async def _post(self, running: Running, update: dict[str, object]) -> bool:
        try:
            return (await running.post_update(update)).status_code == 200
        except (httpx.HTTPError, RuntimeError):
            return False  # The process died with the request.

    async def shown(self) -> list[str]:
        return self.world.telegram.texts(ADA)


@dataclass
class WhatsAppStage:
    """One phone; the same form comes again when it was not acknowledged."""

    world: World
    limit: int = 1600
    tells: bool = True
    _forms: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    async def start(self, world: World, **options: object) -> Running:
        return await world.start(telegram_bot_token="", **options)  # type: ignore[arg-type]

    async def say(self, running: Running, text: str) -> bool:
        self.world.twilio.reach[PUBLIC] = running.url
        if text not in self._forms:
            made = await self.world.twilio.inbound(text, webhook=False)
            self._forms[text] = made.form
        attempts = await self.world.twilio.repeat(self._forms[text])
        return attempts[-1].acknowledged

    async def command(self, running: Running) -> bool:
        return await self.say(running, "help")

    async def shown(self) -> list[str]:
        return self.world.twilio.texts(PERSON)


@dataclass
class CloudStage:
    """One phone, whose platform tells by itself what arrived, until it is heard."""

    world: World
    limit: int = 4096
    tells: bool = True
    _deliveries: dict[str, Delivery] = field(default_factory=dict)

    async def start(self, world: World, **options: object) -> Running:
        running = await world.start(**ALONE, **options)  # type: ignore[arg-type]
        await world.meta.courier.hurry()
        return running

    async def say(self, running: Running, text: str) -> bool:
        meta = self.world.meta
        meta.reach[PUBLIC] = running.url
        if text not in self._deliveries:
            self._deliveries[text] = meta.prepare(meta.written_by(meta.message(text)))
        return await meta.courier.attempt(self._deliveries[text])

    async def command(self, running: Running) -> bool:
        return await self.say(running, "help")

    async def shown(self) -> list[str]:
        return self.world.meta.texts()


@dataclass
class ConsoleStage:
    """A terminal, whose lines outlive the process that wrote them."""

    world: World
    limit: int = 0
    tells: bool = False
    _lines: list[str] = field(default_factory=list)

    async def start(self, world: World, **options: object) -> Running:
        return await world.start(terminal=self._lines.append, **options)  # type: ignore[arg-type]

    async def say(self, running: Running, text: str) -> bool:
        try:
            await typed(running.process, text, text)
        except asyncio.CancelledError:
            return False  # The process died with the line.
        return True

    async def command(self, running: Running) -> bool:
        return await self.say(running, "/start")

    async def shown(self) -> list[str]:
        return list(self._lines)


@dataclass
class FileStage:
    """A folder, which outlives the process that reads it."""

    world: World
    limit: int = file_channel.LIMIT
    tells: bool = True
    _said: dict[str, int] = field(default_factory=dict)

    @property
    def _channel(self) -> file_channel.FileChannel:
        return file_channel.FileChannel(self.world.folder, self.world.clock)

    async def start(self, world: World, **options: object) -> Running:
        return await world.start(
            telegram_bot_token="",
            twilio_account_sid="",
            channels=("tests.channels.file_channel",),
            file_folder=str(world.folder),
            **options,  # type: ignore[arg-type]
        )

    async def say(self, running: Running, text: str) -> bool:
        number = self._said.setdefault(text, len(self._said) + 1)
        self._channel.write(number, text)
        taken = f"SELECT count(*) FROM inbound WHERE request_id = 'file-{number}'"
        await self.world.until(taken, lambda rows: rows[0][0] == 1)
        return True

    async def command(self, running: Running) -> bool:
        return await self.say(running, "/start")

    async def shown(self) -> list[str]:
        return [line["text"] for line in self._channel.shown()]


@dataclass
class WebStage:
    """A page, which is asked again for what it shows; it sends again what was not acknowledged."""

    world: World
    limit: int = LONGEST
    tells: bool = True
    _token: str = ""
    _last: Running | None = None

    async def start(self, world: World, **options: object) -> Running:
        self._last = await world.start(
            telegram_bot_token="",
            twilio_account_sid="",
            web=True,
            **options,  # type: ignore[arg-type]
        )
        return self._last

    async def _visitor(self, running: Running) -> Visitor:
        visitor = Visitor(running.url, running.client, self._token)
        self._token = self._token or (await visitor.begin()).token
        return visitor

    async def say(self, running: Running, text: str) -> bool:
        try:
            visitor = await self._visitor(running)
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            return (await visitor.say(name, text)).status_code in (200, 202)
        except (httpx.HTTPError, RuntimeError):
            return False  # The process died with the request.

    async def command(self, running: Running) -> bool:
        return await self.say(running, "/start")

    async def shown(self) -> list[str]:
        assert self._last is not None
        said = await (await self._visitor(self._last)).history(limit=200)
        return [one["text"] for one in said if one["kind"] != "accepted"]


STAGES: dict[str, Callable[[World], Stage]] = {
    "telegram": TelegramStage,
    "whatsapp": WhatsAppStage,
    "whatsapp_cloud": CloudStage,
    "console": ConsoleStage,
    "file": FileStage,
    "web": WebStage,
}
