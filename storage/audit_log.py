"""The audit trail: every move with its author, time and reason. Append only, until it is old:
then it goes, and the reasons of a forgotten chat go at once."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from storage.schema.tables import events
from storage.statements.binds import SECONDS
from storage.statements.chat_rows import Blank, DropOld, MoveChat, Page
from storage.statements.clock import now
from storage.statements.tx import Tx

_NOTE = sa.insert(events).values(at=now)


def note(
    tx: Tx, who: str, what: str, why: str = "", *, run: int | None = None, chat: int | None = None
) -> None:
    """Append one event. `why` never holds message text or whole phone numbers."""
    tx.execute(_NOTE, {"run": run, "chat": chat, "who": who, "what": what, "why": why})


ACCOUNT_REPORT = "account report"
"""The name of an event that is a platform's word on an account itself."""
HELD_OFF = "held off"
"""The name of an event that tells from where nobody may sign in to the operator's page for now."""

_OF = sa.and_(events.c.what == sa.bindparam("what", type_=sa.Text), events.c.at > now - SECONDS)
_NOTED = (
    sa.select(events.c.id)
    .where(
        _OF,
        events.c.why == sa.bindparam("why", type_=sa.Text),
        events.c.run.is_not_distinct_from(sa.bindparam("run", type_=sa.BigInteger)),
    )
    .limit(sa.literal_column("1"))
)


def note_once(
    tx: Tx,
    who: str,
    what: str,
    why: str,
    *,
    within: float,
    run: int | None = None,
    chat: int | None = None,
) -> bool:
    """Append one event, unless it was noted in the last `within` seconds. False: it was."""
    asked = {"what": what, "why": why, "run": run, "seconds": within}
    if tx.execute(_NOTED, asked).first() is not None:
        return False
    note(tx, who, what, why, run=run, chat=chat)
    return True


_OF_RUN = (
    sa.select(events.c.what, events.c.why)
    .where(
        events.c.run == sa.bindparam("run", type_=sa.BigInteger),
        events.c.who == sa.bindparam("who", type_=sa.Text),
    )
    .order_by(events.c.id)
)


def of_run(tx: Tx, run: int, who: str) -> Sequence[tuple[str, str]]:
    """The deeds of somebody that concern a run, each with its reason, in their order."""
    return [(row.what, row.why) for row in tx.execute(_OF_RUN, {"run": run, "who": who}).all()]


_LATELY = (
    sa.select(events.c.why, (now - sa.func.max(events.c.at)).label("age"))
    .where(_OF)
    .group_by(events.c.why)
    .order_by(sa.literal_column("age"))
    .limit(sa.literal_column("20"))
)


def lately(tx: Tx, what: str, within: float) -> Sequence[tuple[str, float]]:
    """The reasons of these events in the last `within` seconds, newest first, each with the
    seconds since it was noted last."""
    found = tx.execute(_LATELY, {"what": what, "seconds": within}).all()
    return [(row.why, row.age) for row in found]


_COUNT = sa.select(sa.func.count()).where(
    _OF,
    *(
        sa.or_(
            sa.bindparam(f"any_{column.name}", type_=sa.Boolean) == sa.true(),
            column == sa.bindparam(column.name, type_=sa.Text),
        )
        for column in (events.c.who, events.c.why)
    ),
)


def count_lately(
    tx: Tx, what: str, within: float, *, who: str | None = None, why: str | None = None
) -> int:
    """The number of these events in the last `within` seconds: by one author or by all, of one
    reason or of all."""
    of = {"any_who": who is None, "who": who or "", "any_why": why is None, "why": why or ""}
    return int(tx.scalars(_COUNT, {"what": what, "seconds": within, **of}).one())


page = Page(events)
blank = Blank(events, events.c.id)
blank_of_runs = Blank(events, events.c.run)

drop_old = DropOld(events, events.c.id, events.c.at)
merge = MoveChat(events, events.c.chat)
move_run = MoveChat(events, events.c.run)
