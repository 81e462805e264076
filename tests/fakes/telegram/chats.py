"""The chats of the fake, as a person sees them, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.fakes.recording import Json
from tests.fakes.telegram.spec import Upload

SUPERGROUPS_BELOW = -1_000_000_000_000


@dataclass
class Shown:
    """One message of the bot as the person sees it now. `at` is the fake's epoch seconds,
    `order` its place among all messages of all chats."""

    message_id: int
    chat_id: int
    account: str
    kind: str
    text: str
    at: float
    order: int
    entities: list[Json] = field(default_factory=list)
    topic: int | None = None
    reply_to: int | None = None
    buttons: list[list[Json]] = field(default_factory=list)
    file: Upload | str | None = None
    edits: list[str] = field(default_factory=list)
    deleted: bool = False
    markup: Json | None = None

    def looks_like(self, text: str, entities: list[Json], markup: Json | None) -> bool:
        """Tell whether an edit to this would change nothing."""
        return (self.text, self.entities, self.markup) == (text, entities, markup)


@dataclass
class Chat:
    """One chat of one bot: its object as the API shows it, and its messages by id."""

    info: Json
    shown: dict[int, Shown] = field(default_factory=dict)
    incoming: dict[int, Json] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    reactions: list[Json] = field(default_factory=list)
    last_id: int = 0


class ChatBook:
    """All chats of one bot. Private chats and plain groups share one run of message ids;
    a supergroup or channel counts its own, as on the real platform."""

    def __init__(self, first_id: int = 1001) -> None:
        self.chats: dict[int, Chat] = {}
        self._first = first_id
        self._shared = first_id - 1

    def chat(self, chat_id: int) -> Chat:
        if chat_id not in self.chats:
            self.chats[chat_id] = Chat(_guess(chat_id), last_id=self._first - 1)
        return self.chats[chat_id]

    def next_id(self, chat_id: int) -> int:
        if chat_id < SUPERGROUPS_BELOW:
            chat = self.chat(chat_id)
            chat.last_id += 1
            return chat.last_id
        self._shared += 1
        return self._shared

    def learn(self, message: Json) -> None:
        """Remember what an incoming message tells of its chat."""
        chat = self.chat(int(message["chat"]["id"]))
        chat.info = chat.info | message["chat"]
        number = int(message.get("message_id", 0))
        chat.incoming[number] = message
        chat.last_id = max(chat.last_id, number)
        self._shared = max(self._shared, number)

    def find(self, chat_id: int, message_id: int) -> Shown | None:
        """A message of the bot that is still there."""
        shown = self.chat(chat_id).shown.get(message_id)
        return None if shown is None or shown.deleted else shown

    def shown(self) -> Iterator[Shown]:
        for chat in self.chats.values():
            yield from chat.shown.values()


def _guess(chat_id: int) -> Json:
    if chat_id > 0:
        return {"id": chat_id, "type": "private", "first_name": "Ada"}
    kind = "supergroup" if chat_id < SUPERGROUPS_BELOW else "group"
    return {"id": chat_id, "type": kind, "title": "A group"}
