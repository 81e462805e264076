"""Tables of the people who answer by hand: their notes, their replies, who looks at a chat."""

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

from storage.schema.tables.base import Id, metadata, where

notes = Table(
    "notes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("key", Text),
    Index("uq_notes_key", "key", unique=True, **where("key IS NOT NULL")),
    Index("ix_notes_chat", "chat", "id"),
    Index("ix_notes_at", "at", **where("text <> ''")),
)
"""The words of operators to each other about a chat. Nothing of it is ever sent. `key` names the
form that was handed in, as with a reply by hand."""

hand_replies = Table(
    "hand_replies",
    metadata,
    Column("part", BigInteger, nullable=False, autoincrement=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("key", Text),
    Column("digest", Text, nullable=False),
    PrimaryKeyConstraint("part"),
    Index("uq_hand_replies_key", "key", unique=True, **where("key IS NOT NULL")),
    Index("ix_hand_replies_chat", "chat"),
    Index("ix_hand_replies_at", "at", **where("digest <> ''")),
)
"""The author of a part that was written by hand. `key` names the form that was handed in, on the
reply's first part: the same form again is the same reply. `digest` is a hash of the words, empty
once those are deleted."""

presence = Table(
    "presence",
    metadata,
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("page", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("until", Double, nullable=False),
    PrimaryKeyConstraint("chat", "page"),
    Index("ix_presence_until", "until"),
)
"""The open pages of operators that show a chat, each under a short lease."""
