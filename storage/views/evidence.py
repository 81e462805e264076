"""The evidence of a verdict and the material of a turn, read in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.message import Address, ChatKind
from bot.domain.ports import Recipient
from bot.domain.reply import PartKind
from bot.domain.run import Run
from bot.domain.verdict import Evidence
from storage import chats, inbox, outbox, replies
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.inbox import StoredMessage
from storage.outbox import Part
from storage.views.history import HistoryLine, history


@dataclass(frozen=True, slots=True)
class Case:
    """A run with everything that bears on it."""

    run: Run
    chat: Chat
    messages: Sequence[StoredMessage]
    parts: Sequence[Part]
    history: Sequence[HistoryLine]
    evidence: Evidence

    @property
    def recipient(self) -> Recipient:
        """Where the answer goes, and the message that it answers."""
        last = self.messages[-1] if self.messages else None
        return Recipient(
            address=self.chat.address if last is None else _origin(last, self.chat),
            kind=self.chat.kind,
            reply_to="" if last is None else last.provider_id,
            language=self.chat.language,
        )


def _origin(message: StoredMessage, chat: Chat) -> Address:
    """The exact address that a person wrote from, of the several that they may have."""
    return Address(message.address or chat.address.chat, chat.address.topic)


def address_now(to: Recipient, chat: Chat) -> Address:
    """Where an answer goes: a person's to where they wrote from, a group's to where the group
    is by now."""
    return to.address if to.kind is ChatKind.PRIVATE else chat.address


def gather(tx: Tx, run: Run, history_runs: int) -> Case:
    """The case of a run, read from the rows."""
    chat = chats.get(tx, run.chat)
    messages = inbox.of_run(tx, run.id)
    parts = outbox.of_run(tx, run.id)
    # A run that was asked for again is as young as the wish: its messages may be old.
    last = max([run.created_at, *(m.received_at for m in messages)])
    evidence = Evidence(
        now=clock.read(tx),
        failures=run.failures,
        deaths=run.deaths,
        deadline_at=run.deadline_at,
        last_message_at=last,
        window_opened_at=chat.last_inbound_at or last,
        reply_stored=replies.stored(tx, run.id) is not None,
        apology_stored=any(p.kind is PartKind.APOLOGY for p in parts),
        parts=tuple(p.facts for p in parts),
        human_answered=outbox.human_answered(tx, chat.id, last),
        silenced=chat.silenced,
    )
    lines = history(tx, chat.id, run.id, history_runs) if history_runs else ()
    return Case(run, chat, messages, parts, lines, evidence)
