"""The conversation as an agent reads it: the last turns of a chat, with their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.decisions.order import ByHand, EndedTurn, as_answered, as_written
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
from storage.statements.sets import Rows, driving, taken_for_few, within
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
_few_turns = taken_for_few(_turns.c.place)
_MESSAGE, _ANSWER, _BY_HAND = range(3)


class _Line(NamedTuple):
    """A message of a turn, the answer to it, or an operator's words, which are of no turn. When the
    turn ended, when a message was sent by its provider's word, and when the line was recorded here,
    all in epoch seconds."""

    place: int
    what: int
    run: int
    id: int
    ended_at: float
    kind: str
    text: str
    sent_at: float | None
    received_at: float
    sender_name: str
    provider_id: str


_nothing = sa.literal_column("''", sa.Text)
_none: sa.ColumnElement[float] = sa.literal_column("NULL", sa.Double)
_messages = sa.select(
    _turns.c.place,
    sa.literal_column(str(_MESSAGE), sa.Integer),
    _turns.c.id,
    inbound.c.id,
    _turns.c.ended_at,
    inbound.c.kind,
    inbound.c.text,
    inbound.c.sent_at,
    inbound.c.received_at,
    inbound.c.sender_name,
    inbound.c.provider_id,
).select_from(driving(_turns, inbound, sa.and_(inbound.c.run == _turns.c.id, _few_turns)))
_answers = sa.select(
    _turns.c.place,
    sa.literal_column(str(_ANSWER), sa.Integer),
    _turns.c.id,
    outbox.c.id,
    _turns.c.ended_at,
    _nothing,
    sa.case((is_in(_turns.c.ending, *_SHOWN), SAID), else_=_nothing),
    _none,
    outbox.c.created_at,
    _nothing,
    _nothing,
).select_from(
    driving(_turns, outbox, sa.and_(outbox.c.run == _turns.c.id, BEGINS_REPLY, _few_turns))
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
        sa.literal_column(str(_BY_HAND), sa.Integer),
        sa.literal_column("0", sa.BigInteger),
        outbox.c.id,
        outbox.c.created_at,
        _nothing,
        outbox.c.text,
        _none,
        outbox.c.created_at,
        _nothing,
        _nothing,
    ).select_from(_asked.join(outbox, within(outbox.c.id, _by_operators))),
)


def history(tx: Tx, asked: Sequence[ChatBefore], limit: int) -> Sequence[Sequence[HistoryMessage]]:
    """The lines of the last `limit` ended runs of each of these chats, in the order in which they
    were answered.

    Each run contributes its messages and then its answer, so that turns stay together.
    Notices and apologies are not part of the conversation; an operator's words are, from the
    first of these runs on.
    """
    lines: list[list[_Line]] = [[] for _ in asked]
    for line in map(_Line._make, tx.execute(_LINES, {**_asked.of(asked), "at_most": limit})):
        lines[line.place - 1].append(line)
    return [[_told(line) for line in _in_order(of_chat)] for of_chat in lines]


def _in_order(lines: Sequence[_Line]) -> Iterator[_Line]:
    """The lines of a chat, turn by turn. An answer that nobody was shown is left out."""
    turns: dict[int, list[_Line]] = defaultdict(list)
    by_hand = {line.id: line for line in lines if line.what == _BY_HAND}
    for line in lines:
        if line.what != _BY_HAND:
            turns[line.run].append(line)
    words = [ByHand(line.id, line.received_at) for line in by_hand.values()]
    begun = not turns
    for one in as_answered(map(_ended_turn, turns.values()), words):
        if isinstance(one, EndedTurn):
            begun = True
            yield from as_written([line for line in turns[one.run] if line.what == _MESSAGE])
            yield from [line for line in turns[one.run] if line.what == _ANSWER and line.text]
        elif begun:
            yield by_hand[one.part]


def _ended_turn(lines: Sequence[_Line]) -> EndedTurn:
    answer = next((line.id for line in lines if line.what == _ANSWER), None)
    return EndedTurn(lines[0].run, answer, lines[0].ended_at)


def _told(line: _Line) -> HistoryMessage:
    words = f"[reminder] {line.text}" if line.kind == InboundKind.REMINDER else line.text
    at = line.received_at if line.sent_at is None else line.sent_at
    return HistoryMessage("user" if line.kind else "assistant", words, at, line.sender_name)


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
