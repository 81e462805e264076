"""The pace of one account over all processes, kept in Redis. Losing it loses nothing: the
processes then keep to their own share of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from bot.domain.ports import Clock

_log = logging.getLogger("answerback.pace")
_PATIENCE = 1.0
"""Seconds that Redis may take; a process without an answer keeps to its share."""
_CONNECTIONS = 4
"""Askers wait for one of them: a question takes less than opening one more."""
_AWAY = 5.0
"""Seconds for which Redis is not asked after it gave no answer."""

_RESERVE = """
-- The generic cell rate algorithm, by this server's clock, in microseconds.
-- KEYS: the queue, then the limits. ARGV: for each the interval and the slack.
-- A key holds when the message after the last one is due in an even flow.
-- Returns {wait, 0} with nothing reserved, or {0, delay} with a place `delay` from now.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local due, wait = {}, 0
for i = 1, #KEYS do
  due[i] = math.max(now, tonumber(redis.call('GET', KEYS[i]) or 0))
  if i > 1 then wait = math.max(wait, due[i] - tonumber(ARGV[2 * i]) - now) end
end
if wait > 0 then return {math.ceil(wait), 0} end
local delay = math.max(0, due[1] - tonumber(ARGV[2]) - now)
for i = 1, #KEYS do
  local following = math.max(due[i], now + delay) + tonumber(ARGV[2 * i - 1])
  local lives = math.ceil((following - now) / 1000) + 1000
  redis.call('SET', KEYS[i], string.format('%.0f', following), 'PX', lives)
end
return {0, math.ceil(delay)}
"""

_GIVE_BACK = """
-- KEYS: the limits whose place was not used. ARGV: for each the interval.
for i = 1, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('DECRBY', KEYS[i], ARGV[i]) end
end
return #KEYS
"""


class Rate(Protocol):
    """What is limited: messages under `name`, `interval` seconds apart but for `slack`."""

    @property
    def name(self) -> str: ...

    @property
    def interval(self) -> float: ...

    @property
    def slack(self) -> float: ...


class SharedPace:
    """The limits of one account. `account` names it in Redis."""

    def __init__(self, url: str, account: str, clock: Clock, prefix: str = "answerback") -> None:
        self._clock = clock
        pool = aioredis.BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=_PATIENCE,
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
            retry=Retry(NoBackoff(), 0),
        )
        self._redis = aioredis.Redis.from_pool(pool)
        # The braces keep an account's keys in one slot of a cluster.
        self._keys = f"{prefix}:pace:{{{account}}}:"
        self._reserve = self._redis.register_script(_RESERVE)
        self._give_back = self._redis.register_script(_GIVE_BACK)
        self._unused: list[Rate] = []
        self._away_until = 0.0

    async def reserve(self, queue: Rate, limits: Sequence[Rate]) -> tuple[float, float] | None:
        """(wait, delay) in seconds: with a wait nothing was reserved, else a place was, `delay`
        from now. None while Redis does not answer."""
        if self._clock.monotonic() < self._away_until:
            return None
        rates = (queue, *limits)
        numbers = [_micros(n) for rate in rates for n in (rate.interval, rate.slack)]
        try:
            await self._return_unused()
            wait, delay = await self._reserve(keys=self._names(rates), args=numbers)
        except (RedisError, OSError, TimeoutError) as error:
            self._away_until = self._clock.monotonic() + _AWAY
            self._unused.clear()
            _log.warning("redis is away, sends keep to this process's share: %s", error)
            return None
        return wait / 1e6, delay / 1e6

    def give_back(self, limits: Sequence[Rate]) -> None:
        """Places that were not used: returned with the next question."""
        self._unused.extend(limits)

    async def _return_unused(self) -> None:
        if self._unused:
            unused, self._unused = self._unused, []
            intervals = [_micros(rate.interval) for rate in unused]
            await self._give_back(keys=self._names(unused), args=intervals)

    def _names(self, rates: Sequence[Rate]) -> list[str]:
        return [self._keys + rate.name for rate in rates]

    async def close(self) -> None:
        """Let go of the connections."""
        await self._redis.aclose()


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)
