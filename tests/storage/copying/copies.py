"""Two databases of different kinds, the first with a row of every kind, and copies between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.clock import SystemClock
from storage.copying import Copied, Progress, Stage, copy
from storage.engine.database import parsed_url
from storage.schema import tables
from storage.schema.tables import metadata
from storage.statements.tx import Tx
from tests.cli import seeded
from tests.storage.kit import connected

LEASE = 15.0
BIGGEST = 2**63 - 1
HARD_TEXT = (
    '\'"\\N\t\r\n\\x00 \x01\x7f\u202eעברית 日本語 👩‍👩‍👧‍👦 \ufffd\U0010ffff {"a": [1e400, null]}'
)
"""It breaks quoting, a text form, a narrow character set or a parser of JSON."""
EXACT = 0.1 + 0.2
SMALLEST = 5e-324

_MORE: dict[sa.Table, dict[str, Any]] = {
    tables.claims: {"account": 1, "guest": "g", "owner": HARD_TEXT, "at": EXACT},
    tables.ended_sessions: {"session": "s", "until": SMALLEST},
    tables.secrets: {"name": "web", "value": HARD_TEXT},
    tables.files: {
        "account": 1,
        "ref": "r",
        "address": "a",
        "name": HARD_TEXT,
        "mime": "image/png",
        "kept_at": 1e308,
        "content": bytes(range(256)) * 3,
    },
    tables.followed: {"chat": 1, "n": BIGGEST, "seen": -BIGGEST - 1},
    tables.journal: {"chat": 1, "n": BIGGEST, "at": EXACT, "kind": "ended", "ending": "uncertain"},
    tables.reminders: {
        "id": 77,
        "account": 1,
        "chat": 1,
        "key": "k",
        "state": "waiting",
        "text": HARD_TEXT,
        "zone": "Europe/Berlin",
        "due_at": 1_800_000_000.123456,
        "created_at": EXACT,
    },
    tables.retention: {"what": "runs", "id": BIGGEST, "at": -0.5},
    tables.shown: {"message": BIGGEST, "chat": 1, "state": "working"},
    tables.data_requests: {
        "chat": 1,
        "what": "forget",
        "account": 1,
        "state": "confirmed",
        "at": EXACT,
        "last_message": BIGGEST,
    },
    tables.presence: {"chat": 1, "page": "p", "who": HARD_TEXT, "until": EXACT},
    tables.told: {"chat": 1, "what": "welcome", "at": EXACT},
    tables.early_statuses: {
        "account": 1,
        "receipt": "SM1",
        "provider_status": HARD_TEXT,
        "code": "63016",
        "at": EXACT,
    },
    tables.edits: {
        "inbound": 1,
        "edited_at": EXACT,
        "text_before": "",
        "text": HARD_TEXT,
        "used": True,
    },
}


def fill(tx: Tx) -> None:
    """A row of every kind, and values that are hard to carry."""
    seeded.fill(tx)
    for table, row in _MORE.items():
        tx.execute(sa.insert(table).values(**row))
    if not tx.is_sqlite:
        for table in metadata.sorted_tables:
            if table.autoincrement_column is not None:
                name = f"'{table.name}_id_seq'"
                tx.run(f"SELECT setval({name}, (SELECT max(id) FROM {table.name}))")


def everything(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table but the audit log, as the program reads it."""
    with connected(url, SystemClock()) as tx:
        return {
            table.name: sorted((tuple(row) for row in tx.execute(sa.select(table))), key=repr)
            for table in metadata.sorted_tables
            if table is not tables.events
        }


class Killed(Exception):
    """The copy ends here, as its process would."""


@dataclass(frozen=True)
class Pair:
    """A database that is full and one of the other kind that has nothing."""

    source: str
    target: str

    def copy(self, tell: Callable[[Progress], object] = lambda _: None) -> Copied:
        """Copy from the one to the other."""
        return copied(self.source, self.target, tell)

    def killed_at(self, stage: Stage) -> None:
        """A copy that does not go beyond the beginning of this stage."""

        def tell(progress: Progress) -> None:
            if progress.stage is stage:
                raise Killed

        try:
            self.copy(tell)
        except Killed:
            return
        raise AssertionError(f"it never came to {stage}")


def copied(source: str, target: str, tell: Callable[[Progress], object] = lambda _: None) -> Copied:
    """Copy from the one to the other."""
    return copy(
        parsed_url(source),
        parsed_url(target),
        SystemClock(),
        lease_seconds=LEASE,
        who="ann@desk",
        tell=tell,
    )


@contextmanager
def beside(url: str) -> Iterator[Tx]:
    """Somebody else's connection."""
    with connected(url, SystemClock()) as tx:
        yield tx
