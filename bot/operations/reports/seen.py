"""A look at the database: its moment, and the accounts by the names that people know them by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.message import shortened
from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import when

with lazy_imports(__name__):
    from storage import accounts
    from storage.statements import clock
    from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Seen:
    """The moment of a look, in epoch seconds of the database's clock, and a label for each
    account: its channel, with its own name where there are several of that channel."""

    now: float
    labels: Mapping[int, str]

    def when(self, at: float) -> str:
        """A moment, as every screen shows it."""
        return when(at, self.now)

    def ago(self, seconds: float) -> str:
        """The moment so many seconds before the look; empty where nobody knows since when."""
        return when(self.now - seconds, self.now) if seconds else ""

    def account_of_several(self, account: int) -> str:
        """The account's label, if there is another to take it for."""
        return self.labels.get(account, "") if len(self.labels) > 1 else ""


UNSEEN = Seen(0.0, {})
"""Nothing seen, because the database could not be asked."""


def look(tx: Tx) -> Seen:
    """The moment and the accounts. Phone numbers are cut short."""
    every = accounts.listed(tx)
    several = Counter(account.channel for account in every)
    labels = {
        a.id: str(a.channel)
        if several[a.channel] == 1
        else shortened(f"{a.channel} {a.name or a.account}")
        for a in every
    }
    return Seen(clock.read(tx), labels)
