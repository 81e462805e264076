"""A recovery pass on an operator's request, whether or not any process works."""

from __future__ import annotations

from dataclasses import dataclass

from bot.leases import recovery
from bot.leases.runtime import Runtime
from storage.views.health import diagnostics


@dataclass(frozen=True, slots=True)
class Recovered:
    """The numbers of runs that were released, parts that became uncertain, and chats that got a
    head."""

    released: int
    uncertain: int
    promoted: int


async def recover(rt: Runtime, who: str) -> Recovered:
    """Release what dead holders held, and repair chats without a head. A process that is merely
    late gets the time of two heartbeats to renew. Raises DatabaseUnavailable."""
    lease = rt.terms.work.lease
    if await rt.db.read(diagnostics.overdue_holders, lease.seconds):
        await rt.clock.sleep(2 * lease.heartbeat)
    swept = await recovery.pass_by_hand(rt, who)
    return Recovered(len(swept.released), swept.doubted, await recovery.repair(rt))
