"""One browser for each test worker, and a site for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.site import Site, open_site

# The shell draws no window around a page, and costs half as much.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_MISSING = f"no Chromium on this machine: apt-get install --no-install-recommends {_NAMES[0]}"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium as the system has it."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium())
        yield browser
        await browser.close()


def chromium() -> str:
    """The path of the system's. Without one the test that asks is skipped, and fails in CI."""
    path = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(_MISSING)
    return path


@pytest_asyncio.fixture(loop_scope="session")
async def site(sqlite_url: str, tmp_path: Path, browser: Browser) -> AsyncIterator[Site]:
    """A site on SQLite."""
    async with open_site(sqlite_url, tmp_path, browser) as site:
        yield site


@pytest_asyncio.fixture(loop_scope="session")
async def postgres_site(postgres_url: str, tmp_path: Path, browser: Browser) -> AsyncIterator[Site]:
    """A site on PostgreSQL, for several processes."""
    async with open_site(postgres_url, tmp_path, browser) as site:
        yield site
