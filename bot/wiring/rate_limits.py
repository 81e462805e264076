"""The rate limiter of every account, shared between processes where there is Redis."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from bot.delivery.rate_limit import RateLimiter
from bot.domain.ports import Pace
from bot.leases.runtime import Runtime


def rate_limiters(rt: Runtime, redis_url: str, stack: AsyncExitStack) -> Mapping[int, RateLimiter]:
    """A limiter for each account, by its row; connections end with `stack`."""
    limiters = {}
    for account, channel in rt.channels.items():
        shared: SharedRateLimit | None = None
        if redis_url and channel.traits.pace != Pace():
            from storage.rate_limit import SharedRateLimit  # noqa: PLC0415 - loaded where used

            shared = SharedRateLimit(redis_url, f"{channel.name}:{channel.account}", rt.clock)
            stack.push_async_callback(shared.close)
        limiters[account] = RateLimiter(channel.traits.pace, rt.clock, shared)
    return limiters
