"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Add only: CONTRIBUTING.md says what the version before can bear."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Refuse: see docs/upgrading.md."""
    raise RuntimeError("a schema goes forward only; the version before works on this one")
