"""The conversation as an agent reads it: the last turns of a chat, with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.ending import Ending
from bot.domain.message import InboundKind
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.engine.binds import AT_MOST, CHAT_ID, RUN_ID
from storage.engine.literals import is_in
from storage.engine.tx import Tx
from storage.schema.tables import inbound, outbox, replies, runs


class HistoryLine(NamedTuple):
    """Something that was said. `role` is user or assistant; `at` in epoch seconds."""

    role: str
    text: str
    at: float
    sender: str


_SHOWN = [ending for ending in Ending if ending.rule.shown]

_turns = (
    sa.select(runs.c.id, runs.c.ended_at, runs.c.ending)
    .where(runs.c.chat == CHAT_ID, runs.c.id != RUN_ID, is_in(runs.c.state, RunState.ENDED))
    .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    .limit(AT_MOST)
    .cte("turns")
)
_MESSAGE, _ANSWER, _OPERATOR = (sa.literal_column(str(rank), sa.Integer) for rank in range(3))
"""What stands before what at one moment."""
_nothing = sa.literal_column("''", sa.Text)
_messages = sa.select(
    _turns.c.ended_at.label("moment"),
    _MESSAGE.label("rank"),
    inbound.c.id,
    inbound.c.kind,
    inbound.c.text,
    sa.func.coalesce(inbound.c.sent_at, inbound.c.received_at),
    inbound.c.sender_name,
).join(inbound, inbound.c.run == _turns.c.id)
_answers = (
    sa.select(
        _turns.c.ended_at,
        _ANSWER,
        replies.c.run,
        _nothing,
        replies.c.text,
        replies.c.stored_at,
        _nothing,
    )
    .join(replies, replies.c.run == _turns.c.id)
    .where(is_in(_turns.c.ending, *_SHOWN), replies.c.text != "")
)
_first_end = sa.select(sa.func.min(_turns.c.ended_at)).scalar_subquery()
_by_operators = (
    sa.select(outbox.c.id, outbox.c.created_at, outbox.c.text)
    .where(
        outbox.c.chat == CHAT_ID,
        is_in(outbox.c.kind, PartKind.OPERATOR),
        outbox.c.created_at >= sa.func.coalesce(_first_end, sa.literal_column("0")),
    )
    .order_by(outbox.c.id.desc())
    .limit(AT_MOST)
    .subquery()
)
_LINES = sa.union_all(
    _messages,
    _answers,
    sa.select(
        _by_operators.c.created_at,
        _OPERATOR,
        _by_operators.c.id,
        _nothing,
        _by_operators.c.text,
        _by_operators.c.created_at,
        _nothing,
    ),
).order_by("moment", "rank", "id")


def history(tx: Tx, chat: int, before_run: int, limit: int) -> Sequence[HistoryLine]:
    """The lines of the chat's last `limit` ended runs, oldest first, `before_run` left out.

    Each run contributes its messages and then its answer, so that turns stay together.
    Notices and apologies are not part of the conversation; an operator's words are.
    """
    asked = {"chat_id": chat, "run_id": before_run, "at_most": limit}
    return [
        HistoryLine(
            "user" if kind else "assistant",
            f"[reminder] {text}" if kind == InboundKind.REMINDER else text,
            at,
            sender,
        )
        for _, _, _, kind, text, at, sender in tx.execute(_LINES, asked)
    ]
