"""One hand on each kind of database: every test of it runs on both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage.engine import postgres
from tests.limits import PATIENCE
from tests.storage.kit import Hand, opened


@pytest.fixture
def hand(database_url: str) -> Iterator[Hand]:
    """A migrated, empty database with one account and one living holder."""
    with opened(database_url) as hand:
        yield hand


@pytest.fixture
def postgres_hand(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    """The same on PostgreSQL alone, for what needs two connections at once, one of which may
    wait for the other for as long as a test waits."""
    monkeypatch.setattr(postgres, "_SESSION", f"SET lock_timeout = '{PATIENCE:.0f}s'")
    with opened(postgres_url, pool=8) as hand:
        yield hand
