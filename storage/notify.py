"""Hints between tasks and processes: something became ready, stopped, or arrived.

A hint is never needed for correctness: whoever waits looks at the database when it comes,
and once a second when none does. Within a process hints always work; with Redis they reach
the other processes too. Losing Redis loses speed only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from bot.domain.decisions.retry import RETRY
from bot.domain.ports import Clock

_log = logging.getLogger("answerback.wakeup")

_PATIENCE = 5.0
"""Seconds that Redis may take for a command."""
_PULSE = 10.0
"""Seconds between two checks that Redis still answers."""

READY = "ready"
"""Some run or standalone part became due."""


def stop_topic(run: int) -> str:
    """The topic of a run that was ended by somebody else than its worker."""
    return f"stop:{run}"


def part_topic(part: int) -> str:
    """The topic of a part that its provider reported on."""
    return f"part:{part}"


def chat_topic(chat: int) -> str:
    """The topic of a chat that clients follow: what became of a message may have changed."""
    return f"chat:{chat}"


class Wakeups:
    """Gives hints to waiters in this process, and to other processes by way of Redis, if there is
    one."""

    def __init__(
        self, clock: Clock, redis_url: str | None = None, prefix: str = "answerback"
    ) -> None:
        self._clock = clock
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._far_listeners: list[Callable[[str], None]] = []
        self.keeps: Callable[[str], bool] = lambda _topic: False
        """Tells of a topic that is hinted here that other processes need not hear of it."""
        self._redis_url = redis_url
        self._channel = f"{prefix}:wake"
        self._sender = clock.token()
        self._outgoing: asyncio.Queue[str] = asyncio.Queue(maxsize=10_000)
        self._queued: set[str] = set()
        """The topics whose hint waits to leave; a second one for the same topic adds nothing."""
        self.connected = False

    @property
    def shared(self) -> bool:
        """Tell whether hints are meant to reach other processes."""
        return self._redis_url is not None

    def tell(self, topic: str) -> None:
        """Wake whoever waits for `topic`, in this process and others. Never waits, never raises."""
        self._deliver(topic, self._listeners)
        if not self.keeps(topic):
            self.tell_others(topic)

    def tell_others(self, topic: str) -> None:
        """Wake whoever waits for `topic` in other processes. Never waits, never raises."""
        if self._redis_url is not None and topic not in self._queued:
            with contextlib.suppress(asyncio.QueueFull):
                self._outgoing.put_nowait(topic)
                self._queued.add(topic)

    def listen(
        self, listener: Callable[[str], None], *, far: Callable[[str], None] | None = None
    ) -> None:
        """Call `listener` with every topic that is told, and `far`, where it is given, with
        those that other processes tell."""
        self._listeners.append(listener)
        self._far_listeners.append(far or listener)

    async def wait(self, topic: str, timeout: float) -> bool:
        """Wait for `topic`, at most `timeout` seconds. True when it was told."""
        async with self.expecting(topic) as told:
            return await within(told, timeout)

    @asynccontextmanager
    async def expecting(self, topic: str) -> AsyncIterator[asyncio.Event]:
        """An event that is set when `topic` is told from now on."""
        told = asyncio.Event()
        self._waiters.setdefault(topic, set()).add(told)
        try:
            yield told
        finally:
            waiting = self._waiters[topic]
            waiting.discard(told)
            if not waiting:
                del self._waiters[topic]

    async def relay(self) -> None:
        """Carry hints to and from Redis until cancelled. Returns at once without Redis."""
        if self._redis_url is None:
            return
        tries, told = 0, False
        while True:
            met = await self._carry(self._redis_url)
            if self.connected:
                tries, told = 0, False
            if not told:
                told = True
                _log.warning("redis is away, wake-ups wait for the poll: %s", met)
            self.connected = False
            self._deliver(READY, self._listeners)
            tries += 1
            await self._clock.sleep(RETRY.redis.after(tries, self._clock.jitter()))

    async def _carry(self, url: str) -> str:
        """Publish what is told here and tell what others publish, until the connection breaks;
        returns what broke it."""
        import redis.asyncio as aioredis  # noqa: PLC0415 - half a second, only with Redis
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.exceptions import RedisError  # noqa: PLC0415

        met = "it ended the connection"
        try:
            async with (
                aioredis.Redis.from_url(
                    url,
                    socket_timeout=None,
                    socket_connect_timeout=2,
                    retry=Retry(NoBackoff(), 0),
                ) as redis,
                redis.pubsub() as pubsub,
                asyncio.TaskGroup() as tasks,
            ):
                async with asyncio.timeout(_PATIENCE):
                    await pubsub.subscribe(self._channel)
                # Hints may have been missed until now.
                self.connected = True
                self._deliver(READY, self._listeners)
                heard = asyncio.Event()
                carrying = [
                    tasks.create_task(self._publish(redis.publish)),
                    tasks.create_task(self._feel(pubsub.ping, heard)),
                ]
                async for message in pubsub.listen():
                    heard.set()
                    if message["type"] == "message":
                        sender, _, topic = message["data"].decode().partition(" ")
                        if sender != self._sender:  # our own were heard here already
                            self._deliver(topic, self._far_listeners)
                for task in carrying:
                    task.cancel()
        except* (RedisError, OSError, TimeoutError) as errors:
            met = type(errors.exceptions[0]).__name__
        return met

    async def _feel(self, ping: Callable[[], Awaitable[object]], heard: asyncio.Event) -> None:
        """Break a connection on which nothing comes any more: one that was lost on its way stays
        open, and says nothing for ever."""
        while True:
            await self._clock.sleep(_PULSE)
            heard.clear()
            async with asyncio.timeout(_PATIENCE):
                await ping()
                await heard.wait()

    async def _publish(self, publish: Callable[[str, str], Awaitable[object]]) -> None:
        while True:
            topic = await self._outgoing.get()
            self._queued.discard(topic)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await publish(self._channel, f"{self._sender} {topic}")
            finally:
                self._outgoing.task_done()

    async def flush(self, timeout: float) -> None:
        """Wait until what was told has left for Redis, at most `timeout` seconds."""
        if self.connected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._outgoing.join()

    def _deliver(self, topic: str, listeners: Sequence[Callable[[str], None]]) -> None:
        for waiter in self._waiters.get(topic, ()):
            waiter.set()
        for listener in listeners:
            listener(topic)


async def within(told: asyncio.Event, timeout: float) -> bool:
    """Wait for a hint, at most `timeout` seconds. True when it came."""
    try:
        async with asyncio.timeout(timeout):
            await told.wait()
    except TimeoutError:
        return False
    return True
