"""Every table, and the invariants that the database itself keeps.

Times are seconds since 1970 as the database's clock tells them (`answerback_now()`), in
double precision: one arithmetic for PostgreSQL and SQLite. `holders.renewed_at` alone is on
the lease clock (`storage/clock.py`); `seen_at` is the same moment in seconds since 1970.

An index with a condition serves a statement that spells the condition out: `storage/words.py`.

`runs` is narrow and updated often: on PostgreSQL it keeps free room in its pages, and no
column that a failure count or a heartbeat changes is indexed, so that those updates stay
within the page. Large values live in `payloads`, `replies` and `steps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.message import ChannelName, ChatKind, InboundKind
from bot.domain.reminder import ReminderState
from bot.domain.reply import PartKind
from bot.domain.run import RunState

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column that is declared exactly INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")
_FALSE = text("false")
_ZERO = text("0")


def _one_of(column: str, values: Iterable[Enum]) -> CheckConstraint:
    allowed = ", ".join(f"'{v.value}'" for v in values)
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


accounts = Table(
    "accounts",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("down_since", Double),
    Column("down_reason", Text),
    Column("poller", BigInteger),
    Column("catchup_mark", Double),
    UniqueConstraint("channel", "account"),
    _one_of("channel", ChannelName),
)

chats = Table(
    "chats",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("address", Text, nullable=False),
    Column("topic", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("language", Text, nullable=False, server_default=""),
    Column("created_at", Double, nullable=False),
    Column("last_inbound_at", Double),
    Column("stop_revision", Integer, nullable=False, server_default=_ZERO),
    Column("paused_until", Double),
    Column("unreachable_since", Double),
    Column("unreachable_reason", Text),
    Column("opted_out_at", Double),
    Column("not_before", Double, nullable=False, server_default=_ZERO),
    Column("offered", Text),
    Column("merged_into", BigInteger),
    UniqueConstraint("account", "address", "topic"),
    _one_of("kind", ChatKind),
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
"""What a chat was told once, and when: the guard of every notice that must not repeat."""

runs = Table(
    "runs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("fence", BigInteger, nullable=False, server_default=_ZERO),
    Column("holder", BigInteger),
    Column("attempts", Integer, nullable=False, server_default=_ZERO),
    Column("failures", Integer, nullable=False, server_default=_ZERO),
    Column("deaths", Integer, nullable=False, server_default=_ZERO),
    Column("replied", Boolean, nullable=False, server_default=_FALSE),
    Column("lane", Boolean, nullable=False, server_default=_FALSE),
    Column("stop_revision", Integer, nullable=False, server_default=_ZERO),
    Column("album", Text, nullable=False, server_default=""),
    Column("messages", Integer, nullable=False, server_default=_ZERO),
    Column("order_at", Double, nullable=False),
    Column("last_message_at", Double, nullable=False),
    Column("not_before", Double, nullable=False, server_default=_ZERO),
    Column("idle_since", Double, nullable=False),
    Column("deadline_at", Double),
    Column("created_at", Double, nullable=False),
    Column("claimed_at", Double),
    Column("progress_at", Double),
    Column("ended_at", Double),
    Column("ending", Text),
    Column("detail", Text, nullable=False, server_default=""),
    Column("set_aside", Text),
    Column("moves_to", BigInteger, ForeignKey("chats.id")),
    Column("request_id", Text, nullable=False, server_default=""),
    _one_of("state", RunState),
    CheckConstraint(
        "ending IS NULL OR ending IN (" + ", ".join(f"'{e.value}'" for e in Ending) + ")",
        name="ending",
    ),
    CheckConstraint(
        "(state = 'ended') = (ending IS NOT NULL) AND (state = 'ended') = (ended_at IS NOT NULL)",
        name="ended",
    ),
    CheckConstraint("(state = 'running') = (holder IS NOT NULL)", name="held"),
    Index(
        "uq_runs_head",
        "chat",
        unique=True,
        postgresql_where=text("state IN ('ready', 'running')"),
        sqlite_where=text("state IN ('ready', 'running')"),
    ),
    Index(
        "ix_runs_ready",
        "account",
        "not_before",
        "id",
        postgresql_where=text("state = 'ready'"),
        sqlite_where=text("state = 'ready'"),
    ),
    Index(
        "ix_runs_running",
        "holder",
        postgresql_where=text("state = 'running'"),
        sqlite_where=text("state = 'running'"),
    ),
    Index(
        "ix_runs_lane",
        "account",
        postgresql_where=text("state = 'ready' AND lane"),
        sqlite_where=text("state = 'ready' AND lane = 1"),
    ),
    Index(
        "ix_runs_live",
        "chat",
        "order_at",
        "id",
        postgresql_where=text("state <> 'ended'"),
        sqlite_where=text("state <> 'ended'"),
    ),
    Index(
        "ix_runs_moves_to",
        "moves_to",
        postgresql_where=text("moves_to IS NOT NULL"),
        sqlite_where=text("moves_to IS NOT NULL"),
    ),
    Index("ix_runs_chat", "chat", "ended_at", "id"),
    Index(
        "ix_runs_ended_at",
        "ended_at",
        postgresql_where=text("ended_at IS NOT NULL"),
        sqlite_where=text("ended_at IS NOT NULL"),
    ),
    postgresql_with={"fillfactor": "70"},
)

inbound = Table(
    "inbound",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("run", BigInteger, ForeignKey("runs.id")),
    Column("ignored", Text),
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
    Column("sent_at", Double),
    Column("received_at", Double, nullable=False),
    Column("edited_at", Double),
    Column("deliveries", Integer, nullable=False, server_default=text("1")),
    UniqueConstraint("account", "request_id"),
    _one_of("kind", InboundKind),
    CheckConstraint("run IS NULL OR ignored IS NULL", name="one_outcome"),
    Index("ix_inbound_run", "run"),
    Index("ix_inbound_chat", "chat", "received_at"),
)

payloads = Table(
    "payloads",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("inbound", BigInteger, ForeignKey("inbound.id")),
    Column("received_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Column("ignored", Text),
    Column("error", Text),
    Column("digest", Text, nullable=False),
    Index("ix_payloads_inbound", "inbound"),
    Index("ix_payloads_received_at", "received_at"),
    Index(
        "uq_payloads_dead_letter",
        "account",
        "digest",
        unique=True,
        postgresql_where=text("error IS NOT NULL"),
        sqlite_where=text("error IS NOT NULL"),
    ),
)
"""What arrived, as it arrived. A row with an `error` is a dead letter."""

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
    Column("failed", Integer, nullable=False, server_default=_ZERO),
    Column("paid", Boolean, nullable=False, server_default=_FALSE),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("started_at", Double, nullable=False),
    Column("done_at", Double),
    PrimaryKeyConstraint("run", "key"),
    CheckConstraint("state IN ('started', 'done')", name="state"),
    CheckConstraint("(state = 'done') = (result IS NOT NULL)", name="done"),
)

reminders = Table(
    "reminders",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("rule", Text, nullable=False, server_default=""),
    Column("zone", Text, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("fired", Integer, nullable=False, server_default=_ZERO),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("key"),
    _one_of("state", ReminderState),
    Index(
        "ix_reminders_due",
        "due_at",
        postgresql_where=text("state = 'waiting'"),
        sqlite_where=text("state = 'waiting'"),
    ),
    Index("ix_reminders_chat", "chat", "id"),
)
"""What a chat wants to be told later. Apart from `runs`, since a run that is due in a month
would be its chat's head until then. `rule` is empty for a reminder that is due once."""

