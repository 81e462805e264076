"""Answers that are no success, and the reading of bodies, the same for every route."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from math import ceil
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

SLOWEST_BODY = 120.0
"""Seconds in which a body arrives, or never does."""


class Wrong(Exception):
    """A request that can't be served, with the status and a sentence for whoever wrote it."""

    def __init__(self, status: int, says: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(says)
        self.status = status
        self.headers = headers


def error(status: int, says: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return JSONResponse({"error": says}, status_code=status, headers=headers)


def retry_after(wait: float) -> Mapping[str, str]:
    """The header that says in how many seconds to come again."""
    return {"Retry-After": str(max(1, ceil(wait)))}


async def read(request: Request, largest: int) -> dict[str, Any]:
    """The body, a JSON object of at most so many bytes; nothing at all is an empty one. Raises
    Wrong."""
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdecimal() and (len(said) > 12 or int(said) > largest):
        raise Wrong(413, f"a body has at most {largest} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for chunk in request.stream():
                body += chunk
                if len(body) > largest:
                    raise Wrong(413, f"a body has at most {largest} bytes")
    except ClientDisconnect as gone:
        raise Wrong(400, "the body did not arrive whole") from gone
    except TimeoutError:
        raise Wrong(408, f"the body did not arrive within {SLOWEST_BODY:.0f} seconds") from None
    try:
        read = json.loads(body) if body else {}
    except (ValueError, RecursionError) as fault:
        raise Wrong(400, "the body is no JSON") from fault
    if not isinstance(read, dict):
        raise Wrong(422, "the body must be a JSON object")
    return read
