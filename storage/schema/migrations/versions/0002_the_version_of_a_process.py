"""The version of the program that a process runs, which an upgrade one by one is followed by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column: 0.1.0 leaves it empty."""
    op.add_column("holders", sa.Column("version", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Refuse: see docs/upgrading.md."""
    raise RuntimeError("a schema goes forward only; the version before works on this one")
