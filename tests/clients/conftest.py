"""Visitors of a page in the world."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.kit import web


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with web.client() as client:
        yield client
