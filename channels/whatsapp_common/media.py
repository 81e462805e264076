"""Patience with a file that can't be had at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.domain.errors import AttachmentUnavailable

NOT_YET = (1.0, 3.0)
"""Seconds to wait when a file is not there: it can be missing just after its webhook."""


class NotYet(Exception):
    """This try failed in a way that passes; the text says how."""


def failure_of(status: int, provider: str, said: object) -> Exception:
    """The failure of a question for a file that was answered so: one that passes, or a refusal."""
    if status == 404:
        return NotYet(f"{provider} does not have it (any more)")
    if status == 429 or status >= 500:
        return NotYet(f"status {status}")
    return AttachmentUnavailable(f"{provider} refuses the file ({said})")


async def patiently(
    fetch: Callable[[], Awaitable[bytes]], sleep: Callable[[float], Awaitable[None]]
) -> bytes:
    """The bytes of a file, tried for again while it is not there. Raises AttachmentUnavailable."""
    for wait in (*NOT_YET, None):
        try:
            return await fetch()
        except NotYet as failure:
            if wait is None:
                raise AttachmentUnavailable(f"the file can't be fetched: {failure}") from None
            await sleep(wait)
    raise AssertionError("the last wait is None")
