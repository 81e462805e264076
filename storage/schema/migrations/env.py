"""Alembic's entry: runs on the connection that it is handed and reads no settings."""

from __future__ import annotations

from alembic import context

from storage.schema.revisions import REVISION_TABLE
from storage.schema.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=REVISION_TABLE,
    transaction_per_migration=True,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
