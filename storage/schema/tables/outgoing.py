"""Tables of messages to people: outbox, receipts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
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
from storage.schema.tables.base import FALSE, ZERO, Id, metadata, one_of, where

outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("run", BigInteger, ForeignKey("runs.id")),
    Column("kind", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("standalone", Boolean, nullable=False),
    Column("holder", BigInteger),
    Column("fence", BigInteger, nullable=False, server_default=ZERO),
    Column("attempts", Integer, nullable=False, server_default=ZERO),
    Column("resends", Integer, nullable=False, server_default=ZERO),
    Column("looks", Integer, nullable=False, server_default=ZERO),
    Column("not_before", Double, nullable=False, server_default=ZERO),
    Column("started_at", Double, nullable=False, server_default=ZERO),
    Column("created_at", Double, nullable=False),
    Column("sent_at", Double),
    Column("text", Text, nullable=False),
    Column("wire", Text, nullable=False),
    Column("receipt", Text),
    Column("provider_status", Text, nullable=False, server_default=""),
    Column("confirmed", Boolean, nullable=False, server_default=FALSE),
    Column("scope", Text),
    Column("code", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("replaced_by", BigInteger),
    UniqueConstraint("run", "kind", "part"),
    one_of("kind", PartKind),
    one_of("state", PartState),
    CheckConstraint("(state = 'sending') = (holder IS NOT NULL)", name="held"),
    CheckConstraint(
        "state NOT IN ('sent', 'delivered', 'read') OR receipt IS NOT NULL", name="receipt"
    ),
    Index(
        "ix_outbox_standalone",
        "account",
        "not_before",
        "id",
        **where("state = 'pending'", flag="standalone"),
    ),
    Index("ix_outbox_line", "chat", "id", **where("state = 'pending'", flag="standalone")),
    Index("ix_outbox_operator", "chat", "id", **where("kind = 'operator'")),
    Index("ix_outbox_sending", "chat", "holder", **where("state = 'sending'")),
    Index("ix_outbox_chat", "chat", "id"),
    Index("ix_outbox_receipt", "account", "receipt"),
    Index("ix_outbox_unsure", "account", "id", **where("state = 'uncertain'", flag="standalone")),
    Index("ix_outbox_doubtful", "state", "id", **where("state IN ('uncertain', 'refused')")),
    postgresql_with={"fillfactor": "70"},
)

receipts = Table(
    "receipts",
    metadata,
    Column("outbox", BigInteger, ForeignKey("outbox.id"), nullable=False),
    Column("receipt", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("outbox", "receipt"),
)
"""Every receipt ever seen for a part. More than one for a part is a double: alarmed."""
