"""Time that passes as quickly as everybody waits for it."""

from __future__ import annotations

import asyncio

from tests.kit.conversation import MORTAL
from tests.limits import PATIENCE, moment, until
from tests.world import Running, World

_LIVE = """
SELECT (SELECT count(*) FROM runs WHERE state <> 'ended'),
       (SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')),
       (SELECT count(*) FROM outbox o JOIN accounts a ON a.id = o.account
        WHERE o.standalone AND o.state = 'uncertain' AND o.looks < 5
          AND a.channel IN ('whatsapp', 'file')),
       (SELECT count(*) FROM runs WHERE state = 'running'),
       coalesce((SELECT min(not_before) FROM runs WHERE state = 'ready' AND not_before < 1e11), 0),
       coalesce((SELECT min(not_before) FROM outbox WHERE standalone AND state = 'pending'), 0)
"""


async def settle(world: World, timeout: float = PATIENCE) -> None:
    """Let time pass until nothing is live: quickly where everybody only waits for it."""
    async with asyncio.timeout(timeout):
        while await moves(world):
            pass


async def moves(world: World, at_most: float = 1e6) -> bool:
    """Wait a moment, and let as much time pass as everybody waits for, up to `at_most` seconds.
    False: nothing is live."""
    [row] = await world.rows(_LIVE)
    ahead = 0.0 if row[3] else max(row[4], row[5]) - world.clock.wall()
    await moment()
    world.advance(min(at_most, max(0.5, ahead + 0.01)))
    return bool(row[0] or row[1] or row[2])


async def outlive(world: World, *living: Running) -> None:
    """Let so much time pass that the dead have lost their leases, while the living renew theirs:
    processes on the terms of `MORTAL`."""
    lease = MORTAL["lease_seconds"]
    for _ in range(4):
        world.advance(lease / 3)
        await until(lambda: all(one.dead or _renewed(one, lease) for one in living))


def _renewed(one: Running, lease: float) -> bool:
    return one.process.lease.remaining() > lease * 2 / 3
