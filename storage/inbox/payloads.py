"""Payloads as they arrived (one that nobody could parse is a dead letter), and erasure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.decisions.admission import Unanswered
from storage.schema.tables import edits, inbound, payloads
from storage.schema.tables.words import WORDS
from storage.statements.binds import ACCOUNT_ID, REASON
from storage.statements.chat_rows import AT_ONCE, Blank, DropOld, Page
from storage.statements.clock import now
from storage.statements.insert import insert_rows
from storage.statements.literals import is_in, word
from storage.statements.sets import Rows, among
from storage.statements.tx import Row, Tx


class NewPayload(NamedTuple):
    """A payload to be kept, with what it is: a message's, answered by nothing for the reason
    `ignored`, or, with `error`, a dead letter."""

    account: int
    body: str
    digest: str
    message: int | None = None
    ignored: str | None = None
    error: str | None = None


_new = Rows(
    "new",
    account=sa.BigInteger(),
    body=sa.Text(),
    digest=sa.Text(),
    inbound=sa.BigInteger(),
    ignored=sa.Text(),
    error=sa.Text(),
)
_STORE = insert_rows(payloads, _new, received_at=now).on_conflict_do_nothing()


def store_payloads(tx: Tx, new: Sequence[NewPayload]) -> None:
    """Keep what arrived, once however often it is delivered."""
    # In one order: lists that keep the same wait for each other in a line, not in a ring.
    in_order = sorted(new, key=lambda payload: payload.digest)
    tx.later(_STORE, _new.of(in_order))


_IS_KEPT = sa.select(
    sa.exists().where(
        payloads.c.account == ACCOUNT_ID,
        payloads.c.digest == sa.bindparam("digest"),
        payloads.c.digest != "",
    )
)


def is_kept(tx: Tx, account: int, digest: str) -> bool:
    """Tell whether this payload was kept before."""
    return bool(tx.scalar(_IS_KEPT, {"account_id": account, "digest": digest}))


_DISMISS = (
    sa.update(payloads)
    .where(payloads.c.id == sa.bindparam("payload_id"), payloads.c.error.is_not(None))
    .values(error=None, ignored=REASON)
)


def dismiss_dead_letter(tx: Tx, payload: int, reason: str) -> bool:
    """A dead letter needs nobody's eyes any more; it stays stored. False: it is none."""
    return tx.execute(_DISMISS, {"payload_id": payload, "reason": reason}).rowcount == 1


page = Page(inbound, key=inbound.c.received_at)
_blank_payloads = Blank(payloads, payloads.c.inbound)
_blank_edits = Blank(edits, edits.c.inbound)
_blank_messages = Blank(inbound, inbound.c.id)
_blank_loose = Blank(payloads, payloads.c.id)


def blank(tx: Tx, messages: Sequence[int]) -> None:
    """Take the words out of these messages, their payloads and their edits."""
    for take in (_blank_payloads, _blank_edits, _blank_messages):
        take(tx, messages)


REVOKED = "[a message that its author deleted]"
"""The text of such a message, in place of its words."""
_NO_MORE_AWAITED = sa.case(
    (is_in(inbound.c.ignored, Unanswered.AWAITED), word(Unanswered.SERVICE)),
    else_=inbound.c.ignored,
)
_REVOKE = (
    sa.update(inbound)
    .where(inbound.c.id == sa.bindparam("message_id"), inbound.c.text != REVOKED)
    .values({**WORDS[inbound], "text": REVOKED, "ignored": _NO_MORE_AWAITED})
)


def revoke(tx: Tx, message: int) -> bool:
    """The author of a message deleted it: its words go, wherever they stand. False: it was
    revoked before."""
    for take in (_blank_payloads, _blank_edits):
        take(tx, [message])
    return tx.execute(_REVOKE, {"message_id": message}).rowcount == 1


_of_runs = sa.select(inbound.c.id).where(among(inbound.c.run, "run_ids"))


def blank_of_runs(tx: Tx, runs: Sequence[int]) -> None:
    """Take the words out of the messages that these runs answered."""
    blank(tx, tx.scalars(_of_runs, {"run_ids": list(runs)}).all())


_LOOSE = (
    sa.select(payloads)
    .where(
        payloads.c.inbound.is_(None),
        payloads.c.account == ACCOUNT_ID,
        payloads.c.id > sa.bindparam("after", type_=sa.BigInteger),
        payloads.c.id <= sa.bindparam("until", type_=sa.BigInteger),
    )
    .order_by(payloads.c.id)
    .limit(sa.literal_column(str(AT_ONCE)))
)
_NUMBER = re.compile(r"\d{5,}")


class Naming(NamedTuple):
    """The payloads of one page that name an address. `last` is the page's last id, None where there
    was no page any more."""

    rows: Sequence[Row]
    last: int | None


def naming(tx: Tx, account: int, addresses: Collection[str], after: int, until: int) -> Naming:
    """Of one page of payloads that are no message's, ids from `after` to `until`, those that name
    one of these addresses, dead letters among them."""
    rows = tx.execute(_LOOSE, {"account_id": account, "after": after, "until": until}).all()
    # A number is written alike everywhere, what stands around it is not: %2B, a prefix.
    spelled = (max(_NUMBER.findall(name), key=len, default=name) for name in addresses)
    named = re.compile("|".join(rf"(?<!\d){re.escape(name)}(?!\d)" for name in spelled))
    found = [row for row in rows if addresses and named.search(row.body)]
    return Naming(found, rows[-1].id if rows else None)


def blank_naming(
    tx: Tx, account: int, addresses: Collection[str], after: int, until: int
) -> int | None:
    """Take the words out of the payloads of one page that are `naming` these addresses. Returns the
    page's last id, or None."""
    found = naming(tx, account, addresses, after, until)
    _blank_loose(tx, [row.id for row in found.rows])
    return found.last


drop_old_payloads = DropOld(payloads, payloads.c.id, payloads.c.received_at)