replies = Table(
    "replies",
    metadata,
    Column("run", BigInteger, ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("stored_at", Double, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", BigInteger, ForeignKey("chats.id"), nullable=False),
    Column("run", BigInteger, ForeignKey("runs.id")),
    Column("kind", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("loose", Boolean, nullable=False),
    Column("holder", BigInteger),
    Column("fence", BigInteger, nullable=False, server_default=_ZERO),
    Column("attempts", Integer, nullable=False, server_default=_ZERO),
    Column("resends", Integer, nullable=False, server_default=_ZERO),
    Column("looks", Integer, nullable=False, server_default=_ZERO),
    Column("not_before", Double, nullable=False, server_default=_ZERO),
    Column("started_at", Double, nullable=False, server_default=_ZERO),
    Column("created_at", Double, nullable=False),
    Column("sent_at", Double),
    Column("text", Text, nullable=False),
    Column("wire", Text, nullable=False),
    Column("receipt", Text),
    Column("provider_status", Text, nullable=False, server_default=""),
    Column("confirmed", Boolean, nullable=False, server_default=_FALSE),
    Column("scope", Text),
    Column("code", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    UniqueConstraint("run", "kind", "part"),
    _one_of("kind", PartKind),
    _one_of("state", PartState),
    CheckConstraint("(state = 'sending') = (holder IS NOT NULL)", name="held"),
    CheckConstraint(
        "state NOT IN ('sent', 'delivered', 'read') OR receipt IS NOT NULL", name="receipt"
    ),
    Index(
        "ix_outbox_loose",
        "account",
        "not_before",
        "id",
        postgresql_where=text("loose AND state = 'pending'"),
        sqlite_where=text("loose = 1 AND state = 'pending'"),
    ),
    Index(
        "ix_outbox_line",
        "chat",
        "id",
        postgresql_where=text("loose AND state = 'pending'"),
        sqlite_where=text("loose = 1 AND state = 'pending'"),
    ),
    Index(
        "ix_outbox_operator",
        "chat",
        "sent_at",
        postgresql_where=text("kind = 'operator'"),
        sqlite_where=text("kind = 'operator'"),
    ),
    Index(
        "ix_outbox_sending",
        "chat",
        "holder",
        postgresql_where=text("state = 'sending'"),
        sqlite_where=text("state = 'sending'"),
    ),
    Index("ix_outbox_chat", "chat", "id"),
    Index("ix_outbox_receipt", "account", "receipt"),
    Index(
        "ix_outbox_unsure",
        "account",
        "id",
        postgresql_where=text("loose AND state = 'uncertain'"),
        sqlite_where=text("loose = 1 AND state = 'uncertain'"),
    ),
    Index(
        "ix_outbox_doubtful",
        "state",
        "id",
        postgresql_where=text("state IN ('uncertain', 'refused')"),
        sqlite_where=text("state IN ('uncertain', 'refused')"),
    ),
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

holders = Table(
    "holders",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("clock", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("renewed_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("draining", Boolean, nullable=False, server_default=_FALSE),
    Column("gone_at", Double),
    UniqueConstraint("boot"),
)

events = Table(
    "events",
    metadata,
    Column("id", _Id, primary_key=True),
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
