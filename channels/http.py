"""The certificates that the platforms' servers are checked against, loaded once."""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def certificates() -> ssl.SSLContext:
    """One context for all connections of a process: loading it costs 30 ms and 1 MB."""
    return httpx.create_ssl_context(trust_env=False)
