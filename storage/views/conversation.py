"""The conversation of a chat as operators read it: messages and parts in one order."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from bot.domain.decisions.admission import Unanswered
from bot.domain.decisions.order import SortKey, in_one_order
from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.message import Attachment, InboundKind
from bot.domain.reply import ANSWERING, PartKind
from bot.domain.run import RunState
from storage.schema.tables import hand_replies, inbound, outbox, runs
from storage.statements.binds import AT_MOST, CHAT_ID
from storage.statements.entity import Entity
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a person. `at` in epoch seconds; `ignored` says why no run answers it, else
    `state` and `ending` are its run's. `text`, `sender_name` and `attachments` (JSON) are shown
    only on request."""

    id: int
    at: float
    run: int | None
    request_id: str
    kind: InboundKind
    ignored: Unanswered | None
    state: RunState | None
    ending: Ending | None
    edited_at: float | None
    sender_name: str
    attachments: str
    text: str
    direction: Literal["in"] = "in"


@dataclass(frozen=True, slots=True)
class Said:
    """A part that we sent, or shall. `at` is its last send, or when it was stored (`made_at`), in
    epoch seconds; `who` wrote it by hand, if somebody did; `text` is shown only on request."""

    id: int
    at: float
    run: int | None
    kind: PartKind
    state: PartState
    error: str
    made_at: float
    standalone: bool
    who: str
    text: str
    direction: Literal["out"] = "out"


@dataclass(frozen=True, slots=True)
class Before:
    """The place in a conversation behind which its older lines are: the first message that was
    shown, by its time (epoch seconds) and number, and the first part."""

    heard_at: float = 1e12
    heard: int = 1 << 62
    said: int = 1 << 62


_HEARD = Entity(Heard, inbound, at=inbound.c.received_at, state=runs.c.state, ending=runs.c.ending)
_BEFORE_HEARD = sa.tuple_(
    sa.bindparam("before_at", type_=sa.Double), sa.bindparam("before_heard", type_=sa.BigInteger)
)
_NEWEST_HEARD = (
    sa.select(*_HEARD.columns)
    .outerjoin(runs, runs.c.id == inbound.c.run)
    .where(
        inbound.c.chat == CHAT_ID,
        sa.tuple_(inbound.c.received_at, inbound.c.id) < _BEFORE_HEARD,
    )
    .order_by(inbound.c.received_at.desc(), inbound.c.id.desc())
    .limit(AT_MOST)
)
_sent_at = sa.case(
    (outbox.c.started_at > outbox.c.created_at, outbox.c.started_at), else_=outbox.c.created_at
)
_SAID = Entity(
    Said,
    outbox,
    at=_sent_at,
    made_at=outbox.c.created_at,
    who=sa.func.coalesce(hand_replies.c.who, sa.literal_column("''", sa.Text)),
)
_NEWEST_SAID = (
    sa.select(*_SAID.columns)
    .outerjoin(hand_replies, hand_replies.c.part == outbox.c.id)
    .where(
        outbox.c.chat == CHAT_ID,
        outbox.c.id < sa.bindparam("before_said", type_=sa.BigInteger),
    )
    .order_by(outbox.c.id.desc())
    .limit(AT_MOST)
)


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one message, by the account that they came to."""

    account: int
    files: Sequence[Attachment]


_FILES_OF = sa.select(inbound.c.account, inbound.c.attachments).where(
    inbound.c.id == sa.bindparam("message_id", type_=sa.BigInteger), inbound.c.chat == CHAT_ID
)


def files_of(tx: Tx, chat: int, message: int) -> Files | None:
    """The files of a message of this chat; None where it has no such message."""
    row = tx.execute(_FILES_OF, {"message_id": message, "chat_id": chat}).first()
    return None if row is None else Files(row.account, attached(row.attachments))


def attached(told: str) -> Sequence[Attachment]:
    """The files that a message's row tells of, as JSON."""
    return [Attachment(**file) for file in json.loads(told)]


@dataclass(frozen=True, slots=True)
class Talk:
    """A page of a conversation. `older` is where the lines before it are, None where there are
    none."""

    lines: Sequence[Heard | Said]
    older: Before | None


def conversation(tx: Tx, chat: int, limit: int, before: Before | None = None) -> Talk:
    """The newest messages and parts of a chat, or those before a place, oldest of them first: by
    the time at which the person had them."""
    place = before or Before()
    rows = _newest(tx, chat, limit + 1, place)
    page = rows[-limit:]
    return Talk(_in_order(page), _older(page, place) if len(rows) > limit else None)


def _newest(tx: Tx, chat: int, limit: int, place: Before) -> Sequence[Heard | Said]:
    """The last rows before a place. Each kind is in the order by which that place divides it, so
    that no page leaves one out."""
    asked: dict[str, object] = {"chat_id": chat, "at_most": limit}
    earlier = {"before_at": place.heard_at, "before_heard": place.heard}
    heard = _HEARD.all(tx.execute(_NEWEST_HEARD, asked | earlier))
    said = _SAID.all(tx.execute(_NEWEST_SAID, asked | {"before_said": place.said}))
    both: tuple[Sequence[Heard | Said], ...] = (heard[::-1], said[::-1])
    return list(in_one_order(*both, key=_stored))[-limit:]


def _older(shown: Sequence[Heard | Said], place: Before) -> Before:
    """The place before these lines, which are those before `place`."""
    heard = min(((one.at, one.id) for one in shown if isinstance(one, Heard)), default=None)
    said = min((one.id for one in shown if isinstance(one, Said)), default=place.said)
    at, number = heard or (place.heard_at, place.heard)
    return Before(at, number, said)


def _in_order(lines: Sequence[Heard | Said]) -> Sequence[Heard | Said]:
    """Lines by the time at which the person had them. A clock that was set back changes no order of
    messages, nor of what left in the order of its parts, and no answer stands before what it
    answers."""
    sequences: dict[str, list[Heard | Said]] = defaultdict(list)
    for line in sorted(lines, key=lambda one: one.id):
        sequences[_sequence(line)].append(line)
    sequences[_AGAIN].sort(key=_had)
    unheard = Counter(one.run for one in lines if isinstance(one, Heard))

    def held(one: Heard | Said) -> bool:
        return isinstance(one, Said) and one.kind in ANSWERING and unheard[one.run] > 0

    ordered: list[Heard | Said] = []
    for one in in_one_order(*sequences.values(), key=_had, held=held):
        unheard[one.run] -= isinstance(one, Heard)
        ordered.append(one)
    return ordered


_AGAIN = "again"


def _sequence(line: Heard | Said) -> str:
    """The sequence of those that leave, or come, in the order of their ids. A part of an answer
    that goes out by itself was sent once more, or late: of it only its time tells."""
    if isinstance(line, Heard):
        return line.direction
    if line.kind in ANSWERING:
        return _AGAIN if line.standalone else PartKind.REPLY
    return line.kind


def _had(one: Heard | Said) -> SortKey:
    return (one.at, one.direction == "out", one.id)


def _stored(one: Heard | Said) -> SortKey:
    """The order of rows: a part that is sent once more keeps its place there."""
    return (one.made_at if isinstance(one, Said) else one.at, one.direction == "out", one.id)
