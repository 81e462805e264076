"""Hints over Redis: published by one process, heard by the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from storage.notify import RelayBroken

_PATIENCE = 5.0
"""Seconds that Redis may take for a command."""


class Relay:
    """One process's connection. `sender` marks what it published itself: that was heard
    here already."""

    def __init__(self, url: str, channel: str, sender: str) -> None:
        self._url = url
        self._channel = channel
        self._sender = sender

    async def carry(
        self,
        outgoing: asyncio.Queue[str],
        connected: Callable[[], None],
        heard: Callable[[str], None],
    ) -> None:
        """Publish what is put in `outgoing` and tell what others publish, until the
        connection breaks. Raises RelayBroken then."""
        try:
            async with (
                aioredis.Redis.from_url(
                    self._url,
                    socket_timeout=None,
                    socket_connect_timeout=2,
                    retry=Retry(NoBackoff(), 0),
                ) as redis,
                redis.pubsub() as pubsub,
                asyncio.TaskGroup() as tasks,
            ):
                await pubsub.subscribe(self._channel)
                connected()
                sending = tasks.create_task(self._publish(redis, outgoing))
                async for message in pubsub.listen():
                    if message["type"] == "message":
                        sender, _, topic = message["data"].decode().partition(" ")
                        if sender != self._sender:
                            heard(topic)
                sending.cancel()
        except* (RedisError, OSError, TimeoutError) as errors:
            raise RelayBroken(type(errors.exceptions[0]).__name__) from None

    async def _publish(self, redis: aioredis.Redis, outgoing: asyncio.Queue[str]) -> None:
        while True:
            topic = await outgoing.get()
            try:
                async with asyncio.timeout(_PATIENCE):
                    await redis.publish(self._channel, f"{self._sender} {topic}")
            finally:
                outgoing.task_done()
