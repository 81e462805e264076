"""The conversation of a chat as operators read it: messages and parts in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from bot.domain.decisions.admission import Unanswered
from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.message import InboundKind
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.schema.tables import inbound, outbox, runs
from storage.statements.binds import AT_MOST, CHAT_ID
from storage.statements.entity import Entity
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a person. `at` in epoch seconds; `ignored` says why no run answers it, else
    `state` and `ending` are its run's. `text` is shown only on request."""

    id: int
    at: float
    run: int | None
    request_id: str
    kind: InboundKind
    ignored: Unanswered | None
    state: RunState | None
    ending: Ending | None
    text: str
    direction: Literal["in"] = "in"


@dataclass(frozen=True, slots=True)
class Said:
    """A part that we sent, or shall. `at` is its last send, or when it was stored, in epoch
    seconds; `text` is shown only on request."""

    id: int
    at: float
    run: int | None
    kind: PartKind
    state: PartState
    error: str
    text: str
    direction: Literal["out"] = "out"


_HEARD = Entity(Heard, inbound, at=inbound.c.received_at, state=runs.c.state, ending=runs.c.ending)
_NEWEST_HEARD = (
    sa.select(*_HEARD.columns)
    .outerjoin(runs, runs.c.id == inbound.c.run)
    .where(inbound.c.chat == CHAT_ID)
    .order_by(inbound.c.received_at.desc(), inbound.c.id.desc())
    .limit(AT_MOST)
)
_sent_at = sa.case(
    (outbox.c.started_at > outbox.c.created_at, outbox.c.started_at), else_=outbox.c.created_at
)
_SAID = Entity(Said, outbox, at=_sent_at)
_NEWEST_SAID = (
    sa.select(*_SAID.columns)
    .where(outbox.c.chat == CHAT_ID)
    .order_by(outbox.c.id.desc())
    .limit(AT_MOST)
)


def conversation(tx: Tx, chat: int, limit: int) -> Sequence[Heard | Said]:
    """The newest messages and parts of a chat, oldest of them first."""
    asked = {"chat_id": chat, "at_most": limit}
    heard = _HEARD.all(tx.execute(_NEWEST_HEARD, asked))
    said = _SAID.all(tx.execute(_NEWEST_SAID, asked))
    both: list[Heard | Said] = [*heard, *said]
    return sorted(both, key=lambda one: (one.at, one.direction, one.id))[-limit:]
