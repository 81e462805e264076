"""Every table, and the invariants that the database itself keeps.

Times are seconds since 1970 as the database's clock tells them (`answerback_now()`), in
double precision: one arithmetic for PostgreSQL and SQLite. `holders.renewed_at` alone is on
the lease clock (`storage/statements/clock.py`); `seen_at` is the same moment in seconds since 1970.

Foreign keys stand where rows are rare, and where the row that is named is locked anyway: the chat
of a run, a message or a part. Elsewhere a check costs a question and a lock for each row. What
every message makes has none to its account, which its chat names too, and none to the message or
run that the same transaction has made or holds; rows that are named are never deleted.

An index with a condition serves a statement that spells the condition out:
`storage/statements/literals.py`.
"""

from storage.schema.tables.base import metadata
from storage.schema.tables.desk import hand_replies, notes, presence
from storage.schema.tables.followed import followed, journal, shown
from storage.schema.tables.incoming import edits, inbound, payloads
from storage.schema.tables.outgoing import Watched, early_statuses, outbox, receipts
from storage.schema.tables.people import (
    accounts,
    chat_addresses,
    chats,
    data_requests,
    reminders,
    told,
)
from storage.schema.tables.processes import events, holders, retention
from storage.schema.tables.visitors import claims, ended_sessions, files, secrets
from storage.schema.tables.work import runs, steps

__all__ = [
    "Watched",
    "accounts",
    "chat_addresses",
    "chats",
    "claims",
    "data_requests",
    "early_statuses",
    "edits",
    "ended_sessions",
    "events",
    "files",
    "followed",
    "hand_replies",
    "holders",
    "inbound",
    "journal",
    "metadata",
    "notes",
    "outbox",
    "payloads",
    "presence",
    "receipts",
    "reminders",
    "retention",
    "runs",
    "secrets",
    "shown",
    "steps",
    "told",
]
