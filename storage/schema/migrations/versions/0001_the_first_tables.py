"""The first tables.

A migration is frozen: it spells out what a database has at this revision, and takes nothing from
`storage/schema/tables`, which goes on to say what a database has today, and why.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

_CLOCKS = """
CREATE FUNCTION answerback_now() RETURNS double precision LANGUAGE sql STABLE
AS $$ SELECT extract(epoch FROM statement_timestamp())::float8 $$;

CREATE FUNCTION answerback_lease_now() RETURNS double precision LANGUAGE sql STABLE
AS $$ SELECT answerback_now() $$;

CREATE FUNCTION answerback_lease_clock() RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT 'database'::text $$;
"""
"""PostgreSQL's clock under our names; on SQLite every connection brings its own. The time at which
a statement began: all of it agrees, and an index can be searched for what is due."""

_TABLES = """
CREATE TABLE accounts (
    id [ID] CONSTRAINT pk_accounts PRIMARY KEY,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    menu TEXT NOT NULL DEFAULT '',
    down_since FLOAT8, down_reason TEXT, down_code TEXT, cut_off_since FLOAT8, cut_off_reason TEXT,
    poller BIGINT,
    catchup_mark FLOAT8,
    CONSTRAINT uq_accounts_channel_account UNIQUE (channel, account)
);

CREATE TABLE chats (
    id [ID] CONSTRAINT pk_chats PRIMARY KEY,
    account BIGINT NOT NULL CONSTRAINT fk_chats_account REFERENCES accounts (id),
    address TEXT NOT NULL, topic TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '', language TEXT NOT NULL DEFAULT '',
    created_at FLOAT8 NOT NULL,
    last_inbound_at FLOAT8, answered_at FLOAT8,
    paused_until FLOAT8,
    handoff_at FLOAT8, handoff_run BIGINT,
    unreachable_since FLOAT8, unreachable_reason TEXT,
    opted_out_at FLOAT8,
    not_before FLOAT8 NOT NULL DEFAULT 0,
    offered TEXT,
    merged_into BIGINT,
    CONSTRAINT uq_chats_account_address_topic UNIQUE (account, address, topic),
    CONSTRAINT ck_chats_kind CHECK (kind IN ('private', 'group', 'broadcast'))
)[UPDATED OFTEN];
CREATE INDEX ix_chats_handoff ON chats (handoff_at) WHERE handoff_at IS NOT NULL;

CREATE TABLE chat_addresses (
    account BIGINT NOT NULL CONSTRAINT fk_chat_addresses_account REFERENCES accounts (id),
    address TEXT NOT NULL, topic TEXT NOT NULL DEFAULT '',
    chat BIGINT NOT NULL CONSTRAINT fk_chat_addresses_chat REFERENCES chats (id),
    CONSTRAINT pk_chat_addresses PRIMARY KEY (account, address, topic)
);
CREATE INDEX ix_chat_addresses_chat ON chat_addresses (chat);

CREATE TABLE told (
    chat BIGINT NOT NULL CONSTRAINT fk_told_chat REFERENCES chats (id),
    what TEXT NOT NULL,
    at FLOAT8 NOT NULL,
    CONSTRAINT pk_told PRIMARY KEY (chat, what)
);

CREATE TABLE reminders (
    id [ID] CONSTRAINT pk_reminders PRIMARY KEY,
    account BIGINT NOT NULL CONSTRAINT fk_reminders_account REFERENCES accounts (id),
    chat BIGINT NOT NULL CONSTRAINT fk_reminders_chat REFERENCES chats (id),
    key TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT NOT NULL,
    rule TEXT NOT NULL DEFAULT '', zone TEXT NOT NULL,
    due_at FLOAT8 NOT NULL,
    fired INTEGER NOT NULL DEFAULT 0,
    created_at FLOAT8 NOT NULL,
    CONSTRAINT uq_reminders_key UNIQUE (key),
    CONSTRAINT ck_reminders_state CHECK (state IN ('waiting', 'done', 'cancelled'))
);
CREATE INDEX ix_reminders_due ON reminders (due_at) WHERE state = 'waiting';
CREATE INDEX ix_reminders_past ON reminders (due_at) WHERE state <> 'waiting' AND text <> '';
CREATE INDEX ix_reminders_chat ON reminders (chat, id);

