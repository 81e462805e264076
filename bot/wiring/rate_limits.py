"""The rate limiter of every account, shared between processes where there is Redis."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from bot.delivery.rate_limit import RateLimiter, Shared
from bot.domain.ports import Channel, Pace
from bot.leases.runtime import Runtime


def rate_limiters(rt: Runtime, redis_url: str, stack: AsyncExitStack) -> Mapping[int, RateLimiter]:
    """A limiter for each account, by its row; connections end with `stack`."""
    return {
        account: RateLimiter(channel.traits.pace, rt.clock, _shared(rt, redis_url, channel, stack))
        for account, channel in rt.channels.items()
    }


def _shared(rt: Runtime, redis_url: str, channel: Channel, stack: AsyncExitStack) -> Shared | None:
    if not redis_url or channel.traits.pace == Pace():
        return None
    from storage.rate_limit import SharedRateLimit  # noqa: PLC0415 - loaded where it is used

    shared = SharedRateLimit(redis_url, f"{channel.name}:{channel.account}", rt.clock)
    stack.push_async_callback(shared.close)
    return shared
