"""A sign of life of Redis, for an examination."""

from __future__ import annotations


class RedisUnreachable(Exception):
    """Redis does not answer; the text names what was met."""


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
