"""Presence: the operators who look at a chat, each open page under a short lease of its own.

The lease is judged by the database's clock. It tells people of each other and guards nothing: that
two never both answer is the guard of the reply itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from storage.schema.tables import presence
from storage.statements.binds import CHAT_ID, SECONDS
from storage.statements.clock import now
from storage.statements.tx import Tx

_PAGE = sa.bindparam("its_page", type_=sa.Text)
_ATTEND = insert(presence).values(
    chat=CHAT_ID, page=_PAGE, who=sa.bindparam("its_who", type_=sa.Text), until=now + SECONDS
)
_ATTEND_ON = _ATTEND.on_conflict_do_update(
    index_elements=[presence.c.chat, presence.c.page],
    set_={"until": _ATTEND.excluded.until, "who": _ATTEND.excluded.who},
)
_LEAVE = sa.delete(presence).where(presence.c.chat == CHAT_ID, presence.c.page == _PAGE)
_DROP_OLD = sa.delete(presence).where(presence.c.until < now - SECONDS)
_OTHERS = (
    sa.select(presence.c.who)
    .where(presence.c.chat == CHAT_ID, presence.c.page != _PAGE, presence.c.until > now)
    .distinct()
    .order_by(presence.c.who)
)


def attend(tx: Tx, chat: int, page: str, who: str, seconds: float) -> None:
    """`who` looks at the chat on this page, for so many seconds from now."""
    asked = {"chat_id": chat, "its_page": page, "its_who": who, "seconds": seconds}
    tx.execute(_ATTEND_ON, asked)
    tx.execute(_DROP_OLD, {"seconds": seconds})


def leave(tx: Tx, chat: int, page: str) -> None:
    """The page is closed."""
    tx.execute(_LEAVE, {"chat_id": chat, "its_page": page})


def others(tx: Tx, chat: int, page: str) -> Sequence[str]:
    """The operators who look at the chat on any other page."""
    return tx.scalars(_OTHERS, {"chat_id": chat, "its_page": page}).all()
