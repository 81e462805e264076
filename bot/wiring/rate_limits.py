"""The pace of every account, shared between processes where there is Redis."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from bot.delivery.rate_limit import Pacer, Shared
from bot.domain.ports import Channel, Pace
from bot.leases.runtime import Runtime


def pacers(rt: Runtime, redis_url: str, stack: AsyncExitStack) -> Mapping[int, Pacer]:
    """A pacer for each account, by its row; connections end with `stack`."""
    return {
        account: Pacer(channel.traits.pace, rt.clock, _shared(rt, redis_url, channel, stack))
        for account, channel in rt.channels.items()
    }


def _shared(rt: Runtime, redis_url: str, channel: Channel, stack: AsyncExitStack) -> Shared | None:
    if not redis_url or channel.traits.pace == Pace():
        return None
    from storage.rate_limit import SharedPace  # noqa: PLC0415 - Redis is loaded where it is used

    shared = SharedPace(redis_url, f"{channel.name}:{channel.account}", rt.clock)
    stack.push_async_callback(shared.close)
    return shared
