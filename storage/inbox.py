"""What arrived: messages, their raw payloads and their edits.

The insert is the duplicate check: a message whose request id is known inserts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import and_, bindparam, func, insert, select, update

from bot.domain.message import Attachment, Inbound, InboundKind, Quoted
from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip, insert_or_skip
from storage.engine.tx import Row, Tx
from storage.schema.tables import edits, inbound, outbox, payloads, replies, runs


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as a turn reads it. `at` is the provider's time where it told one, and
    `received_at` the database's, both in epoch seconds."""

    id: int
    chat: int
    run: int | None
    request_id: str
    provider_id: str
    kind: str
    text: str
    sender_id: str
    sender_name: str
    address: str
    button: str
    attachments: tuple[Attachment, ...]
    quoted: Quoted | None
    forwarded_from: str
    at: float
    received_at: float
    edited: bool


_STORE = InsertOrSkip(inbound, inbound.c.id, received_at=now)
_KEEP = InsertOrSkip(payloads, payloads.c.id, received_at=now)
_ASSIGN = update(inbound).where(inbound.c.id == bindparam("of")).values(run=bindparam("by"))


def store_message(tx: Tx, account: int, chat: int, message: Inbound) -> int | None:
    """Insert a message; None when its request id was recorded before."""
    values: dict[str, object] = {
        "account": account,
        "chat": chat,
        "request_id": message.request_id,
        "provider_id": message.provider_id,
        "kind": message.kind.value,
        "text": message.text,
        "sender_id": message.sender.id,
        "sender_name": message.sender.name,
        "address": message.address.chat,
        "button": message.button,
        "attachments": json.dumps([asdict(a) for a in message.attachments]),
        "quoted": None if message.quoted is None else json.dumps(asdict(message.quoted)),
        "album": message.album,
        "forwarded_from": message.forwarded_from,
        "extra": json.dumps(message.extra),
        "sent_at": message.sent_at,
    }
    return _STORE.run(tx, values)


def count_delivery(tx: Tx, account: int, request_id: str) -> None:
    """The platform delivered a known message once more."""
    tx.execute(
        update(inbound)
        .where(inbound.c.account == account, inbound.c.request_id == request_id)
        .values(deliveries=inbound.c.deliveries + 1)
    )


def assign(tx: Tx, message: int, run: int) -> None:
    """This message is answered by that run."""
    tx.execute(_ASSIGN, {"of": message, "by": run})


def album_began(tx: Tx, run: int, album: str) -> float | None:
    """When the first member of this album came to the run; None when it has none."""
    question = select(func.min(inbound.c.received_at)).where(
        inbound.c.run == run, inbound.c.album == album
    )
    began: float | None = tx.scalar(question)
    return began


def adopt_album(tx: Tx, chat: int, album: str, ignored: str, within: float, run: int) -> int:
    """Members of the album that were ignored for this reason in the last `within` seconds
    belong to the run after all."""
    move = (
        update(inbound)
        .where(
            inbound.c.chat == chat,
            inbound.c.received_at > now - within,
            inbound.c.album == album,
            inbound.c.ignored == ignored,
        )
        .values(run=run, ignored=None)
    )
    return tx.execute(move).rowcount


def ignore(tx: Tx, message: int, reason: str) -> None:
    """This message is answered by nothing, for the stated reason."""
    tx.execute(update(inbound).where(inbound.c.id == message).values(ignored=reason))


def store_payload(
    tx: Tx,
    account: int,
    body: str,
    digest: str,
    *,
    message: int | None = None,
    ignored: str | None = None,
    error: str | None = None,
) -> bool:
    """Keep what arrived. False: this dead letter is kept already."""
    values: dict[str, object] = {
        "account": account,
        "inbound": message,
        "body": body,
        "digest": digest,
        "ignored": ignored,
        "error": error,
    }
    return _KEEP.run(tx, values) is not None


def known(tx: Tx, account: int, request_id: str) -> tuple[int, int | None, str] | None:
    """(message, run, text) recorded under this request id."""
    row = tx.execute(
        select(inbound.c.id, inbound.c.run, inbound.c.text).where(
            inbound.c.account == account, inbound.c.request_id == request_id
        )
    ).first()
    return None if row is None else (row.id, row.run, row.text)


_SAME_SECOND = 0.001
"""Between two edits that the platform dates with one second."""


def store_edit(
    tx: Tx, message: int, edited_at: float, before: str, after: str, *, used: bool
) -> bool:
    """Record an edit. False: it was recorded before."""
    same_second = (
        select(edits.c.edited_at, edits.c.text)
        .where(
            edits.c.inbound == message,
            edits.c.edited_at >= edited_at,
            edits.c.edited_at < edited_at + 1.0,
        )
        .order_by(edits.c.edited_at)
    )
    for earlier in tx.execute(same_second).all():
        if earlier.text == after:
            return False
        edited_at = earlier.edited_at + _SAME_SECOND
    values: dict[str, object] = {
        "inbound": message,
        "edited_at": edited_at,
        "text_before": before,
        "text": after,
        "used": used,
    }
    stored = tx.execute(insert_or_skip(tx, edits, values).returning(edits.c.inbound))
    return stored.first() is not None


