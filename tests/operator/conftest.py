"""Operators in the world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from bot.operator import passwords
from tests.kit.operator import NOBODYS, OperatorBrowser, browser
from tests.world import Running

Browsers = Callable[[Running], OperatorBrowser]


@pytest.fixture(autouse=True)
def _nobodys_hash_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of the operators are; `tests/wiring/test_operators.py` has the dear ones."""
    monkeypatch.setattr(passwords, "_NOBODYS", NOBODYS)


@pytest.fixture
async def browsers() -> AsyncIterator[Browsers]:
    """Makes browsers, each with cookies of its own."""
    made: list[OperatorBrowser] = []

    def make(running: Running) -> OperatorBrowser:
        made.append(browser(running))
        return made[-1]

    yield make
    for one in made:
        await one.http.aclose()
