"""Every receipt of every part, as a table for queries: a part's first one is in its own row, and
those of a part that got several are in `receipts`."""

from __future__ import annotations

RECEIPTS = (
    "(SELECT id AS outbox, receipt FROM outbox WHERE receipt IS NOT NULL "
    "UNION SELECT outbox, receipt FROM receipts)"
)