def use_edit(tx: Tx, message: int, edited_at: float, text: str) -> None:
    """The run has not started: it will read the new text. An older edit changes nothing."""
    newer = and_(inbound.c.edited_at.is_not(None), inbound.c.edited_at > edited_at)
    tx.execute(
        update(inbound)
        .where(inbound.c.id == message, ~newer)
        .values(text=text, edited_at=edited_at)
    )


_MESSAGE = (
    inbound.c.id,
    inbound.c.chat,
    inbound.c.run,
    inbound.c.request_id,
    inbound.c.provider_id,
    inbound.c.kind,
    inbound.c.text,
    inbound.c.sender_id,
    inbound.c.sender_name,
    inbound.c.address,
    inbound.c.button,
    inbound.c.attachments,
    inbound.c.quoted,
    inbound.c.forwarded_from,
    inbound.c.sent_at,
    inbound.c.received_at,
    inbound.c.edited_at,
)


def _stored(row: Row) -> StoredMessage:
    return StoredMessage(
        id=row.id,
        chat=row.chat,
        run=row.run,
        request_id=row.request_id,
        provider_id=row.provider_id,
        kind=row.kind,
        text=row.text,
        sender_id=row.sender_id,
        sender_name=row.sender_name,
        address=row.address,
        button=row.button,
        attachments=tuple(Attachment(**a) for a in json.loads(row.attachments)),
        quoted=None if row.quoted is None else Quoted(**json.loads(row.quoted)),
        forwarded_from=row.forwarded_from,
        at=row.received_at if row.sent_at is None else row.sent_at,
        received_at=row.received_at,
        edited=row.edited_at is not None,
    )


def of_run(tx: Tx, run: int) -> Sequence[StoredMessage]:
    """The messages that a run answers, by the provider's time, within a second by its numbers
    where it counts its messages, then as they came."""
    rows = tx.execute(select(*_MESSAGE).where(inbound.c.run == run)).all()
    return sorted((_stored(r) for r in rows), key=_place)


def _place(message: StoredMessage) -> tuple[float, int, int]:
    counted = message.provider_id.isdecimal()
    return message.at, int(message.provider_id) if counted else 0, message.id


_SEEN = ("answered", "uncertain")
"""Endings after which the person has (or may have) our words before them."""


def history(
    tx: Tx, chat: int, before_run: int, limit: int
) -> Sequence[tuple[str, str, float, str]]:
    """(role, text, at, sender's name) of the chat's last `limit` ended runs, oldest first, this
    run left out.

    Each run contributes its messages and then its answer, so that turns stay together.
    Notices and apologies are not part of the conversation; an operator's words are.
    """
    ended = (
        select(runs.c.id, runs.c.ended_at, runs.c.ending)
        .where(runs.c.chat == chat, runs.c.id != before_run, runs.c.state == "ended")
        .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
        .limit(limit)
    )
    turns = {r.id: r for r in tx.execute(ended)}
    said = select(
        inbound.c.id,
        inbound.c.run,
        inbound.c.kind,
        inbound.c.text,
        inbound.c.sender_name,
        inbound.c.sent_at,
        inbound.c.received_at,
    ).where(inbound.c.run.in_(turns))
    lines = [
        (
            (turns[r.run].ended_at, 0, r.id),
            (
                "user",
                f"[reminder] {r.text}" if r.kind == InboundKind.REMINDER else r.text,
                r.received_at if r.sent_at is None else r.sent_at,
                r.sender_name,
            ),
        )
        for r in tx.execute(said)
    ]
    seen = [run for run, row in turns.items() if row.ending in _SEEN]
    answered = select(replies.c.run, replies.c.text, replies.c.stored_at).where(
        replies.c.run.in_(seen), replies.c.text != ""
    )
    lines += [
        ((turns[r.run].ended_at, 1, r.run), ("assistant", r.text, r.stored_at, ""))
        for r in tx.execute(answered)
    ]
    since = min((row.ended_at for row in turns.values()), default=0.0)
    by_hand = select(outbox.c.id, outbox.c.text, outbox.c.created_at).where(
        outbox.c.chat == chat, outbox.c.kind == "operator", outbox.c.created_at >= since
    )
    lines += [
        ((r.created_at, 2, r.id), ("assistant", r.text, r.created_at, ""))
        for r in tx.execute(by_hand.order_by(outbox.c.id.desc()).limit(limit))
    ]
    return [line for _, line in sorted(lines)]


def store_reminder(
    tx: Tx, account: int, chat: int, request_id: str, text: str, due_at: float
) -> int:
    """A message that we owe ourselves: the words of a reminder that is due since `due_at`."""
    values = {
        "account": account,
        "chat": chat,
        "request_id": request_id,
        "kind": InboundKind.REMINDER.value,
        "text": text,
        "sent_at": due_at,
        "received_at": now,
    }
    return int(tx.scalars(insert(inbound).values(**values).returning(inbound.c.id)).one())
