"""A process is judged by its own lease, whatever that of its judge is.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column: an older version leaves it empty, and is judged by its judge's."""
    op.add_column("holders", sa.Column("lease", sa.Double))


def downgrade() -> None:
    """Refuse: see docs/upgrading.md."""
    raise RuntimeError("a schema goes forward only; the version before works on this one")
