"""Tables of accounts, chats, their addresses, what chats are told once or later, and what they ask
of their data."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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

from bot.domain.commands import DATA, DataRequestState
from bot.domain.message import ChatKind
from bot.domain.reminders import ReminderState
from storage.schema.tables.base import UPDATED_OFTEN, ZERO, Id, metadata, one_of, where

accounts = Table(
    "accounts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("menu", Text, nullable=False, server_default=""),
    Column("down_since", Double),
    Column("down_reason", Text),
    Column("down_code", Text),
    Column("cut_off_since", Double),
    Column("cut_off_reason", Text),
    Column("poller", BigInteger),
    Column("catchup_mark", Double),
    UniqueConstraint("channel", "account"),
)

chats = Table(
    "chats",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("address", Text, nullable=False),
    Column("topic", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("language", Text, nullable=False, server_default=""),
    Column("created_at", Double, nullable=False),
    Column("last_inbound_at", Double),
    Column("answered_at", Double),
    Column("paused_until", Double),
    Column("handoff_at", Double),
    Column("handoff_run", BigInteger),
    Column("unreachable_since", Double),
    Column("unreachable_reason", Text),
    Column("opted_out_at", Double),
    Column("not_before", Double, nullable=False, server_default=ZERO),
    Column("offered", Text),
    Column("merged_into", BigInteger),
    UniqueConstraint("account", "address", "topic"),
    one_of("kind", ChatKind),
    Index("ix_chats_handoff", "handoff_at", **where("handoff_at IS NOT NULL")),
    Index("ix_chats_paused", "paused_until", **where("paused_until IS NOT NULL")),
    postgresql_with=UPDATED_OFTEN,
)

chat_addresses = Table(
    "chat_addresses",
    metadata,
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("address", Text, nullable=False),
    Column("topic", Text, nullable=False, server_default=""),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    PrimaryKeyConstraint("account", "address", "topic"),
    Index("ix_chat_addresses_chat", "chat"),
)
"""Every address under which a chat was ever known; `chats.address` is the one to send to."""

told = Table(
    "told",
    metadata,
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("what", Text, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("chat", "what"),
)
"""The notices that a chat was told once, and when: the guard of every notice that must not
repeat."""

data_requests = Table(
    "data_requests",
    metadata,
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("what", Text, nullable=False),
    Column("account", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("last_message", BigInteger, nullable=False, server_default=ZERO),
    Column("last_part", BigInteger, nullable=False, server_default=ZERO),
    Column("last_run", BigInteger, nullable=False, server_default=ZERO),
    Column("last_event", BigInteger, nullable=False, server_default=ZERO),
    Column("last_payload", BigInteger, nullable=False, server_default=ZERO),
    PrimaryKeyConstraint("chat", "what"),
    one_of("what", DATA),
    one_of("state", DataRequestState),
    Index("ix_data_requests_confirmed", "account", **where("state = 'confirmed'")),
)
"""Requests of people about their own data, the newest of each kind. `last_...` are the newest ids
at the moment when it was confirmed: what comes later is not meant."""

reminders = Table(
    "reminders",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("rule", Text, nullable=False, server_default=""),
    Column("zone", Text, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("fired", Integer, nullable=False, server_default=ZERO),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("key"),
    one_of("state", ReminderState),
    Index("ix_reminders_due", "due_at", **where("state = 'waiting'")),
    Index("ix_reminders_past", "due_at", **where("state <> 'waiting' AND text <> ''")),
    Index("ix_reminders_chat", "chat", "id"),
)
"""The reminders that a chat wants to be told later. Apart from `runs`, since a run that is due in a
month would be its chat's head until then. `rule` is empty for a reminder that is due once."""
