"""A channel of files, as somebody else would write one: each file of a folder is a message, and
the answers are lines of one file. Registered by CHANNELS, without a line in `bot/`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic_settings import BaseSettings

from bot.domain.delivery import Lookup, NotSent, Outcome, Sent
from bot.domain.errors import AttachmentUnavailable, ConfigurationError
from bot.domain.findings import Finding, fine, problem
from bot.domain.message import (
    Address,
    Attachment,
    ChannelName,
    ChatKind,
    Event,
    Inbound,
    InboundKind,
    Sender,
    clean,
)
from bot.domain.plugin import ChannelPlugin, Endpoint, Host
from bot.domain.ports import Clock, Recipient, SendRef, Traits
from bot.domain.reply import PartBody, Reply
from channels.text import is_blank, split

ADDRESS = Address("reader")
LIMIT = 1000
_LOOK_EVERY = 0.05


class FileSettings(BaseSettings):
    """The place of the files."""

    file_folder: str = ""


@dataclass(frozen=True)
class FileChannel:
    """One folder. The answers carry our own name for each attempt, so that they can be found."""

    folder: Path
    clock: Clock
    name = ChannelName("file")
    account = "folder"
    traits = Traits(looks=(2.0, 10.0, 30.0, 60.0, 120.0))

    @property
    def answers(self) -> Path:
        return self.folder / "answers.jsonl"

    def write(self, number: int, text: str) -> None:
        """A person's message, as it comes into the folder: whole, or not yet."""
        draft = self.folder / f"{number}.draft"
        draft.write_text(text, encoding="utf-8")
        draft.rename(self.folder / f"{number}.txt")

    def shown(self) -> list[dict[str, str]]:
        """The answers, in order."""
        lines = self.answers.read_text("utf-8").splitlines() if self.answers.exists() else []
        return [json.loads(line) for line in lines]

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        pieces = [] if is_blank(reply.text) else split(clean(reply.text), LIMIT)
        return [PartBody(piece, piece) for piece in pieces]

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        return message

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        name = f"{ref.part}-{ref.attempt}"
        try:
            with self.answers.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"id": name, "text": body.wire}) + "\n")
        except OSError as error:
            return NotSent(f"the file can't be opened: {type(error).__name__}")
        return Sent(name)

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | Lookup:
        name = f"{ref.part}-{ref.attempt}"
        found = any(line["id"] == name for line in self.shown())
        return Sent(name) if found else Lookup.NOT_FOUND

    async def typing(self, to: Recipient) -> None: ...

    async def acknowledge(self, callback_id: str, text: str = "") -> None: ...

    async def fetch(self, attachment: Attachment) -> bytes:
        raise AttachmentUnavailable("a folder carries no attachments")

    async def updates(self, offset: int | None, timeout: float) -> Sequence[Mapping[str, object]]:
        until = self.clock.monotonic() + timeout
        while self.clock.monotonic() < until:
            numbers = sorted(int(file.stem) for file in self.folder.glob("*.txt"))
            if fresh := [n for n in numbers if n >= (offset or 0)]:
                return [self._update(number) for number in fresh]
            await self.clock.sleep(_LOOK_EVERY)
        return []

    def _update(self, number: int) -> Mapping[str, object]:
        text = (self.folder / f"{number}.txt").read_text(encoding="utf-8")
        return {"update_id": number, "text": text}

    def parse(self, update: Mapping[str, object]) -> tuple[Event, ...]:
        number, text = str(update["update_id"]), clean(str(update["text"]))
        request = f"file-{number}"
        person = Sender(ADDRESS.chat)
        kind = InboundKind.TEXT
        return (Inbound(request, ADDRESS, ChatKind.PRIVATE, kind, text, person, number),)

    async def examine(self) -> Sequence[Finding]:
        if self.folder.is_dir():
            return [fine("file", f"{len(list(self.folder.glob('*.txt')))} messages came")]
        return [problem("file", f"there is no {self.folder}", "make the folder")]


def _connect(settings: FileSettings, host: Host) -> Sequence[Endpoint]:
    folder = Path(settings.file_folder)
    if not folder.is_absolute():
        raise ConfigurationError("FILE_FOLDER must be a whole path")
    channel = FileChannel(folder, host.clock)
    return [Endpoint(channel, updates=channel, examine=channel.examine)]


CHANNEL = ChannelPlugin(
    ChannelName("file"), FileSettings, lambda settings: bool(settings.file_folder), _connect
)
