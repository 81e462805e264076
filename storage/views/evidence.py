"""The case of a run: the evidence for its verdict and the rows for its turn, read for a list of
runs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from bot.domain.decisions.verdict import Evidence
from bot.domain.message import Address, ChatKind
from bot.domain.ports import Recipient
from bot.domain.reply import PartKind
from bot.domain.run import Run
from storage import inbox, outbox
from storage.chats import CHAT, Chat, addresses
from storage.inbox import StoredMessage
from storage.outbox import Part
from storage.schema import tables
from storage.statements.clock import now
from storage.statements.sets import among
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Case:
    """A run with all rows that its verdict and its turn need."""

    run: Run
    chat: Chat
    messages: Sequence[StoredMessage]
    parts: Sequence[Part]
    evidence: Evidence

    def after(self, seconds: float) -> Case:
        """The case, judged this many seconds later."""
        return replace(self, evidence=replace(self.evidence, now=self.evidence.now + seconds))

    @property
    def recipient(self) -> Recipient:
        """The recipient of the answer: the chat, with the message that is answered."""
        last = self.messages[-1] if self.messages else None
        return Recipient(
            address=self.chat.address if last is None else _origin(last, self.chat),
            kind=self.chat.kind,
            reply_to="" if last is None else last.provider_id,
            language=self.chat.language,
        )


def _origin(message: StoredMessage, chat: Chat) -> Address:
    """The address that the person wrote this message from; they may have several."""
    return Address(message.address or chat.address.chat, chat.address.topic)


def address_now(tx: Tx, to: Recipient, chat: Chat) -> Address:
    """The address to send an answer to: a person's is the one that they wrote from, unless they
    have left it, a group's the one that it has now. The chat is locked."""
    if to.kind is not ChatKind.PRIVATE or to.address == chat.address:
        return chat.address
    return to.address if to.address in addresses(tx, chat.id) else chat.address


def case_of(
    run: Run,
    chat: Chat,
    messages: Sequence[StoredMessage],
    now: float,
    parts: Sequence[Part] = (),
    answered_at: float | None = None,
) -> Case:
    """The case that these values make. `answered_at` is when an operator wrote the last words that
    reached the chat, `now` the database's time, both in epoch seconds."""
    # A run that was asked for again counts from that moment: its messages may be old.
    last = max([run.created_at, *(m.received_at for m in messages)])
    apologised = any(p.kind is PartKind.APOLOGY for p in parts)
    evidence = Evidence(
        now=now,
        failures=run.failures,
        deaths=run.deaths,
        deadline_at=run.deadline_at,
        last_message_at=last,
        window_opened_at=chat.last_inbound_at or last,
        reply_stored=run.replied and not apologised,
        apology_stored=apologised,
        parts=tuple(p.facts for p in parts),
        human_answered=answered_at is not None and answered_at > last,
        handed_over=run.handoff is not None,
        silenced=chat.silenced,
    )
    return Case(run, chat, messages, parts, evidence)


_CHATS = sa.select(
    *CHAT.columns,
    tables.chats.c.merged_into,
    now.label("read_at"),
    outbox.answered_at(tables.chats.c.id).label("answered_at"),
).where(among(tables.chats.c.id, "chat_ids"))


def _chats(tx: Tx, ids: Iterable[int]) -> Mapping[int, Any]:
    """The rows of these chats by their ids; a merged one's is the surviving chat's."""
    rows = {row.id: row for row in tx.execute(_CHATS, {"chat_ids": list(ids)})}
    merged = {gone: row.merged_into for gone, row in rows.items() if row.merged_into is not None}
    if merged:
        kept = _chats(tx, set(merged.values()))
        rows |= {gone: kept[into] for gone, into in merged.items()}
    return rows


def gather(tx: Tx, runs: Sequence[Run]) -> Sequence[Case]:
    """The cases of these runs, in the same order."""
    if not runs:
        return ()
    chats = _chats(tx, {run.chat for run in runs})
    messages = inbox.of_runs(tx, [run.id for run in runs])
    parts = outbox.of_runs(tx, [run.id for run in runs if run.replied])
    return [
        case_of(
            run,
            CHAT.read(chat := chats[run.chat]),
            messages.get(run.id, ()),
            chat.read_at,
            parts.get(run.id, ()),
            chat.answered_at,
        )
        for run in runs
    ]


def gather_one(tx: Tx, run: Run) -> Case:
    """The case of one run."""
    [case] = gather(tx, [run])
    return case
