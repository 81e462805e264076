"""Grounds for real processes, on either database or on PostgreSQL alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.processes import Ground, open_ground


@pytest.fixture
async def ground(database_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    """Runs the test twice: on SQLite and on PostgreSQL."""
    async with open_ground(database_url, tmp_path) as ground:
        yield ground


@pytest.fixture
async def sqlite_ground(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with open_ground(sqlite_url, tmp_path) as ground:
        yield ground


@pytest.fixture
async def postgres_ground(postgres_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with open_ground(postgres_url, tmp_path) as ground:
        yield ground


@pytest.fixture
async def blank_sqlite_ground(blank_sqlite_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with open_ground(blank_sqlite_url, tmp_path) as ground:
        yield ground


@pytest.fixture
async def blank_postgres_ground(blank_postgres_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with open_ground(blank_postgres_url, tmp_path) as ground:
        yield ground
