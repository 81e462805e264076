"""Back-off: how long to wait before the same thing is tried again."""

from __future__ import annotations


def backoff(tries: int, jitter: float, *, base: float = 1.0, cap: float = 60.0) -> float:
    """Seconds to wait after `tries` failures (1 or more), doubling from `base` up to `cap`.

    `jitter` in [0, 1) spreads the wait over its upper half, so that many chats that failed
    together do not come back together.
    """
    whole = min(cap, base * 2.0 ** min(max(tries - 1, 0), 30))
    return whole * (0.5 + jitter / 2)
