"""The updates that a bot has not confirmed yet, as the real server keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.recording import Json, Now

DAY = 86_400.0
_MESSAGES = ("message", "edited_message", "channel_post", "edited_channel_post")
_BY_USER = {
    "callback_query": 150.0,
    "inline_query": 30.0,
    "chosen_inline_result": 600.0,
    "shipping_query": 150.0,
    "pre_checkout_query": 150.0,
}
_ON_REQUEST = {"chat_member", "message_reaction", "message_reaction_count"}


def kind_of(update: Json) -> str:
    """The one field of an update that says what it is."""
    return next((name for name in update if name != "update_id"), "")


@dataclass(eq=False)
class Pending:
    """An unconfirmed update. `key` names its queue; it is given up after `expires_at`."""

    update: Json
    key: str
    expires_at: float

    @property
    def id(self) -> int:
        return int(self.update["update_id"])


class UpdateQueue:
    """Unconfirmed updates in the order of their ids; polling and webhook share them."""

    def __init__(self, now: Now, changed: Callable[[], None]) -> None:
        self.pending: list[Pending] = []
        self.allowed: list[str] | None = None
        self.expired: list[Json] = []
        self._now = now
        self._changed = changed
        self._last_id = 500_000_000

    def add(self, update: Json) -> int | None:
        """Keep an update, under its own id or the next one. None: its kind is not allowed."""
        kind = kind_of(update)
        if not self._allows(kind):
            return None
        number = int(update.get("update_id", self._last_id + 1))
        self._last_id = max(self._last_id, number)
        kept = {"update_id": number} | update
        self.pending.append(Pending(kept, self._key(kind, kept), self._expiry(kind, kept)))
        self.pending.sort(key=lambda p: p.id)
        self._changed()
        return number

    def confirm_below(self, offset: int) -> None:
        """Forget what polling confirmed; a negative offset keeps only that many, the newest."""
        if offset < 0:
            self.pending = self.pending[offset:]
        else:
            self.pending = [p for p in self.pending if p.id >= offset]
        self._changed()

    def remove(self, pending: Pending) -> None:
        if pending in self.pending:
            self.pending.remove(pending)
            self._changed()

    def expire(self, pending: Pending) -> None:
        """Give an update up silently, as the real server does."""
        self.expired.append(pending.update)
        self.remove(pending)

    def clear(self) -> None:
        self.pending.clear()
        self._changed()

    def heads(self) -> dict[str, Pending]:
        """The first update of every queue: nothing behind it is delivered before it."""
        heads: dict[str, Pending] = {}
        for pending in self.pending:
            heads.setdefault(pending.key, pending)
        return heads

    def _allows(self, kind: str) -> bool:
        if not self.allowed:
            return kind not in _ON_REQUEST
        return kind in self.allowed

    @staticmethod
    def _key(kind: str, update: Json) -> str:
        inner = update.get(kind)
        if not isinstance(inner, dict):
            return kind
        if kind in _MESSAGES:
            return f"chat {inner['chat']['id']}"
        if kind in _BY_USER:
            return f"user {inner['from']['id']}"
        chat = inner.get("chat")
        return f"{kind} {chat['id']}" if isinstance(chat, dict) else kind

    def _expiry(self, kind: str, update: Json) -> float:
        if kind in _BY_USER:
            return self._now() + _BY_USER[kind]
        inner = update.get(kind)
        if isinstance(inner, dict) and "date" in inner:
            return float(inner.get("edit_date") or inner["date"]) + DAY
        return self._now() + DAY