CREATE TABLE runs (
    id [ID] CONSTRAINT pk_runs PRIMARY KEY,
    account BIGINT NOT NULL,
    chat BIGINT NOT NULL CONSTRAINT fk_runs_chat REFERENCES chats (id),
    order_at FLOAT8 NOT NULL, created_at FLOAT8 NOT NULL,
    album TEXT NOT NULL DEFAULT '', request_id TEXT NOT NULL DEFAULT '',
    messages INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,
    set_aside TEXT,
    moves_to BIGINT CONSTRAINT fk_runs_moves_to REFERENCES chats (id),
    replied BOOLEAN NOT NULL DEFAULT false,
    quarantined BOOLEAN NOT NULL DEFAULT false,
    idle_since FLOAT8 NOT NULL, not_before FLOAT8 NOT NULL DEFAULT 0,
    state TEXT NOT NULL,
    holder BIGINT,
    fence BIGINT NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    claimed_at FLOAT8, deadline_at FLOAT8, ended_at FLOAT8,
    ending TEXT, cause TEXT, detail TEXT NOT NULL DEFAULT '',
    handoff TEXT,
    CONSTRAINT ck_runs_state CHECK (state IN ('waiting', 'ready', 'running', 'ended')),
    CONSTRAINT ck_runs_ending CHECK (ending IN ('answered', 'uncertain', 'undeliverable',
        'apologised', 'failed', 'withdrawn', 'cancelled', 'expired', 'silent')),
    CONSTRAINT ck_runs_cause CHECK (cause IN ('delivered', 'human_answered', 'chose_silence',
        'nothing_to_send', 'unconfirmed', 'sent_again', 'refused', 'unreachable', 'opted_out',
        'window_closed', 'too_old', 'failures', 'deadline', 'gave_up', 'stopped', 'operator')),
    CONSTRAINT ck_runs_ended CHECK ((state = 'ended') = (ending IS NOT NULL)
        AND (state = 'ended') = (ended_at IS NOT NULL)),
    CONSTRAINT ck_runs_held CHECK ((state = 'running') = (holder IS NOT NULL))
)[UPDATED OFTEN];
-- Of two indexes that could serve, SQLite takes the one that was made later: the partial one.
CREATE INDEX ix_runs_chat ON runs (chat, ended_at, id)[OF ENDED ONES];
CREATE UNIQUE INDEX uq_runs_head ON runs (chat) WHERE state IN ('ready', 'running');
CREATE INDEX ix_runs_ready ON runs (account, not_before, id) WHERE state = 'ready';
CREATE INDEX ix_runs_running ON runs (holder) WHERE state = 'running';
CREATE INDEX ix_runs_quarantined ON runs (account) WHERE quarantined[=1] AND state = 'ready';
CREATE INDEX ix_runs_waiting ON runs (chat, order_at, id) WHERE state = 'waiting';
CREATE INDEX ix_runs_moves_to ON runs (moves_to) WHERE moves_to IS NOT NULL;
CREATE INDEX ix_runs_set_aside ON runs (id) WHERE set_aside IS NOT NULL;
CREATE INDEX ix_runs_ended_at ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE steps (
    run BIGINT NOT NULL CONSTRAINT fk_steps_run REFERENCES runs (id),
    key TEXT NOT NULL,
    state TEXT NOT NULL,
    safe BOOLEAN NOT NULL,
    fence BIGINT NOT NULL,
    result TEXT,
    begun INTEGER NOT NULL DEFAULT 1, failed INTEGER NOT NULL DEFAULT 0,
    paid BOOLEAN NOT NULL DEFAULT false, input_tokens BIGINT, output_tokens BIGINT,
    started_at FLOAT8 NOT NULL, done_at FLOAT8,
    CONSTRAINT pk_steps PRIMARY KEY (run, key),
    CONSTRAINT ck_steps_state CHECK (state IN ('started', 'done')),
    CONSTRAINT ck_steps_done CHECK ((state = 'done') = (result IS NOT NULL))
);

