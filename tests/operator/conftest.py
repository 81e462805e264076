"""Operators in the world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.kit.operator import OperatorBrowser, browser
from tests.world import Running

Browsers = Callable[[Running], OperatorBrowser]


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
