"""Facts that a database or Redis tells of itself, for an examination."""

from __future__ import annotations

from dataclasses import dataclass

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import text

from storage.engine.clock import read
from storage.engine.tx import Tx


class RedisUnreachable(Exception):
    """Redis does not answer; the text names what was met."""


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """`version` as a tuple of numbers, `now` the database's clock in epoch seconds; `room` is
    how many connections are left, None where there is no such bound."""

    product: str
    version: tuple[int, ...]
    now: float
    room: int | None


def database_facts(tx: Tx) -> DatabaseFacts:
    """Version, clock and room of this database."""
    if tx.is_sqlite:
        return DatabaseFacts("SQLite", tuple(sqlite3.sqlite_version_info), read(tx), None)
    number = int(tx.scalar(text("SHOW server_version_num")) or 0)
    allowed = int(tx.scalar(text("SHOW max_connections")) or 0)
    used = int(tx.scalar(text("SELECT count(*) FROM pg_stat_activity")) or 0)
    version = (number // 10_000, number % 10_000)
    return DatabaseFacts("PostgreSQL", version, read(tx), allowed - used)


async def ping_redis(url: str, seconds: float) -> None:
    """Ask Redis for a sign of life. Raises RedisUnreachable."""
    import redis.asyncio as aioredis  # noqa: PLC0415 - only where Redis is configured
    from redis.exceptions import RedisError  # noqa: PLC0415

    try:
        async with aioredis.Redis.from_url(
            url, socket_timeout=seconds, socket_connect_timeout=seconds
        ) as client:
            await client.execute_command("PING")  # type: ignore[no-untyped-call]
    except (RedisError, OSError, ValueError) as error:
        raise RedisUnreachable(type(error).__name__) from error
