"""The conversation as an agent reads it: the last turns of a chat, with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.ending import Ending
from bot.domain.message import InboundKind
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from bot.domain.turn import HistoryMessage
from storage.engine.database import Database
from storage.engine.lane import Lane
from storage.outbox.rows import BEGINS_REPLY, SAID
from storage.schema.tables import inbound, outbox, runs
from storage.statements.binds import AT_MOST
from storage.statements.literals import is_in
from storage.statements.sets import Rows, driving, within
from storage.statements.tx import Tx


class ChatBefore(NamedTuple):
    """A chat, without its run `run`: what was said before it."""

    chat: int
    run: int


_SHOWN = [ending for ending in Ending if ending.rule.shown]

_asked = Rows("asked", chat=sa.BigInteger(), before_run=sa.BigInteger())
_ended, _said = runs.alias("ended"), outbox.alias("said")
_latest = (
    sa.select(_ended.c.id)
    .where(
        _ended.c.chat == _asked.c.chat,
        _ended.c.id != _asked.c.before_run,
        is_in(_ended.c.state, RunState.ENDED),
    )
    .order_by(_ended.c.ended_at.desc(), _ended.c.id.desc())
    .limit(AT_MOST)
    .correlate(_asked.table)
)
_turns = (
    sa.select(_asked.c.place, runs.c.id, runs.c.ended_at, runs.c.ending)
    .select_from(_asked.join(runs, within(runs.c.id, _latest)))
    .cte("turns")
    .prefix_with("MATERIALIZED")
)
_OPERATOR_RANK = 2
_MESSAGE, _ANSWER, _OPERATOR = (
    sa.literal_column(str(rank), sa.Integer) for rank in (0, 1, _OPERATOR_RANK)
)
"""The ranks of rows of one moment, first to last."""
_nothing = sa.literal_column("''", sa.Text)
_messages = sa.select(
    _turns.c.place,
    _turns.c.ended_at.label("moment"),
    _MESSAGE.label("rank"),
    inbound.c.id,
    inbound.c.kind,
    inbound.c.text,
    sa.func.coalesce(inbound.c.sent_at, inbound.c.received_at),
    inbound.c.sender_name,
).select_from(driving(_turns, inbound, inbound.c.run == _turns.c.id))
_answers = (
    sa.select(
        _turns.c.place,
        _turns.c.ended_at,
        _ANSWER,
        outbox.c.run,
        _nothing,
        SAID,
        outbox.c.created_at,
        _nothing,
    )
    .select_from(driving(_turns, outbox, sa.and_(outbox.c.run == _turns.c.id, BEGINS_REPLY)))
    .where(is_in(_turns.c.ending, *_SHOWN), SAID != "")
)
_by_operators = (
    sa.select(_said.c.id)
    .where(_said.c.chat == _asked.c.chat, is_in(_said.c.kind, PartKind.OPERATOR))
    .order_by(_said.c.id.desc())
    .limit(AT_MOST)
    .correlate(_asked.table)
)
_LINES = sa.union_all(
    _messages,
    _answers,
    sa.select(
        _asked.c.place,
        outbox.c.created_at,
        _OPERATOR,
        outbox.c.id,
        _nothing,
        outbox.c.text,
        outbox.c.created_at,
        _nothing,
    ).select_from(_asked.join(outbox, within(outbox.c.id, _by_operators))),
).order_by("moment", "rank", "id")


def history(tx: Tx, asked: Sequence[ChatBefore], limit: int) -> Sequence[Sequence[HistoryMessage]]:
    """The lines of the last `limit` ended runs of each of these chats, oldest first.

    Each run contributes its messages and then its answer, so that turns stay together.
    Notices and apologies are not part of the conversation; an operator's words are, from the
    first of these runs on.
    """
    lines: list[list[HistoryMessage]] = [[] for _ in asked]
    found = tx.execute(_LINES, {**_asked.of(asked), "at_most": limit}).all()
    with_turns = {line.place for line in found if line.rank != _OPERATOR_RANK}
    for place, _, rank, _, kind, text, at, sender in found:
        if rank == _OPERATOR_RANK and place in with_turns and not lines[place - 1]:
            continue
        words = f"[reminder] {text}" if kind == InboundKind.REMINDER else text
        said = HistoryMessage("user" if kind else "assistant", words, at, sender)
        lines[place - 1].append(said)
    return lines


History = Lane[ChatBefore, Sequence[HistoryMessage]]
"""Reads what was said before a turn, for all turns that ask at once."""


def history_lane(db: Database, limit: int) -> History:
    """The lane that reads the last `limit` runs of a chat."""
    return Lane(
        db.ask,
        partial(history, limit=limit),
        lambda tx, asked: history(tx, [asked], limit)[0],
        key=lambda asked: asked,
    )
