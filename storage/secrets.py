"""Secrets that nobody chose: made by the first process that needs one, kept for all."""

from __future__ import annotations

import sqlalchemy as sa

from storage.schema.tables import secrets
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx

_MAKE = InsertOrSkip(secrets, secrets.c.value)
_FIND = sa.select(secrets.c.value).where(secrets.c.name == sa.bindparam("secret_name"))


def find(tx: Tx, name: str) -> str | None:
    """The secret of this name; None before anybody needed it."""
    found: str | None = tx.scalar(_FIND, {"secret_name": name})
    return found


def ensure(tx: Tx, name: str, fresh: str) -> str:
    """The secret of this name; `fresh` becomes it if there is none."""
    _MAKE.run(tx, {"name": name, "value": fresh})
    return str(tx.scalars(_FIND, {"secret_name": name}).one())
