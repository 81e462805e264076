"""One bot account of the fake: its name, its chats, its updates, its files."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tests.fakes.recording import Json, Record
from tests.fakes.telegram.chats import ChatBook, Shown
from tests.fakes.telegram.checks import Refusal
from tests.fakes.telegram.queue import UpdateQueue
from tests.fakes.telegram.rates import Rates
from tests.fakes.telegram.webhook import WebhookDriver


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that `getFile` finds. `size` may claim more than there is."""

    path: str
    data: bytes
    size: int


@dataclass
class Bot:
    """`known_chats_only`: sending to a chat that never wrote is refused;
    `known_messages_only`: so is replying to a message that the fake has not seen."""

    token: str
    user: Json
    record: Record
    queue: UpdateQueue
    webhook: WebhookDriver
    rates: Rates
    book: ChatBook = field(default_factory=ChatBook)
    files: dict[str, StoredFile] = field(default_factory=dict)
    commands: list[Json] = field(default_factory=list)
    answered: list[Json] = field(default_factory=list)
    known_chats_only: bool = False
    known_messages_only: bool = False
    poller: asyncio.Event | None = None
    _file_numbers: int = 0

    @property
    def id(self) -> str:
        return self.token.partition(":")[0]

    def enqueue(self, update: Json) -> int | None:
        """Queue an update and remember its chat; its id, or None when it is filtered."""
        self.learn(update)
        number = self.queue.add(update)
        self.webhook.start()
        return number

    def learn(self, update: Json) -> None:
        for value in update.values():
            if isinstance(value, dict):
                message = value.get("message", value)
                if isinstance(message, dict) and "message_id" in message and "chat" in message:
                    self.book.learn(message)

    def add_file(
        self, data: bytes, file_id: str = "", path: str = "", size: int | None = None
    ) -> str:
        """Make a file that can be fetched; its id."""
        self._file_numbers += 1
        file_id = file_id or f"file-{self._file_numbers}"
        path = path or f"documents/file_{self._file_numbers}.bin"
        self.files[file_id] = StoredFile(path, data, len(data) if size is None else size)
        return file_id

    def paced(self, chat_id: int) -> None:
        """Count one message. Raises Refusal when over the limit and limits are enforced."""
        wait = self.rates.count(chat_id)
        if wait is not None and self.rates.enforce:
            why = f"Too Many Requests: retry after {wait}"
            raise Refusal(429, why, retry_after=wait)

    def messages(self, chat_id: int) -> list[Shown]:
        """Everything that a person sees of the bot in one chat, in order."""
        return [m for m in self.book.chat(chat_id).shown.values() if not m.deleted]