CREATE TABLE inbound (
    id [ID] CONSTRAINT pk_inbound PRIMARY KEY,
    account BIGINT NOT NULL,
    chat BIGINT NOT NULL CONSTRAINT fk_inbound_chat REFERENCES chats (id),
    run BIGINT,
    ignored TEXT, command TEXT,
    request_id TEXT NOT NULL, provider_id TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    sender_id TEXT NOT NULL DEFAULT '', sender_name TEXT NOT NULL DEFAULT '',
    address TEXT NOT NULL DEFAULT '',
    button TEXT NOT NULL DEFAULT '',
    attachments TEXT NOT NULL DEFAULT '[]',
    quoted TEXT,
    album TEXT NOT NULL DEFAULT '',
    forwarded_from TEXT NOT NULL DEFAULT '',
    extra TEXT NOT NULL DEFAULT '{}',
    payload TEXT NOT NULL DEFAULT '',
    sent_at FLOAT8, received_at FLOAT8 NOT NULL, edited_at FLOAT8,
    deliveries INTEGER NOT NULL DEFAULT 1,
    CONSTRAINT uq_inbound_account_request_id UNIQUE (account, request_id),
    CONSTRAINT ck_inbound_kind CHECK (kind IN ('text', 'photo', 'voice', 'audio', 'video',
        'video_note', 'document', 'sticker', 'animation', 'location', 'venue', 'contact', 'poll',
        'dice', 'button', 'rich', 'service', 'reminder', 'other')),
    CONSTRAINT ck_inbound_ignored CHECK (ignored IN ('bot', 'broadcast', 'not_addressed',
        'other_bot', 'service', 'command', 'not_allowed', 'opted_out', 'too_fast',
        'too_many_waiting', 'daily_limit', 'awaited')),
    CONSTRAINT ck_inbound_command CHECK (command IN ('start', 'help', 'stop', 'status', 'retry',
        'resend', 'opt_out', 'opt_in')),
    CONSTRAINT ck_inbound_one_outcome CHECK (run IS NULL OR ignored IS NULL)
);
CREATE INDEX ix_inbound_run ON inbound (run);
CREATE INDEX ix_inbound_chat ON inbound (chat, received_at);

CREATE TABLE payloads (
    id [ID] CONSTRAINT pk_payloads PRIMARY KEY,
    account BIGINT NOT NULL,
    inbound BIGINT,
    received_at FLOAT8 NOT NULL,
    body TEXT NOT NULL,
    ignored TEXT, error TEXT,
    digest TEXT NOT NULL
);
CREATE INDEX ix_payloads_inbound ON payloads (inbound, id);
CREATE INDEX ix_payloads_received_at ON payloads (received_at);
CREATE UNIQUE INDEX uq_payloads_digest ON payloads (account, digest) WHERE digest <> '';
CREATE INDEX ix_payloads_dead_letter ON payloads (id) WHERE error IS NOT NULL;

CREATE TABLE edits (
    inbound BIGINT NOT NULL CONSTRAINT fk_edits_inbound REFERENCES inbound (id),
    edited_at FLOAT8 NOT NULL,
    text_before TEXT NOT NULL, text TEXT NOT NULL,
    used BOOLEAN NOT NULL,
    CONSTRAINT pk_edits PRIMARY KEY (inbound, edited_at)
);

