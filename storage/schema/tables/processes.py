"""Processes, the trail of what anybody moved, and how far old words are deleted."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from storage.schema.tables.base import FALSE, ZERO, Id, metadata

holders = Table(
    "holders",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("clock", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("renewed_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("draining", Boolean, nullable=False, server_default=FALSE),
    Column("gone_at", Double),
    Column("version", Text, nullable=False, server_default=""),
    Column("lease", Double),
    UniqueConstraint("boot"),
)
"""`version` is empty where 0.1.0 or an earlier version works, `lease` (seconds) where one works
that does not tell it."""

events = Table(
    "events",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", BigInteger),
    Column("chat", BigInteger),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("why", Text, nullable=False, server_default=""),
    Index("ix_events_run", "run", "id"),
    Index("ix_events_chat", "chat", "id"),
    Index("ix_events_at", "at"),
)
"""The audit trail: append only."""

retention = Table(
    "retention",
    metadata,
    Column("what", Text, primary_key=True),
    Column("id", BigInteger, nullable=False, server_default=ZERO),
    Column("at", Double, nullable=False, server_default=ZERO),
)
"""The place that each walk through old rows has come to: the last row whose words are deleted; and
the seconds by which due times have followed a clock that was set."""

RESTORED = "restored"
"""The name of the row in `retention` of a database that came from a backup: `at` is when that was
made, and `id` is 1 once it is settled; then `at` is when that was."""
