"""The grounds of storms: servers, a disk that can be filled, a clock that can be set."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from enum import StrEnum
from pathlib import Path

import psycopg

from benchmarks.proof.contestant import Contestant, Ground
from benchmarks.proof.disks import small_disk
from benchmarks.proof.outages import NAME, Clock, PostgresOutages, Redis, SqliteOutages
from benchmarks.proof.plan import Plan
from benchmarks.proof.storm import Storm, all_providers, ground_environment
from tests.servers import Postgres, Valkey

_MEGABYTES = 768
"""The size of a disk that can be filled; it takes as much memory only while it is full."""
Entering = Callable[[Ground], Contestant]


class Database(StrEnum):
    """The databases on which storms are."""

    POSTGRESQL = "PostgreSQL"
    SQLITE = "SQLite"


@asynccontextmanager
async def storm_on(
    database: Database,
    plan: Plan,
    enter: Entering,
    *,
    durable_redis: bool = False,
    megabytes: int = _MEGABYTES,
) -> AsyncIterator[Storm]:
    """A storm of this plan against who enters, on servers that end with it. `durable_redis` is for
    those who have no other store; `megabytes` is the size of the database's disk."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="answerback-proof-")))
        clock = Clock(folder / "clock")
        valkey = stack.enter_context(Valkey(durable=durable_redis))
        fakes = await stack.enter_async_context(all_providers(sorted(set(plan.platforms))))
        outages = (
            _on_postgres(stack, megabytes)
            if database is Database.POSTGRESQL
            else _on_sqlite(stack, folder, megabytes)
        )
        apis = {platform: fake.provider.url for platform, fake in fakes.items()}
        redis = valkey.url() if database is Database.POSTGRESQL else ""
        ground = Ground(folder, outages.url, redis, apis, ground_environment(clock))
        contestant = enter(ground)
        stack.push_async_callback(contestant.close)
        await contestant.prepare()
        yield Storm(plan, contestant, fakes, outages, Redis(valkey), clock)


def _on_sqlite(stack: AsyncExitStack, folder: Path, megabytes: int) -> SqliteOutages:
    """A file that is not there yet, on a small disk where one may be mounted."""
    place = folder / "disk"
    place.mkdir()
    disk = stack.enter_context(small_disk(place, megabytes, os.geteuid()))
    return SqliteOutages(place / f"{NAME}.db", disk)


def _on_postgres(stack: AsyncExitStack, megabytes: int) -> PostgresOutages:
    """A new database, on a small disk where one may be mounted."""
    postgres = stack.enter_context(Postgres(settings=("autovacuum=on",)))
    place = postgres.folder / "disk"
    place.mkdir()
    owner = postgres.folder.stat().st_uid
    disk = stack.enter_context(small_disk(place, megabytes, owner))
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        if disk is None:
            connection.execute(f"CREATE DATABASE {NAME}".encode())
        else:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
            connection.execute(f"CREATE DATABASE {NAME} TABLESPACE small".encode())
    return PostgresOutages(postgres, disk)
