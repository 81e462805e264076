"""Telegram's own ways to refuse and to fail; the common ones are re-exported."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.faults import (
    COMMON,
    Answer,
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
from tests.fakes.telegram.checks import Refusal


def refused(status: int, description: str, **parameters: int) -> Fault:
    """Any error answer, before anything is stored."""
    answer = Refusal(status, description, **parameters).answer()
    return Fault(f"refused {status}", stores=False, answer=answer)


def blocked() -> Fault:
    """The person blocked the bot."""
    return refused(403, "Forbidden: bot was blocked by the user")


def kicked() -> Fault:
    """The bot was removed from the group."""
    return refused(403, "Forbidden: bot was kicked from the group chat")


def deactivated() -> Fault:
    """The person's account is gone."""
    return refused(403, "Forbidden: user is deactivated")


def chat_not_found() -> Fault:
    return refused(400, "Bad Request: chat not found")


def migrated(to: int) -> Fault:
    """The group goes on as the supergroup `to`."""
    return refused(
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
        migrate_to_chat_id=to,
    )


def cant_parse_entities() -> Fault:
    """The formatting is refused, whatever it is."""
    why = "Can't find end of the entity starting at byte offset 3"
    return refused(400, f"Bad Request: can't parse entities: {why}")


def topic_not_found() -> Fault:
    return refused(400, "Bad Request: message thread not found")


def topic_closed() -> Fault:
    return refused(400, "Bad Request: TOPIC_CLOSED")


def reply_not_found() -> Fault:
    """The question was deleted, and the answer insists on hanging on it."""
    return refused(400, "Bad Request: message to be replied not found")


def unauthorized() -> Fault:
    """The token is no longer good."""
    return refused(401, "Unauthorized")


def server_error(stores: bool = True) -> Fault:
    """500 in Telegram's own form."""
    answer = Refusal(500, "Internal Server Error: restart").answer()
    return Fault("server_error", stores=stores, answer=answer)


def no_result() -> Fault:
    """The message is out; the answer is a success that does not say which."""
    return Fault("no_result", stores=True, answer=Answer.of(200, {"ok": True}))


def too_many(seconds: int) -> Fault:
    """One 429 that names a wait."""
    return Fault("too_many", stores=False, answer=_flood(seconds))


def too_many_unnamed() -> Fault:
    """One 429 without parameters."""
    return refused(429, "Too Many Requests")


def flood_wait(seconds: float, extra: float = 10.0) -> FloodWait:
    """429 until `seconds` have passed; every early call adds `extra`."""
    return FloodWait(seconds, extra, _flood)


def _flood(seconds: int) -> Answer:
    description = f"Too Many Requests: retry after {seconds}"
    return Refusal(429, description, retry_after=seconds).answer()


NAMED: dict[str, Callable[..., Misbehaviour]] = COMMON | {
    make.__name__: make
    for make in (
        refused,
        blocked,
        kicked,
        deactivated,
        chat_not_found,
        migrated,
        cant_parse_entities,
        topic_not_found,
        topic_closed,
        reply_not_found,
        unauthorized,
        server_error,
        no_result,
        too_many,
        too_many_unnamed,
        flood_wait,
    )
}
"""By name, for a script that comes over HTTP."""

__all__ = [
    "NAMED",
    "bad_gateway",
    "blocked",
    "cant_parse_entities",
    "chat_not_found",
    "cut_answer",
    "deactivated",
    "drop_after_storing",
    "drop_before_storing",
    "drop_unread",
    "empty_body",
    "flood_wait",
    "hang_after_storing",
    "hang_before_storing",
    "held_after_storing",
    "held_before_storing",
    "kicked",
    "migrated",
    "no_result",
    "not_json",
    "refused",
    "reply_not_found",
    "server_error",
    "too_many",
    "too_many_unnamed",
    "topic_closed",
    "topic_not_found",
    "unauthorized",
]
