"""The certificates that servers are checked against, and the last check before a request leaves."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache

import httpx

from bot.domain.ports import STILL_OURS

WRITING = ".send_request_headers.started"
"""The end of the event in which httpcore's trace tells that a request begins to leave."""


@cache
def certificates() -> ssl.SSLContext:
    """One context for all connections of a process: loading it costs 30 ms and 1 MB."""
    return httpx.create_ssl_context(trust_env=False)


async def leave_in_time(event: str, _info: Mapping[str, object]) -> None:
    """A trace for httpcore that keeps a request from leaving after its sender's lease. Raises
    ConnectTimeout: the wait for the connection was too long, and nothing left."""
    if event.endswith(WRITING) and not STILL_OURS.get()():
        raise httpx.ConnectTimeout("the lease ended before the request could leave")
