"""Answering by hand: notes of operators, who wrote which reply, who looks at a chat, and indexes of
the chats that want a person.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _chat(table: str) -> sa.Column[int]:
    key = sa.ForeignKey("chats.id", name=f"fk_{table}_chat")
    return sa.Column("chat", sa.BigInteger, key, nullable=False)


def _index(name: str, table: str, columns: list[str], where: str = "") -> None:
    condition = sa.text(where) if where else None
    op.create_index(
        name,
        table,
        columns,
        unique=name.startswith("uq_"),
        postgresql_where=condition,
        sqlite_where=condition,
    )


def upgrade() -> None:
    """Add three tables and two indexes: an older version works beside them."""
    op.create_table(
        "notes",
        sa.Column("id", _ID, nullable=False),
        _chat("notes"),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
    )
    _index("ix_notes_chat", "notes", ["chat", "id"])
    _index("ix_notes_at", "notes", ["at"], "text <> ''")
    op.create_table(
        "hand_replies",
        sa.Column("part", sa.BigInteger, nullable=False, autoincrement=False),
        _chat("hand_replies"),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("digest", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("part", name="pk_hand_replies"),
    )
    _index("uq_hand_replies_key", "hand_replies", ["key"], "key IS NOT NULL")
    _index("ix_hand_replies_chat", "hand_replies", ["chat"])
    _index("ix_hand_replies_at", "hand_replies", ["at"], "digest <> ''")
    op.create_table(
        "presence",
        _chat("presence"),
        sa.Column("page", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("chat", "page", name="pk_presence"),
    )
    _index("ix_presence_until", "presence", ["until"])
    _index("ix_chats_paused", "chats", ["paused_until"], "paused_until IS NOT NULL")
    given_up = "ending IN ('apologised', 'failed', 'expired')"
    _index("ix_runs_given_up", "runs", ["ended_at", "chat"], given_up)


def downgrade() -> None:
    """Refuse: see docs/upgrading.md."""
    raise RuntimeError("a schema goes forward only; the version before works on this one")
