"""Twilio's own ways to refuse and to fail; the common ones are re-exported."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.faults import (
    COMMON,
    Fault,
    FloodWait,
    Misbehaviour,
    bad_gateway,
    cut_answer,
    drop_after_storing,
    drop_before_storing,
    drop_unread,
    empty_body,
    hang_after_storing,
    hang_before_storing,
    held_after_storing,
    held_before_storing,
    not_json,
)
from tests.fakes.twilio.errors import TwilioRefusal


def refused(code: int, status: int | None = None) -> Fault:
    """Any error code, in the answer to the create call; nothing is stored."""
    answer = TwilioRefusal(code, status=status).answer()
    return Fault(f"refused {code}", stores=False, answer=answer)


def server_error(stores: bool = True) -> Fault:
    """500 in Twilio's own form; the message may be out all the same."""
    answer = TwilioRefusal(20500).answer()
    return Fault("server_error", stores=stores, answer=answer)


def unavailable(retry_after: int | None = None, stores: bool = False) -> Fault:
    """503 in Twilio's own form."""
    answer = TwilioRefusal(20503, retry_after=retry_after).answer()
    return Fault("unavailable", stores=stores, answer=answer)


def too_many(seconds: int | None = 1) -> Fault:
    """One 429 with code 20429: never processed; None names no wait."""
    answer = TwilioRefusal(20429, retry_after=seconds).answer()
    return Fault("too_many", stores=False, answer=answer)


def flood_wait(seconds: float, extra: float = 0.0, code: int = 20429) -> FloodWait:
    """429 until `seconds` have passed; every early call adds `extra`."""
    return FloodWait(
        seconds, extra, lambda wait: TwilioRefusal(code, status=429, retry_after=wait).answer()
    )


def unauthorized() -> Fault:
    """The token is no longer good."""
    return refused(20003)


NAMED: dict[str, Callable[..., Misbehaviour]] = COMMON | {
    make.__name__: make
    for make in (refused, server_error, unavailable, too_many, flood_wait, unauthorized)
}
"""By name, for a script that comes over HTTP."""

__all__ = [
    "NAMED",
    "bad_gateway",
    "cut_answer",
    "drop_after_storing",
    "drop_before_storing",
    "drop_unread",
    "empty_body",
    "flood_wait",
    "hang_after_storing",
    "hang_before_storing",
    "held_after_storing",
    "held_before_storing",
    "not_json",
    "refused",
    "server_error",
    "too_many",
    "unauthorized",
    "unavailable",
]
