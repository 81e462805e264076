"""Requests of people about their own data: /export, /forget, and how far each has come."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0002"

_TABLE = """
CREATE TABLE data_requests (
    chat BIGINT NOT NULL CONSTRAINT fk_data_requests_chat REFERENCES chats (id),
    what TEXT NOT NULL,
    account BIGINT NOT NULL,
    state TEXT NOT NULL,
    at FLOAT8 NOT NULL,
    last_message BIGINT NOT NULL DEFAULT 0,
    last_part BIGINT NOT NULL DEFAULT 0,
    last_run BIGINT NOT NULL DEFAULT 0,
    last_event BIGINT NOT NULL DEFAULT 0,
    last_payload BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT pk_data_requests PRIMARY KEY (chat, what),
    CONSTRAINT ck_data_requests_what CHECK (what IN ('export', 'forget')),
    CONSTRAINT ck_data_requests_state CHECK (state IN ('asked', 'confirmed', 'done'))
)
"""
_OPEN = (
    "CREATE INDEX ix_data_requests_confirmed ON data_requests (account) WHERE state = 'confirmed'"
)
_LAST = "'opt_in')"
_MORE = "'opt_in', 'export', 'forget')"
_COMMANDS = (
    "'start', 'help', 'stop', 'status', 'retry', 'resend', 'opt_out', 'opt_in', 'export', 'forget'"
)


def upgrade() -> None:
    """Make the table, and let a message be one of two more commands."""
    database = op.get_bind().dialect.name
    table = _TABLE if database == "postgresql" else _TABLE.replace("FLOAT8", "DOUBLE")
    for statement in (table, _OPEN):
        op.get_bind().exec_driver_sql(statement)
    if database == "postgresql":
        op.execute("ALTER TABLE inbound DROP CONSTRAINT ck_inbound_command")
        op.execute(
            "ALTER TABLE inbound ADD CONSTRAINT ck_inbound_command "
            f"CHECK (command IN ({_COMMANDS})) NOT VALID"  # 0005 validates it: nobody waits then
        )
    else:
        _widen_in_place()


def _widen_in_place() -> None:
    """Reword the constraint of a file: making the table anew would copy all messages. The way is
    SQLite's own (https://www.sqlite.org/lang_altertable.html, section 7)."""
    tell = op.get_bind().exec_driver_sql
    [(before,)] = tell("SELECT sql FROM sqlite_master WHERE name = 'inbound'").fetchall()
    if before.count(_LAST) != 1:
        raise RuntimeError("the table of messages is not as the first migration made it")
    [(version,)] = tell("PRAGMA schema_version").fetchall()
    tell("PRAGMA writable_schema = ON")
    widened = before.replace(_LAST, _MORE)
    tell("UPDATE sqlite_master SET sql = ? WHERE name = 'inbound'", (widened,))
    tell(f"PRAGMA schema_version = {version + 1}")
    tell("PRAGMA writable_schema = RESET")


def downgrade() -> None:
    """Refuse: messages may be such commands by now."""
    raise RuntimeError("a schema goes forward only; the version before works on this one")
