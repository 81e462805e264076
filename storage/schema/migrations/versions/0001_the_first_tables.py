"""the first tables

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_CLOCKS = (
    """
    CREATE FUNCTION answerback_now() RETURNS double precision
    LANGUAGE sql STABLE AS $$ SELECT extract(epoch FROM statement_timestamp())::float8 $$
    """,
    """
    CREATE FUNCTION answerback_lease_now() RETURNS double precision
    LANGUAGE sql STABLE AS $$ SELECT answerback_now() $$
    """,
    """
    CREATE FUNCTION answerback_lease_clock() RETURNS text
    LANGUAGE sql IMMUTABLE AS $$ SELECT 'database'::text $$
    """,
)
"""PostgreSQL's clock under our names; on SQLite every connection brings its own. The time at which
a statement began: all of it agrees, and an index can be searched for what is due."""


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for statement in _CLOCKS:
            op.execute(statement)
    op.create_table(
        "accounts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("down_since", sa.Double(), nullable=True),
        sa.Column("down_reason", sa.Text(), nullable=True),
        sa.Column("poller", sa.BigInteger(), nullable=True),
        sa.Column("catchup_mark", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("channel", "account", name=op.f("uq_accounts_channel_account")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=True),
        sa.Column("chat", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_at", "events", ["at"], unique=False)
    op.create_index("ix_events_chat", "events", ["chat", "id"], unique=False)
    op.create_index("ix_events_run", "events", ["run", "id"], unique=False)
    op.create_table(
        "holders",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("clock", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("renewed_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.Column("draining", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("gone_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_holders")),
        sa.UniqueConstraint("boot", name=op.f("uq_holders_boot")),
    )
    op.create_table(
        "chats",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("language", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_inbound_at", sa.Double(), nullable=True),
        sa.Column("stop_revision", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("paused_until", sa.Double(), nullable=True),
        sa.Column("unreachable_since", sa.Double(), nullable=True),
        sa.Column("unreachable_reason", sa.Text(), nullable=True),
        sa.Column("opted_out_at", sa.Double(), nullable=True),
        sa.Column("not_before", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("offered", sa.Text(), nullable=True),
        sa.Column("merged_into", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('private', 'group', 'broadcast')", name=op.f("ck_chats_kind")),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name=op.f("fk_chats_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chats")),
        sa.UniqueConstraint(
            "account", "address", "topic", name=op.f("uq_chats_account_address_topic")
        ),
    )
    op.create_table(
        "chat_addresses",
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account"], ["accounts.id"], name=op.f("fk_chat_addresses_account")
        ),
        sa.ForeignKeyConstraint(["chat"], ["chats.id"], name=op.f("fk_chat_addresses_chat")),
        sa.PrimaryKeyConstraint("account", "address", "topic", name=op.f("pk_chat_addresses")),
    )
    op.create_index("ix_chat_addresses_chat", "chat_addresses", ["chat"], unique=False)
    op.create_table(
        "reminders",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), server_default="", nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("fired", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "state IN ('waiting', 'done', 'cancelled')", name=op.f("ck_reminders_state")
        ),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name=op.f("fk_reminders_account")),
        sa.ForeignKeyConstraint(["chat"], ["chats.id"], name=op.f("fk_reminders_chat")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reminders")),
        sa.UniqueConstraint("key", name=op.f("uq_reminders_key")),
    )
    op.create_index("ix_reminders_chat", "reminders", ["chat", "id"], unique=False)
    op.create_index(
        "ix_reminders_due",
        "reminders",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("state = 'waiting'"),
        sqlite_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("holder", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("deaths", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("replied", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("lane", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("album", sa.Text(), server_default="", nullable=False),
        sa.Column("messages", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("order_at", sa.Double(), nullable=False),
        sa.Column("last_message_at", sa.Double(), nullable=False),
        sa.Column("not_before", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("idle_since", sa.Double(), nullable=False),
        sa.Column("deadline_at", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("claimed_at", sa.Double(), nullable=True),
        sa.Column("progress_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("ending", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.Column("set_aside", sa.Text(), nullable=True),
        sa.Column("moves_to", sa.BigInteger(), nullable=True),
        sa.Column("request_id", sa.Text(), server_default="", nullable=False),
        sa.CheckConstraint(
            "(state = 'ended') = (ending IS NOT NULL) AND (state = 'ended') = (ended_at IS NOT NULL)",
            name=op.f("ck_runs_ended"),
        ),
        sa.CheckConstraint("(state = 'running') = (holder IS NOT NULL)", name=op.f("ck_runs_held")),
        sa.CheckConstraint(
            "ending IN ('answered', 'uncertain', 'undeliverable', 'apologised', 'failed', 'withdrawn', 'cancelled', 'expired', 'silent')",
            name=op.f("ck_runs_ending"),
        ),
        sa.CheckConstraint(
            "cause IN ('delivered', 'human_answered', 'chose_silence', 'nothing_to_send', 'unconfirmed', 'sent_again', 'refused', 'unreachable', 'opted_out', 'window_closed', 'too_old', 'failures', 'deadline', 'gave_up', 'stopped', 'operator')",
            name=op.f("ck_runs_cause"),
        ),
        sa.CheckConstraint(
            "state IN ('waiting', 'ready', 'running', 'ended')", name=op.f("ck_runs_state")
        ),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name=op.f("fk_runs_account")),
        sa.ForeignKeyConstraint(["chat"], ["chats.id"], name=op.f("fk_runs_chat")),
        sa.ForeignKeyConstraint(["moves_to"], ["chats.id"], name=op.f("fk_runs_moves_to")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index("ix_runs_chat", "runs", ["chat", "ended_at", "id"], unique=False)
    op.create_index(
        "ix_runs_ended_at",
        "runs",
        ["ended_at"],
        unique=False,
        postgresql_where=sa.text("ended_at IS NOT NULL"),
        sqlite_where=sa.text("ended_at IS NOT NULL"),
    )
    op.create_index(
        "ix_runs_lane",
        "runs",
        ["account"],
        unique=False,
        postgresql_where=sa.text("state = 'ready' AND lane"),
        sqlite_where=sa.text("state = 'ready' AND lane = 1"),
    )
    op.create_index(
        "ix_runs_live",
        "runs",
        ["chat", "order_at", "id"],
        unique=False,
        postgresql_where=sa.text("state <> 'ended'"),
        sqlite_where=sa.text("state <> 'ended'"),
    )
    op.create_index(
        "ix_runs_moves_to",
        "runs",
        ["moves_to"],
        unique=False,
        postgresql_where=sa.text("moves_to IS NOT NULL"),
        sqlite_where=sa.text("moves_to IS NOT NULL"),
    )
    op.create_index(
        "ix_runs_ready",
        "runs",
        ["account", "not_before", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'ready'"),
        sqlite_where=sa.text("state = 'ready'"),
    )
    op.create_index(
        "ix_runs_running",
        "runs",
        ["holder"],
        unique=False,
        postgresql_where=sa.text("state = 'running'"),
        sqlite_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "uq_runs_head",
        "runs",
        ["chat"],
        unique=True,
        postgresql_where=sa.text("state IN ('ready', 'running')"),
        sqlite_where=sa.text("state IN ('ready', 'running')"),
    )
    op.create_table(
        "told",
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["chat"], ["chats.id"], name=op.f("fk_told_chat")),
        sa.PrimaryKeyConstraint("chat", "what", name=op.f("pk_told")),
    )
    op.create_table(
        "inbound",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=True),
        sa.Column("ignored", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), server_default="", nullable=False),
        sa.Column("sender_name", sa.Text(), server_default="", nullable=False),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("button", sa.Text(), server_default="", nullable=False),
        sa.Column("attachments", sa.Text(), server_default="[]", nullable=False),
        sa.Column("quoted", sa.Text(), nullable=True),
        sa.Column("album", sa.Text(), server_default="", nullable=False),
        sa.Column("forwarded_from", sa.Text(), server_default="", nullable=False),
        sa.Column("extra", sa.Text(), server_default="{}", nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=True),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("edited_at", sa.Double(), nullable=True),
        sa.Column("deliveries", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "kind IN ('text', 'photo', 'voice', 'audio', 'video', 'video_note', 'document', 'sticker', 'animation', 'location', 'venue', 'contact', 'poll', 'dice', 'button', 'rich', 'service', 'reminder', 'other')",
            name=op.f("ck_inbound_kind"),
        ),
        sa.CheckConstraint(
            "ignored IN ('bot', 'broadcast', 'not_addressed', 'other_bot', 'service', 'command', 'not_allowed', 'opted_out', 'too_fast', 'too_many_waiting', 'daily_limit')",
            name=op.f("ck_inbound_ignored"),
        ),
        sa.CheckConstraint(
            "command IN ('start', 'help', 'stop', 'status', 'retry', 'resend', 'opt_out', 'opt_in')",
            name=op.f("ck_inbound_command"),
        ),
        sa.CheckConstraint("run IS NULL OR ignored IS NULL", name=op.f("ck_inbound_one_outcome")),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name=op.f("fk_inbound_account")),
        sa.ForeignKeyConstraint(["chat"], ["chats.id"], name=op.f("fk_inbound_chat")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_inbound_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbound")),
        sa.UniqueConstraint("account", "request_id", name=op.f("uq_inbound_account_request_id")),
    )
    op.create_index("ix_inbound_chat", "inbound", ["chat", "received_at"], unique=False)
    op.create_index("ix_inbound_run", "inbound", ["run"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("standalone", sa.Boolean(), nullable=False),
        sa.Column("holder", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("resends", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("looks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("not_before", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("started_at", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("wire", sa.Text(), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.Column("provider_status", sa.Text(), server_default="", nullable=False),
        sa.Column("confirmed", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), server_default="", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("replaced_by", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(state = 'sending') = (holder IS NOT NULL)", name=op.f("ck_outbox_held")
        ),
        sa.CheckConstraint(
            "kind IN ('reply', 'apology', 'notice', 'operator')", name=op.f("ck_outbox_kind")
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'sending', 'sent', 'delivered', 'read', 'uncertain', 'refused', 'dropped')",
            name=op.f("ck_outbox_state"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('sent', 'delivered', 'read') OR receipt IS NOT NULL",
            name=op.f("ck_outbox_receipt"),
        ),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name=op.f("fk_outbox_account")),
        sa.ForeignKeyConstraint(["chat"], ["chats.id"], name=op.f("fk_outbox_chat")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_outbox_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("run", "kind", "part", name=op.f("uq_outbox_run_kind_part")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index("ix_outbox_chat", "outbox", ["chat", "id"], unique=False)
    op.create_index(
        "ix_outbox_doubtful",
        "outbox",
        ["state", "id"],
        unique=False,
        postgresql_where=sa.text("state IN ('uncertain', 'refused')"),
        sqlite_where=sa.text("state IN ('uncertain', 'refused')"),
    )
    op.create_index(
        "ix_outbox_line",
        "outbox",
        ["chat", "id"],
        unique=False,
        postgresql_where=sa.text("standalone AND state = 'pending'"),
        sqlite_where=sa.text("standalone = 1 AND state = 'pending'"),
    )
    op.create_index(
        "ix_outbox_standalone",
        "outbox",
        ["account", "not_before", "id"],
        unique=False,
        postgresql_where=sa.text("standalone AND state = 'pending'"),
        sqlite_where=sa.text("standalone = 1 AND state = 'pending'"),
    )
    op.create_index(
        "ix_outbox_operator",
        "outbox",
        ["chat", "sent_at"],
        unique=False,
        postgresql_where=sa.text("kind = 'operator'"),
        sqlite_where=sa.text("kind = 'operator'"),
    )
    op.create_index("ix_outbox_receipt", "outbox", ["account", "receipt"], unique=False)
    op.create_index(
        "ix_outbox_sending",
        "outbox",
        ["chat", "holder"],
        unique=False,
        postgresql_where=sa.text("state = 'sending'"),
        sqlite_where=sa.text("state = 'sending'"),
    )
    op.create_index(
        "ix_outbox_unsure",
        "outbox",
        ["account", "id"],
        unique=False,
        postgresql_where=sa.text("standalone AND state = 'uncertain'"),
        sqlite_where=sa.text("standalone = 1 AND state = 'uncertain'"),
    )
    op.create_table(
        "replies",
        sa.Column("run", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stored_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_replies_run")),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_replies")),
    )
    op.create_table(
        "steps",
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("safe", sa.Boolean(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("begun", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("paid", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("done_at", sa.Double(), nullable=True),
        sa.CheckConstraint("(state = 'done') = (result IS NOT NULL)", name=op.f("ck_steps_done")),
        sa.CheckConstraint("state IN ('started', 'done')", name=op.f("ck_steps_state")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_steps_run")),
        sa.PrimaryKeyConstraint("run", "key", name=op.f("pk_steps")),
    )
    op.create_table(
        "edits",
        sa.Column("inbound", sa.BigInteger(), nullable=False),
        sa.Column("edited_at", sa.Double(), nullable=False),
        sa.Column("text_before", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["inbound"], ["inbound.id"], name=op.f("fk_edits_inbound")),
        sa.PrimaryKeyConstraint("inbound", "edited_at", name=op.f("pk_edits")),
    )
    op.create_table(
        "payloads",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account", sa.BigInteger(), nullable=False),
        sa.Column("inbound", sa.BigInteger(), nullable=True),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("ignored", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name=op.f("fk_payloads_account")),
        sa.ForeignKeyConstraint(["inbound"], ["inbound.id"], name=op.f("fk_payloads_inbound")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payloads")),
    )
    op.create_index("ix_payloads_inbound", "payloads", ["inbound"], unique=False)
    op.create_index("ix_payloads_received_at", "payloads", ["received_at"], unique=False)
    op.create_index(
        "uq_payloads_dead_letter",
        "payloads",
        ["account", "digest"],
        unique=True,
        postgresql_where=sa.text("error IS NOT NULL"),
        sqlite_where=sa.text("error IS NOT NULL"),
    )
    op.create_table(
        "receipts",
        sa.Column("outbox", sa.BigInteger(), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["outbox"], ["outbox.id"], name=op.f("fk_receipts_outbox")),
        sa.PrimaryKeyConstraint("outbox", "receipt", name=op.f("pk_receipts")),
    )


def downgrade() -> None:
    raise RuntimeError("the first schema has nothing before it; drop the database instead")
