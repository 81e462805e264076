"""The Graph API's own ways to refuse and to fail; the common ones are re-exported."""

from __future__ import annotations

import json
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
from tests.fakes.meta.errors import GraphRefusal


def refused(code: int, status: int | None = None, subcode: int | None = None) -> Fault:
    """Any error code, in the answer; nothing is stored."""
    answer = GraphRefusal(code, status=status, subcode=subcode).answer()
    return Fault(f"refused {code}", stores=False, answer=answer)


def server_error(code: int = 131000, stores: bool = True) -> Fault:
    """500 in Graph's own form; the message may be out all the same."""
    return Fault("server_error", stores, answer=GraphRefusal(code, status=500).answer())


def words_only(status: int = 400) -> Fault:
    """An error whose `error_data` is a text and whose code is one that nobody has seen."""
    error = {"error": {"message": "no", "code": 999_999, "error_data": "a text"}}
    return Fault("words_only", stores=False, answer=Answer.of(status, error))


def without_id() -> Fault:
    """200 in the usual form that names no message; it is out."""
    body = {"messaging_product": "whatsapp", "contacts": [], "messages": []}
    return Fault("without_id", stores=True, answer=Answer.of(200, body))


def busy_account(minutes: int = 2, code: int = 80007) -> Fault:
    """The calls of the account are used up; a header says for how long."""
    usage = {"estimated_time_to_regain_access": minutes, "call_count": 100, "type": "messages"}
    header = ("X-Business-Use-Case-Usage", json.dumps({"102290129340398": [usage]}))
    return Fault("busy_account", stores=False, answer=GraphRefusal(code).answer(header))


def flood_wait(seconds: float, extra: float = 0.0, code: int = 130429) -> FloodWait:
    """Refused until `seconds` have passed, without a word of when; early calls add `extra`."""
    return FloodWait(seconds, extra, lambda _wait: GraphRefusal(code).answer())


def unauthorized() -> Fault:
    """The token is no longer good."""
    return refused(190, subcode=463)


NAMED: dict[str, Callable[..., Misbehaviour]] = COMMON | {
    make.__name__: make
    for make in (
        refused,
        server_error,
        words_only,
        without_id,
        busy_account,
        flood_wait,
        unauthorized,
    )
}
"""By name, for a script that comes over HTTP."""

__all__ = [
    "NAMED",
    "bad_gateway",
    "busy_account",
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
    "unauthorized",
    "without_id",
    "words_only",
]
