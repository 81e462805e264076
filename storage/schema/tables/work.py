"""Runs and what they have produced.

`runs` is narrow and updated often: on PostgreSQL it keeps free room in its pages, and no column
that a failure count or a heartbeat changes is indexed, so that those updates stay within the
page. Large values live in `inbound`, `outbox` and `steps`.
"""

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
    text,
)

from bot.domain.ending import Cause, Ending
from bot.domain.run import RunState
from storage.schema.tables.base import FALSE, UPDATED_OFTEN, ZERO, Id, metadata, one_of, where

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account", BigInteger, nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("order_at", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("album", Text, nullable=False, server_default=""),
    Column("request_id", Text, nullable=False, server_default=""),
    Column("messages", Integer, nullable=False, server_default=ZERO),
    Column("failures", Integer, nullable=False, server_default=ZERO),
    Column("deaths", Integer, nullable=False, server_default=ZERO),
    Column("set_aside", Text),
    Column("moves_to", BigInteger, ForeignKey("chats.id")),
    Column("replied", Boolean, nullable=False, server_default=FALSE),
    Column("quarantined", Boolean, nullable=False, server_default=FALSE),
    Column("idle_since", Double, nullable=False),
    Column("not_before", Double, nullable=False, server_default=ZERO),
    Column("state", Text, nullable=False),
    Column("holder", BigInteger),
    Column("fence", BigInteger, nullable=False, server_default=ZERO),
    Column("attempts", Integer, nullable=False, server_default=ZERO),
    Column("claimed_at", Double),
    Column("deadline_at", Double),
    Column("ended_at", Double),
    Column("ending", Text),
    Column("cause", Text),
    Column("detail", Text, nullable=False, server_default=""),
    Column("handoff", Text),
    one_of("state", RunState),
    one_of("ending", Ending),
    one_of("cause", Cause),
    CheckConstraint(
        "(state = 'ended') = (ending IS NOT NULL) AND (state = 'ended') = (ended_at IS NOT NULL)",
        name="ended",
    ),
    CheckConstraint("(state = 'running') = (holder IS NOT NULL)", name="held"),
    Index("uq_runs_head", "chat", unique=True, **where("state IN ('ready', 'running')")),
    Index("ix_runs_ready", "account", "not_before", "id", **where("state = 'ready'")),
    Index("ix_runs_running", "holder", **where("state = 'running'")),
    Index("ix_runs_quarantined", "account", **where("state = 'ready'", flag="quarantined")),
    Index("ix_runs_waiting", "chat", "order_at", "id", **where("state = 'waiting'")),
    Index("ix_runs_moves_to", "moves_to", **where("moves_to IS NOT NULL")),
    Index("ix_runs_set_aside", "id", **where("set_aside IS NOT NULL")),
    # On SQLite of all runs: it would read the table for the foreign key to a chat.
    Index("ix_runs_chat", "chat", "ended_at", "id", postgresql_where=text("state = 'ended'")),
    Index("ix_runs_ended_at", "ended_at", **where("ended_at IS NOT NULL")),
    Index(
        "ix_runs_given_up",
        "ended_at",
        "chat",
        **where("ending IN ('apologised', 'failed', 'expired')"),
    ),
    postgresql_with=UPDATED_OFTEN,
)

steps = Table(
    "steps",
    metadata,
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("safe", Boolean, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("result", Text),
    Column("begun", Integer, nullable=False, server_default=text("1")),
    Column("failed", Integer, nullable=False, server_default=ZERO),
    Column("paid", Boolean, nullable=False, server_default=FALSE),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("started_at", Double, nullable=False),
    Column("done_at", Double),
    PrimaryKeyConstraint("run", "key"),
    CheckConstraint("state IN ('started', 'done')", name="state"),
    CheckConstraint("(state = 'done') = (result IS NOT NULL)", name="done"),
)