CREATE TABLE outbox (
    id [ID] CONSTRAINT pk_outbox PRIMARY KEY,
    account BIGINT NOT NULL,
    chat BIGINT NOT NULL CONSTRAINT fk_outbox_chat REFERENCES chats (id),
    run BIGINT,
    kind TEXT NOT NULL, part INTEGER NOT NULL,
    standalone BOOLEAN NOT NULL,
    created_at FLOAT8 NOT NULL,
    text TEXT NOT NULL, wire TEXT NOT NULL,
    reply TEXT,
    replaced_by BIGINT,
    adrift BOOLEAN NOT NULL DEFAULT false,
    resends INTEGER NOT NULL DEFAULT 0,
    looks INTEGER NOT NULL DEFAULT 0,
    fence BIGINT NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before FLOAT8 NOT NULL DEFAULT 0, started_at FLOAT8 NOT NULL DEFAULT 0,
    state TEXT NOT NULL,
    holder BIGINT,
    sent_at FLOAT8,
    receipt TEXT,
    provider_status TEXT NOT NULL DEFAULT '', confirmed BOOLEAN NOT NULL DEFAULT false,
    scope TEXT, code TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
    watched TEXT GENERATED ALWAYS AS (
        CASE WHEN standalone AND state = 'pending' THEN 'due'
        WHEN (standalone OR adrift) AND state = 'sending' THEN 'leaving'
        WHEN standalone AND state = 'uncertain' THEN 'unsure'
        WHEN state IN ('uncertain', 'refused') THEN state END) STORED,
    CONSTRAINT uq_outbox_run_kind_part UNIQUE (run, kind, part),
    CONSTRAINT ck_outbox_kind CHECK (kind IN ('reply', 'apology', 'notice', 'operator')),
    CONSTRAINT ck_outbox_state CHECK (state IN ('pending', 'sending', 'sent', 'delivered', 'read',
        'uncertain', 'refused', 'dropped')),
    CONSTRAINT ck_outbox_held CHECK ((state = 'sending') = (holder IS NOT NULL)),
    CONSTRAINT ck_outbox_receipt CHECK (
        state NOT IN ('sent', 'delivered', 'read') OR receipt IS NOT NULL)
)[UPDATED OFTEN];
CREATE INDEX ix_outbox_chat ON outbox (chat, id);
CREATE INDEX ix_outbox_operator ON outbox (chat, id) WHERE kind = 'operator';
CREATE INDEX ix_outbox_due ON outbox (account, not_before, id) WHERE watched = 'due';
CREATE INDEX ix_outbox_line ON outbox (chat, watched, id) WHERE watched IS NOT NULL;
CREATE INDEX ix_outbox_unsure ON outbox (account, looks, id) WHERE watched = 'unsure';
CREATE INDEX ix_outbox_watched ON outbox (watched, id) WHERE watched IS NOT NULL;

CREATE TABLE receipts (
    outbox BIGINT NOT NULL CONSTRAINT fk_receipts_outbox REFERENCES outbox (id),
    receipt TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at FLOAT8 NOT NULL,
    CONSTRAINT pk_receipts PRIMARY KEY (outbox, receipt)
);
CREATE INDEX ix_receipts_receipt ON receipts (receipt);

CREATE TABLE early_statuses (
    account BIGINT NOT NULL,
    receipt TEXT NOT NULL,
    provider_status TEXT NOT NULL,
    state TEXT,
    code TEXT NOT NULL,
    at FLOAT8 NOT NULL,
    CONSTRAINT pk_early_statuses PRIMARY KEY (account, receipt, provider_status),
    CONSTRAINT ck_early_statuses_state CHECK (state IN ('pending', 'sending', 'sent', 'delivered',
        'read', 'uncertain', 'refused', 'dropped'))
);
CREATE INDEX ix_early_statuses_at ON early_statuses (at);

CREATE TABLE journal (
    chat BIGINT NOT NULL CONSTRAINT fk_journal_chat REFERENCES chats (id),
    n BIGINT NOT NULL,
    at FLOAT8 NOT NULL,
    kind TEXT NOT NULL,
    message BIGINT, part BIGINT,
    status TEXT, ending TEXT,
    CONSTRAINT pk_journal PRIMARY KEY (chat, n),
    CONSTRAINT ck_journal_kind CHECK (kind IN ('accepted', 'working', 'ended', 'withdrawn',
        'still_working', 'message', 'notice')),
    CONSTRAINT ck_journal_status CHECK (status IN ('completed', 'pending', 'withdrawn',
        'interrupted', 'unknown')),
    CONSTRAINT ck_journal_ending CHECK (ending IN ('answered', 'uncertain', 'undeliverable',
        'apologised', 'failed', 'withdrawn', 'cancelled', 'expired', 'silent'))
);
CREATE UNIQUE INDEX uq_journal_part ON journal (part) WHERE part IS NOT NULL;
CREATE INDEX ix_journal_said ON journal (chat, n) WHERE kind IN ('accepted', 'message', 'notice');
CREATE INDEX ix_journal_at ON journal (at);

CREATE TABLE shown (
    message BIGINT NOT NULL,
    chat BIGINT NOT NULL CONSTRAINT fk_shown_chat REFERENCES chats (id),
    state TEXT NOT NULL,
    CONSTRAINT pk_shown PRIMARY KEY (message),
    CONSTRAINT ck_shown_state CHECK (state IN ('accepted', 'working', 'over'))
);
CREATE INDEX ix_shown_chat ON shown (chat, message);
CREATE INDEX ix_shown_open ON shown (chat) WHERE state <> 'over';

