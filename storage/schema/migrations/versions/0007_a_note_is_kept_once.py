"""A note is kept once, however often its form is handed in.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add a column that may be null: an older version makes notes without a key."""
    op.add_column("notes", sa.Column("key", sa.Text))
    keyed = sa.text("key IS NOT NULL")
    op.create_index(
        "uq_notes_key", "notes", ["key"], unique=True, postgresql_where=keyed, sqlite_where=keyed
    )


def downgrade() -> None:
    """Refuse: see docs/upgrading.md."""
    raise RuntimeError("a schema goes forward only; the version before works on this one")
