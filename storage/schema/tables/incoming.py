"""Tables of messages from people: inbound, payloads, edits."""

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
    text,
)

from bot.domain.commands import Command
from bot.domain.decisions.admission import Unanswered
from bot.domain.message import InboundKind
from storage.schema.tables.base import Id, metadata, one_of, where

inbound = Table(
    "inbound",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("run", BigInteger),
    Column("ignored", Text),
    Column("command", Text),
    Column("request_id", Text, nullable=False),
    Column("provider_id", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("sender_id", Text, nullable=False, server_default=""),
    Column("sender_name", Text, nullable=False, server_default=""),
    Column("address", Text, nullable=False, server_default=""),
    Column("button", Text, nullable=False, server_default=""),
    Column("attachments", Text, nullable=False, server_default="[]"),
    Column("quoted", Text),
    Column("album", Text, nullable=False, server_default=""),
    Column("forwarded_from", Text, nullable=False, server_default=""),
    Column("extra", Text, nullable=False, server_default="{}"),
    Column("payload", Text, nullable=False, server_default=""),
    Column("sent_at", Double),
    Column("received_at", Double, nullable=False),
    Column("edited_at", Double),
    Column("deliveries", Integer, nullable=False, server_default=text("1")),
    UniqueConstraint("account", "request_id"),
    one_of("kind", InboundKind),
    one_of("ignored", Unanswered),
    one_of("command", Command),
    CheckConstraint("run IS NULL OR ignored IS NULL", name="one_outcome"),
    Index("ix_inbound_run", "run"),
    Index("ix_inbound_chat", "chat", "received_at"),
)

payloads = Table(
    "payloads",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, nullable=False),
    Column("inbound", BigInteger),
    Column("received_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Column("ignored", Text),
    Column("error", Text),
    Column("digest", Text, nullable=False),
    Index("ix_payloads_inbound", "inbound", "id"),
    Index("ix_payloads_received_at", "received_at"),
    Index("uq_payloads_digest", "account", "digest", unique=True, **where("digest <> ''")),
    Index("ix_payloads_dead_letter", "id", **where("error IS NOT NULL")),
)
"""Payloads that made no message, as they arrived, once however often they come: a message's own
payload stands in its row. A row with an `error` is a dead letter."""

edits = Table(
    "edits",
    metadata,
    Column("inbound", BigInteger, ForeignKey("inbound.id"), nullable=False),
    Column("edited_at", Double, nullable=False),
    Column("text_before", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("used", Boolean, nullable=False),
    PrimaryKeyConstraint("inbound", "edited_at"),
)
