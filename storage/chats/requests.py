"""Requests of people about their own data: each is asked back once, then done once.

(nothing) | asked | done  ->  asked        ask
asked                     ->  confirmed    ask, again within a while
confirmed                 ->  done         finish, drop_exports
(nothing) | any           ->  done         forgotten_by_hand
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from bot.domain.commands import Command, DataRequestState
from storage.schema.tables import chats, data_requests, inbound
from storage.statements.binds import AT_MOST, CHAT_ID, SECONDS
from storage.statements.clock import now
from storage.statements.literals import is_in, is_not, word
from storage.statements.sets import among
from storage.statements.tx import Tx
from storage.views.chats import LastIds, last_ids


@dataclass(frozen=True, slots=True)
class DataRequest:
    """One row that is confirmed, `at` in epoch seconds. Its chat may be part of another one by now;
    `until` are the ids that it reaches to."""

    at: float
    chat: int
    what: Command
    until: LastIds

    @property
    def mark(self) -> Mark:
        """Its position among the requests that are to be done."""
        return self.at, self.chat, self.what.value


Mark = tuple[float, int, str]
FIRST: Mark = (0.0, 0, "")


_LAST_IDS = tuple(f"last_{name}" for name in LastIds._fields)
_IS_REQUEST = sa.and_(
    data_requests.c.chat == CHAT_ID, data_requests.c.what == sa.bindparam("command")
)
_CONFIRMED = is_in(data_requests.c.state, DataRequestState.CONFIRMED)
_CONFIRM = (
    sa.update(data_requests)
    .where(
        _IS_REQUEST,
        is_in(data_requests.c.state, DataRequestState.ASKED),
        data_requests.c.at >= now - SECONDS,
    )
    .values(
        state=word(DataRequestState.CONFIRMED),
        at=now,
        **{name: sa.bindparam(f"new_{name}") for name in _LAST_IDS},
    )
)
_ASK = insert(data_requests).values(at=now, state=word(DataRequestState.ASKED))
_ASK = _ASK.on_conflict_do_update(
    index_elements=[data_requests.c.chat, data_requests.c.what],
    set_={"at": _ASK.excluded.at, "state": word(DataRequestState.ASKED)},
    where=is_not(data_requests.c.state, DataRequestState.CONFIRMED),
)


def ask(tx: Tx, account: int, chat: int, what: Command, within: float) -> bool | None:
    """A person asks for it. True: they did so in the last `within` seconds before, so it is
    confirmed; False: they are to be asked back; None: it is under way. The chat is locked."""
    named: dict[str, object] = {"chat_id": chat, "command": what.value}
    until = {f"new_{name}": last for name, last in zip(_LAST_IDS, last_ids(tx), strict=True)}
    if tx.execute(_CONFIRM, named | {"seconds": within} | until).rowcount == 1:
        return True
    asked = tx.execute(_ASK, {"chat": chat, "what": what.value, "account": account})
    return False if asked.rowcount == 1 else None


_PLACE = (data_requests.c.at, data_requests.c.chat, data_requests.c.what)
_BEHIND = tuple(sa.bindparam(f"after_{column.name}", type_=column.type) for column in _PLACE)
_TO_DO = (
    sa.select(*_PLACE, *(data_requests.c[name] for name in _LAST_IDS))
    .where(
        _CONFIRMED,
        among(data_requests.c.account, "account_ids"),
        sa.tuple_(*_PLACE) > sa.tuple_(*_BEHIND),
    )
    .order_by(*_PLACE)
    .limit(AT_MOST)
)
_IS_OPEN = sa.select(sa.exists(sa.select(1).where(_IS_REQUEST, _CONFIRMED)))
_FINISH = (
    sa.update(data_requests)
    .where(_IS_REQUEST, _CONFIRMED)
    .values(state=word(DataRequestState.DONE), at=now)
)


def to_do(
    tx: Tx, account_ids: Sequence[int], limit: int, after: Mark = FIRST
) -> Sequence[DataRequest]:
    """The requests that are confirmed in chats of these accounts, oldest first, from behind a
    mark on."""
    behind = dict(zip((bind.key for bind in _BEHIND), after, strict=True))
    asked = {"account_ids": list(account_ids), "at_most": limit, **behind}
    return [
        DataRequest(at, chat, Command(what), LastIds(*until))
        for at, chat, what, *until in tx.execute(_TO_DO, asked).all()
    ]


def is_confirmed(tx: Tx, chat: int, what: Command) -> bool:
    """Tell whether this is about to be done for the chat."""
    return bool(tx.scalar(_IS_OPEN, {"chat_id": chat, "command": what.value}))


_FORGOTTEN = insert(data_requests).values(
    at=now, what=word(Command.FORGET), state=word(DataRequestState.DONE)
)
_FORGOTTEN = _FORGOTTEN.on_conflict_do_update(
    index_elements=[data_requests.c.chat, data_requests.c.what],
    set_={name: _FORGOTTEN.excluded[name] for name in ("at", "state", *_LAST_IDS)},
)
_MESSAGE_ID = sa.bindparam("message_id", type_=sa.BigInteger)
_HAS_NO_WORDS = sa.exists(
    sa.select(1).where(
        inbound.c.id == _MESSAGE_ID,
        inbound.c.text == sa.literal_column("''"),
        inbound.c.payload == sa.literal_column("''"),
    )
)
_IS_FORGOTTEN = sa.select(
    sa.exists(
        sa.select(1)
        .join_from(data_requests, chats, chats.c.id == data_requests.c.chat)
        .where(
            # Of a chat that became part of this one: not what was said in this one.
            sa.or_(chats.c.id == CHAT_ID, sa.and_(chats.c.merged_into == CHAT_ID, _HAS_NO_WORDS)),
            data_requests.c.what == word(Command.FORGET),
            data_requests.c.last_message >= _MESSAGE_ID,
        )
    )
)


def forgotten_by_hand(tx: Tx, account: int, chat: int, until: LastIds) -> None:
    """An operator had the chat forgotten up to these ids, whatever its person asked for."""
    values = {"account": account, "chat": chat, **dict(zip(_LAST_IDS, until, strict=True))}
    tx.execute(_FORGOTTEN, values)


def is_forgotten(tx: Tx, chat: int, message: int) -> bool:
    """Tell whether a message is one of those whose words are deleted, or about to be."""
    return bool(tx.scalar(_IS_FORGOTTEN, {"chat_id": chat, "message_id": message}))


def finish(tx: Tx, request: DataRequest) -> bool:
    """confirmed -> done. False: another process was first."""
    named = {"chat_id": request.chat, "command": request.what.value}
    return tx.execute(_FINISH, named).rowcount == 1


_DROP_EXPORTS = (
    sa.update(data_requests)
    .where(_CONFIRMED, data_requests.c.what == word(Command.EXPORT))
    .values(state=word(DataRequestState.DONE), at=now)
)


def drop_exports(tx: Tx) -> None:
    """confirmed -> done, for every copy that is to be sent: the database is an old one, and they
    may have been sent since. Who was to be forgotten is to be forgotten in it, too."""
    tx.execute(_DROP_EXPORTS)
