"""Tables of messages to people: outbox, receipts.

A part's receipt is an update that touches no index, so that on PostgreSQL it stays within the
page: no index has a column that it changes, be it in its condition. What is looked for by its
state has a word in `watched`, which is empty as long as the part's own run looks after it. A part
is found by its receipt through `receipts`.

The first part of a reply keeps the agent's own words in `reply`, where the part's `text` is not the
same.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Double,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from bot.domain.delivery import PartState
from bot.domain.reply import PartKind
from storage.schema.tables.base import FALSE, UPDATED_OFTEN, ZERO, Id, metadata, one_of, where


class Watched(StrEnum):
    """The condition under which others than its run look for a part."""

    DUE = "due"
    """Standalone, and to be sent."""
    LEAVING = "leaving"
    """Being sent, and no run waits for its outcome."""
    UNSURE = "unsure"
    """Standalone, and it may have arrived."""
    UNCERTAIN = "uncertain"
    """A run's, and it may have arrived."""
    REFUSED = "refused"


_WATCHED = (
    "CASE WHEN standalone AND state = 'pending' THEN 'due' "
    "WHEN (standalone OR adrift) AND state = 'sending' THEN 'leaving' "
    "WHEN standalone AND state = 'uncertain' THEN 'unsure' "
    "WHEN state IN ('uncertain', 'refused') THEN state END"
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("run", BigInteger),
    Column("kind", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("standalone", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("text", Text, nullable=False),
    Column("wire", Text, nullable=False),
    Column("reply", Text),
    Column("replaced_by", BigInteger),
    Column("adrift", Boolean, nullable=False, server_default=FALSE),
    Column("resends", Integer, nullable=False, server_default=ZERO),
    Column("looks", Integer, nullable=False, server_default=ZERO),
    Column("fence", BigInteger, nullable=False, server_default=ZERO),
    Column("attempts", Integer, nullable=False, server_default=ZERO),
    Column("not_before", Double, nullable=False, server_default=ZERO),
    Column("started_at", Double, nullable=False, server_default=ZERO),
    Column("state", Text, nullable=False),
    Column("holder", BigInteger),
    Column("sent_at", Double),
    Column("receipt", Text),
    Column("provider_status", Text, nullable=False, server_default=""),
    Column("confirmed", Boolean, nullable=False, server_default=FALSE),
    Column("scope", Text),
    Column("code", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("watched", Text, Computed(_WATCHED, persisted=True)),
    UniqueConstraint("run", "kind", "part"),
    one_of("kind", PartKind),
    one_of("state", PartState),
    CheckConstraint("(state = 'sending') = (holder IS NOT NULL)", name="held"),
    CheckConstraint(
        "state NOT IN ('sent', 'delivered', 'read') OR receipt IS NOT NULL", name="receipt"
    ),
    Index("ix_outbox_chat", "chat", "id"),
    Index("ix_outbox_operator", "chat", "id", **where("kind = 'operator'")),
    Index("ix_outbox_due", "account", "not_before", "id", **where("watched = 'due'")),
    Index("ix_outbox_line", "chat", "watched", "id", **where("watched IS NOT NULL")),
    Index("ix_outbox_unsure", "account", "looks", "id", **where("watched = 'unsure'")),
    Index("ix_outbox_watched", "watched", "id", **where("watched IS NOT NULL")),
    postgresql_with=UPDATED_OFTEN,
)

receipts = Table(
    "receipts",
    metadata,
    Column("outbox", BigInteger, ForeignKey("outbox.id"), nullable=False),
    Column("receipt", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("outbox", "receipt"),
    Index("ix_receipts_receipt", "receipt"),
)
"""Every receipt ever seen for a part. More than one for a part is a double: alarmed."""

early_statuses = Table(
    "early_statuses",
    metadata,
    Column("account", BigInteger, nullable=False),
    Column("receipt", Text, nullable=False),
    Column("provider_status", Text, nullable=False),
    Column("state", Text),
    Column("code", Text, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("account", "receipt", "provider_status"),
    one_of("state", PartState),
    Index("ix_early_statuses_at", "at"),
)
"""Statuses of messages that nobody knows as ours: the answer to a send may name one later."""