CREATE TABLE followed (
    chat BIGINT NOT NULL CONSTRAINT fk_followed_chat REFERENCES chats (id),
    n BIGINT NOT NULL,
    seen BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT pk_followed PRIMARY KEY (chat)
);

CREATE TABLE holders (
    id [ID] CONSTRAINT pk_holders PRIMARY KEY,
    name TEXT NOT NULL, boot TEXT NOT NULL, clock TEXT NOT NULL,
    host TEXT NOT NULL, pid INTEGER NOT NULL, role TEXT NOT NULL,
    started_at FLOAT8 NOT NULL, renewed_at FLOAT8 NOT NULL, seen_at FLOAT8 NOT NULL,
    draining BOOLEAN NOT NULL DEFAULT false,
    gone_at FLOAT8,
    CONSTRAINT uq_holders_boot UNIQUE (boot)
);

CREATE TABLE events (
    id [ID] CONSTRAINT pk_events PRIMARY KEY,
    run BIGINT, chat BIGINT,
    at FLOAT8 NOT NULL,
    who TEXT NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL DEFAULT ''
);
CREATE INDEX ix_events_run ON events (run, id);
CREATE INDEX ix_events_chat ON events (chat, id);
CREATE INDEX ix_events_at ON events (at);

CREATE TABLE claims (
    account BIGINT NOT NULL CONSTRAINT fk_claims_account REFERENCES accounts (id),
    guest TEXT NOT NULL, owner TEXT NOT NULL,
    at FLOAT8 NOT NULL,
    CONSTRAINT pk_claims PRIMARY KEY (account, guest)
);

CREATE TABLE ended_sessions (
    session TEXT NOT NULL CONSTRAINT pk_ended_sessions PRIMARY KEY,
    until FLOAT8 NOT NULL
);
CREATE INDEX ix_ended_sessions_until ON ended_sessions (until);

CREATE TABLE secrets (
    name TEXT NOT NULL CONSTRAINT pk_secrets PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE files (
    account BIGINT NOT NULL CONSTRAINT fk_files_account REFERENCES accounts (id),
    ref TEXT NOT NULL, address TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL,
    kept_at FLOAT8 NOT NULL,
    content [BYTES],
    CONSTRAINT pk_files PRIMARY KEY (account, ref)
);
CREATE INDEX ix_files_address ON files (account, address);
CREATE INDEX ix_files_kept_at ON files (kept_at);

CREATE TABLE retention (
    what TEXT NOT NULL CONSTRAINT pk_retention PRIMARY KEY,
    id BIGINT NOT NULL DEFAULT 0,
    at FLOAT8 NOT NULL DEFAULT 0
);
"""

_SPELLED = {
    # SQLite numbers rows by itself only in a column that is declared exactly INTEGER.
    "[ID]": {"postgresql": "BIGSERIAL", "sqlite": "INTEGER NOT NULL"},
    "[BYTES]": {"postgresql": "BYTEA", "sqlite": "BLOB"},
    "FLOAT8": {"postgresql": "FLOAT8", "sqlite": "DOUBLE"},
    # It has no truth values: an index on a flag serves what asks for 1.
    "[=1]": {"postgresql": "", "sqlite": " = 1"},
    # On SQLite of all runs: it would read the table for the foreign key to a chat.
    "[OF ENDED ONES]": {"postgresql": " WHERE state = 'ended'", "sqlite": ""},
    # PostgreSQL keeps room in the pages of what is updated often.
    "[UPDATED OFTEN]": {"postgresql": " WITH (fillfactor = 50)", "sqlite": ""},
}


def upgrade() -> None:
    """Make everything in a database without tables."""
    database = op.get_bind().dialect.name
    script = _TABLES if database == "sqlite" else _CLOCKS + _TABLES
    for mark, spelled in _SPELLED.items():
        script = script.replace(mark, spelled[database])
    for statement in script.split(";\n"):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Refuse: nothing comes before this."""
    raise RuntimeError("the first schema has nothing before it; drop the database instead")
