"""Every table, and the invariants that the database itself keeps.

Times are seconds since 1970 as the database's clock tells them (`answerback_now()`), in
double precision: one arithmetic for PostgreSQL and SQLite. `holders.renewed_at` alone is on
the lease clock (`storage/engine/clock.py`); `seen_at` is the same moment in seconds since 1970.

An index with a condition serves a statement that spells the condition out:
`storage/engine/literals.py`.
"""

from storage.schema.tables.base import metadata
from storage.schema.tables.incoming import edits, inbound, payloads
from storage.schema.tables.outgoing import Watched, outbox, receipts
from storage.schema.tables.people import accounts, chat_addresses, chats, reminders, told
from storage.schema.tables.processes import events, holders, retention
from storage.schema.tables.work import replies, runs, steps

__all__ = [
    "Watched",
    "accounts",
    "chat_addresses",
    "chats",
    "edits",
    "events",
    "holders",
    "inbound",
    "metadata",
    "outbox",
    "payloads",
    "receipts",
    "reminders",
    "replies",
    "retention",
    "runs",
    "steps",
    "told",
]
