"""Tables of visitors who come without a platform: claims, ended sessions, secrets, files."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from storage.schema.tables.base import metadata

claims = Table(
    "claims",
    metadata,
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("guest", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("account", "guest"),
)
"""A guest's address, and the user's that took its chat over: once, and for ever."""

ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("session", Text, primary_key=True),
    Column("until", Double, nullable=False),
    Index("ix_ended_sessions_until", "until"),
)
"""Sessions that were signed out before their tokens ran out, which they do at `until`."""

secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Secrets that nobody chose: made by the first process that needs one."""

files = Table(
    "files",
    metadata,
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("ref", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("mime", Text, nullable=False),
    Column("kept_at", Double, nullable=False),
    Column("content", LargeBinary),
    PrimaryKeyConstraint("account", "ref"),
    Index("ix_files_address", "account", "address"),
    Index("ix_files_kept_at", "kept_at"),
)
"""Files that came from the address of a chat. `ref` is a hash of that and the content, which is
null where a folder keeps it. `kept_at` is 0 for one that is to be forgotten."""
