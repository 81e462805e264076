"""The name under which flows pass a transaction along, without knowing SQLAlchemy."""

from sqlalchemy import Connection as Tx

__all__ = ["Tx"]
