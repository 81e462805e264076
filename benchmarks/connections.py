"""Connections of many people in one process, cheap enough not to be what is measured."""

from __future__ import annotations

from itertools import cycle

import httpx

from tests.fakes.plain import NO_CERTIFICATES

_POOLS = 32


class ManyPools(httpx.AsyncBaseTransport):
    """Small pools in turn. One pool looks at all its connections for each request (httpcore's
    `_assign_requests_to_connections`): with hundreds of people that was four fifths of a storm's
    CPU time."""

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=None)
        self._pools = [
            httpx.AsyncHTTPTransport(verify=NO_CERTIFICATES, trust_env=False, limits=limits)
            for _ in range(_POOLS)
        ]
        self._turn = cycle(self._pools)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it through the pool whose turn it is."""
        return await next(self._turn).handle_async_request(request)

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self._pools:
            await pool.aclose()
