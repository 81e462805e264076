"""The rate limits of one account over all processes, kept in Redis. Losing it loses nothing:
the processes then keep to their own share of the limits."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from bot.domain.ports import Clock

_log = logging.getLogger("answerback.rate_limit")
_PATIENCE = 1.0
"""Seconds that Redis may take; a process without an answer keeps to its share."""
_CONNECTIONS = 4
"""Askers wait for one of them: a question takes less than opening one more."""
_AWAY = 5.0
"""Seconds for which Redis is not asked after it gave no answer."""

_TAKE = """
-- The generic cell rate algorithm, by this server's clock, in microseconds.
-- KEYS: the account's limit, then the chat's and the group's; then, for each, the moment that
-- was named last to one who comes back. ARGV: the patience with the account's limit and with the
-- others (negative: no moment is named), then for each limit the interval and the slack.
-- Returns {wait, 1} with a place taken `wait` from now, or {wait, 0} with nothing taken.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local in_line, patience = tonumber(ARGV[1]), tonumber(ARGV[2])
local count = #KEYS / 2
local due, wait, binding = {}, 0, 1
local function interval(i) return tonumber(ARGV[1 + 2 * i]) end
local function free_in(i)
  due[i] = math.max(now, tonumber(redis.call('GET', KEYS[i]) or 0))
  return math.max(0, due[i] - tonumber(ARGV[2 + 2 * i]) - now)
end
local function set(key, moment)
  local lives = math.ceil((moment - now) / 1000) + 1000
  redis.call('SET', key, string.format('%.0f', moment), 'PX', lives)
end
local in_account = free_in(1)
for i = 2, count do
  local own = free_in(i)
  if own > wait then wait, binding = own, i end
end
if binding == 1 then
  wait = in_account
  if wait <= in_line then
    for i = 1, count do set(KEYS[i], math.max(due[i], now + wait) + interval(i)) end
    return {math.ceil(wait), 1}
  end
end
if patience < 0 or (binding > 1 and wait <= patience) then return {math.ceil(wait), 0} end
local named = math.max(now + wait, tonumber(redis.call('GET', KEYS[count + binding]) or 0))
set(KEYS[count + binding], named + interval(binding))
return {math.ceil(named - now), 0}
"""

_GIVE_BACK = """
-- KEYS: the limits whose place was not used. ARGV: for each the interval.
for i = 1, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('DECRBY', KEYS[i], ARGV[i]) end
end
return #KEYS
"""

_HOLD = """
-- KEYS[1]: a limit under which nothing may leave for ARGV[1] microseconds.
local time = redis.call('TIME')
local free = time[1] * 1000000 + time[2] + ARGV[1]
if free > tonumber(redis.call('GET', KEYS[1]) or 0) then
  redis.call('SET', KEYS[1], string.format('%.0f', free), 'PX', math.ceil(ARGV[1] / 1000) + 1000)
end
return 1
"""


class Rate(Protocol):
    """A limit: messages under `name`, `interval` seconds apart but for `slack`."""

    @property
    def name(self) -> str: ...

    @property
    def interval(self) -> float: ...

    @property
    def slack(self) -> float: ...


class SharedRateLimit:
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
        self._prefix = f"{prefix}:rate:{{{account}}}:"
        self._take = self._redis.register_script(_TAKE)
        self._give_back = self._redis.register_script(_GIVE_BACK)
        self._hold = self._redis.register_script(_HOLD)
        self._unused: list[Rate] = []
        self._held: tuple[Rate, float] | None = None
        self._away_until = 0.0

    async def ask(
        self, limits: Sequence[Rate], in_line: float, patience: float
    ) -> tuple[float, bool] | None:
        """(seconds, whether a place was taken), as `bot.delivery.rate_limit` defines it. None
        while Redis does not answer."""
        if self._clock.monotonic() < self._away_until:
            return None
        keys = [*self._keys(limits), *(f"{key}:named" for key in self._keys(limits))]
        numbers = [_micros(n) for rate in limits for n in (rate.interval, rate.slack)]
        asked = [_micros(in_line), _micros(patience), *numbers]
        try:
            await self._say_what_waits()
            wait, taken = await self._take(keys=keys, args=asked)
        except (RedisError, OSError, TimeoutError) as error:
            self._gone(error)
            return None
        return wait / 1e6, taken == 1

    def give_back(self, limits: Sequence[Rate]) -> None:
        """Return places that were not used, with the next question."""
        self._unused.extend(limits)

    async def hold(self, limit: Rate, seconds: float) -> None:
        """Let nothing leave under this limit for so long: told now, and with every question until
        then, because Redis may be away, or be emptied."""
        until = self._clock.monotonic() + seconds
        if self._held is None or until > self._held[1]:
            self._held = (limit, until)
            if self._clock.monotonic() >= self._away_until:
                try:
                    await self._say_what_waits()
                except (RedisError, OSError, TimeoutError) as error:
                    self._gone(error)

    def _gone(self, error: Exception) -> None:
        self._away_until = self._clock.monotonic() + _AWAY
        self._unused.clear()
        _log.warning("redis is away, sends keep to this process's share: %s", error)

    async def _say_what_waits(self) -> None:
        if self._unused:
            unused, self._unused = self._unused, []
            intervals = [_micros(rate.interval) for rate in unused]
            await self._give_back(keys=self._keys(unused), args=intervals)
        if self._held is not None:
            limit, until = self._held
            left = until - self._clock.monotonic()
            if left > 0:
                await self._hold(keys=self._keys([limit]), args=[_micros(left)])
            else:
                self._held = None

    def _keys(self, limits: Sequence[Rate]) -> list[str]:
        return [self._prefix + rate.name for rate in limits]

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def _micros(seconds: float) -> int:
    return round(min(seconds, 1e9) * 1_000_000)
