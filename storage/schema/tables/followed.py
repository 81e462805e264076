"""Tables of what clients follow: a chat's journal, how far it has come and was seen."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from bot.domain.clients.journal import EventKind, Shown
from bot.domain.ending import Ending, TurnStatus
from storage.schema.tables.base import ZERO, metadata, one_of, where

journal = Table(
    "journal",
    metadata,
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", BigInteger),
    Column("part", BigInteger),
    Column("status", Text),
    Column("ending", Text),
    PrimaryKeyConstraint("chat", "n"),
    one_of("kind", EventKind),
    one_of("status", TurnStatus),
    one_of("ending", Ending),
    Index("uq_journal_part", "part", unique=True, **where("part IS NOT NULL")),
    Index("ix_journal_said", "chat", "n", **where("kind IN ('accepted', 'message', 'notice')")),
    Index("ix_journal_at", "at"),
)
"""The numbers of a chat have no gap: each is taken under the lock of the chat's row. It names
messages and parts and holds no words of its own."""

shown = Table(
    "shown",
    metadata,
    Column("message", BigInteger, nullable=False, autoincrement=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("message"),
    one_of("state", Shown),
    Index("ix_shown_chat", "chat", "message"),
    Index("ix_shown_open", "chat", **where("state <> 'over'")),
)
"""The state that the journal has shown last of a message."""

followed = Table(
    "followed",
    metadata,
    Column("chat", BigInteger, ForeignKey("chats.id"), primary_key=True, autoincrement=False),
    Column("n", BigInteger, nullable=False),
    Column("seen", BigInteger, nullable=False, server_default=ZERO),
)
"""A chat that has a journal: the number of its last event, which stays when old ones go, and the
number up to which a client has shown them."""
