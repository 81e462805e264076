"""Messages: people's words, each with the run that answers it.

The insert is the duplicate check: a message whose request id is known can't be inserted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import sqlalchemy as sa

from bot.domain.commands import Command
from bot.domain.decisions.admission import Unanswered
from bot.domain.decisions.order import as_written
from bot.domain.message import Attachment, Inbound, InboundKind, Quoted
from bot.domain.run import LIVE
from storage import runs as run_rows
from storage.schema.tables import inbound, runs
from storage.statements import clock
from storage.statements.binds import ACCOUNT_ID, AT_MOST, CHAT_ID, MOMENT, REASON, RUN_ID, SECONDS
from storage.statements.chat_rows import MoveChat
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.insert import insert_rows
from storage.statements.literals import is_in
from storage.statements.sets import Rows, among
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as a turn reads it. `sent_at` is the provider's time, where it told one, and
    `received_at` the database's, both in epoch seconds."""

    id: int
    chat: int
    run: int | None
    request_id: str
    provider_id: str
    kind: str
    text: str
    sender_id: str
    sender_name: str
    address: str
    button: str
    attachments: tuple[Attachment, ...]
    quoted: Quoted | None
    forwarded_from: str
    sent_at: float | None
    received_at: float
    edited: bool

    @property
    def at(self) -> float:
        """The time at which it was written, as far as anybody knows."""
        return self.received_at if self.sent_at is None else self.sent_at


_MESSAGE = Entity(
    StoredMessage,
    inbound,
    attachments=(
        inbound.c.attachments,
        lambda files: tuple(Attachment(**file) for file in json.loads(files)),
    ),
    quoted=(inbound.c.quoted, lambda quoted: Quoted(**json.loads(quoted))),
    edited=inbound.c.edited_at.is_not(None).label("edited"),
)
_IS_MESSAGE = inbound.c.id == sa.bindparam("message_id")
_OF_CHAT = inbound.c.chat == CHAT_ID
_OF_RUN = inbound.c.run == RUN_ID
_IS_REQUEST = sa.and_(
    inbound.c.account == ACCOUNT_ID, inbound.c.request_id == sa.bindparam("request")
)
_TO_RUN = sa.bindparam("to_run", type_=sa.BigInteger)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be stored in a chat, with the payload that brought it, and what becomes of it as
    far as that is known: the run that answers it, or the reason for which nothing does."""

    account: int
    chat: int
    message: Inbound
    payload: str
    run: int | None = None
    ignored: Unanswered | None = None

    def stored(self, number: int, received_at: float) -> StoredMessage:
        """The row as it is read again."""
        said = self.message
        return StoredMessage(
            id=number,
            chat=self.chat,
            run=self.run,
            request_id=said.request_id,
            provider_id=said.provider_id,
            kind=said.kind.value,
            text=said.text,
            sender_id=said.sender.id,
            sender_name=said.sender.name,
            address=said.address.chat,
            button=said.button,
            attachments=said.attachments,
            quoted=said.quoted,
            forwarded_from=said.forwarded_from,
            sent_at=said.sent_at,
            received_at=received_at,
            edited=False,
        )


_CONTENT = (
    "kind",
    "text",
    "sender_id",
    "sender_name",
    "button",
    "attachments",
    "quoted",
    "forwarded_from",
    "extra",
)
"""The columns that an enrichment brings too."""


def _content(said: Inbound) -> tuple[str | None, ...]:
    extra = said.extra | _username(said)
    return (
        said.kind.value,
        said.text,
        said.sender.id,
        said.sender.name,
        said.button,
        json.dumps([asdict(file) for file in said.attachments]) if said.attachments else "[]",
        None if said.quoted is None else json.dumps(asdict(said.quoted)),
        said.forwarded_from,
        json.dumps(extra) if extra else "{}",
    )


_new = Rows(
    "new",
    account=sa.BigInteger(),
    chat=sa.BigInteger(),
    run=sa.BigInteger(),
    ignored=sa.Text(),
    request_id=sa.Text(),
    provider_id=sa.Text(),
    address=sa.Text(),
    album=sa.Text(),
    sent_at=sa.Double(),
    payload=sa.Text(),
    **dict.fromkeys(_CONTENT, sa.Text()),
)
_STORE = insert_rows(inbound, _new, received_at=now).returning(
    inbound.c.account, inbound.c.request_id, inbound.c.id, inbound.c.received_at
)


def store_messages(tx: Tx, new: Sequence[NewMessage]) -> Sequence[StoredMessage]:
    """Insert messages that nobody knew a moment ago. One that was recorded from another chat
    meanwhile breaks the transaction, and is known at the next try."""
    rows = _new.of(
        (
            row.account,
            row.chat,
            row.run,
            None if row.ignored is None else row.ignored.value,
            row.message.request_id,
            row.message.provider_id,
            row.message.address.chat,
            row.message.bundle if row.message.gathers else "",
            row.message.sent_at,
            row.payload,
            *_content(row.message),
        )
        for row in new
    )
    stored = {(row[0], row[1]): (row[2], row[3]) for row in tx.execute(_STORE, rows)}
    return [row.stored(*stored[row.account, row.message.request_id]) for row in new]


def _username(message: Inbound) -> dict[str, str]:
    return {"username": message.sender.username} if message.sender.username else {}


_STORE_REMINDER = sa.insert(inbound).values(received_at=now).returning(inbound.c.id)


def store_reminder(
    tx: Tx, account: int, chat: int, request_id: str, text: str, due_at: float
) -> int:
    """Insert a message that we owe ourselves: a reminder that is due since `due_at`."""
    values = {
        "account": account,
        "chat": chat,
        "request_id": request_id,
        "kind": InboundKind.REMINDER.value,
        "text": text,
        "sent_at": due_at,
    }
    return int(tx.scalars(_STORE_REMINDER, values).one())


_ASSIGN = sa.update(inbound).where(_IS_MESSAGE).values(run=_TO_RUN)
_REASSIGN = sa.update(inbound).where(_OF_RUN).values(run=_TO_RUN)
_IGNORE = (
    sa.update(inbound)
    .where(_IS_MESSAGE)
    .values(ignored=REASON, command=sa.bindparam("by_command", type_=sa.Text))
)


_COUNT_DELIVERY = (
    sa.update(inbound)
    .where(among(inbound.c.id, "message_ids"))
    .values(deliveries=inbound.c.deliveries + 1)
)


def count_deliveries(tx: Tx, messages: Sequence[int]) -> None:
    """The platform delivered these messages, which are known, once more."""
    tx.later(_COUNT_DELIVERY, {"message_ids": list(messages)})


def assign(tx: Tx, message: int, run: int) -> None:
    """This message is answered by that run."""
    tx.execute(_ASSIGN, {"message_id": message, "to_run": run})


def reassign(tx: Tx, run: int, to: int) -> None:
    """The messages of a run are answered by another one."""
    tx.execute(_REASSIGN, {"run_id": run, "to_run": to})


def ignore(tx: Tx, message: int, reason: Unanswered, command: Command | None = None) -> None:
    """This message is answered by nothing, for the stated reason, or by this command."""
    values = {"message_id": message, "reason": reason.value}
    tx.execute(_IGNORE, values | {"by_command": None if command is None else command.value})


_ALBUM = inbound.c.album == sa.bindparam("album_id")
_ALBUM_BEGAN = sa.select(sa.func.min(inbound.c.received_at)).where(_OF_RUN, _ALBUM)
_LAST_OF_BUNDLE = sa.select(sa.func.max(inbound.c.received_at)).where(_OF_RUN, _ALBUM)
_ADOPT_ALBUM = (
    sa.update(inbound)
    .where(_OF_CHAT, inbound.c.received_at > now - SECONDS, _ALBUM, inbound.c.ignored == REASON)
    .values(run=_TO_RUN, ignored=None)
)


def album_began(tx: Tx, run: int, album: str) -> float | None:
    """The time at which the first member of this album came to the run; None when it has none."""
    began: float | None = tx.scalar(_ALBUM_BEGAN, {"run_id": run, "album_id": album})
    return began


def last_of_bundle(tx: Tx, run: int, bundle: str) -> float | None:
    """The time at which the newest member of this bundle came to the run; None when it has none."""
    last: float | None = tx.scalar(_LAST_OF_BUNDLE, {"run_id": run, "album_id": bundle})
    return last


def adopt_album(tx: Tx, chat: int, album: str, ignored: Unanswered, within: float, run: int) -> int:
    """Members of the album that were ignored for this reason in the last `within` seconds
    belong to the run after all."""
    values = {"chat_id": chat, "album_id": album, "reason": ignored.value, "seconds": within}
    return tx.execute(_ADOPT_ALBUM, values | {"to_run": run}).rowcount


@dataclass(frozen=True, slots=True)
class Known:
    """The message that is recorded under a request id. `edited_at` is that of its newest edit, in
    epoch seconds. `awaited`: only an edit of it came."""

    id: int
    chat: int
    run: int | None
    text: str
    edited_at: float | None
    awaited: bool


_AWAITED = sa.func.coalesce(is_in(inbound.c.ignored, Unanswered.AWAITED), sa.false())
_KNOWN_ROW = Entity(Known, inbound, awaited=_AWAITED.label("awaited"))
_KNOWN = sa.select(*_KNOWN_ROW.columns).where(_IS_REQUEST)


def known(tx: Tx, account: int, request_id: str) -> Known | None:
    """The message that is recorded under this request id."""
    row = tx.execute(_KNOWN, {"account_id": account, "request": request_id})
    return _KNOWN_ROW.first(row)


_named = Rows("named", account=sa.BigInteger(), request_id=sa.Text())
_KNOWN_EACH = sa.select(inbound.c.account, inbound.c.request_id, inbound.c.id).select_from(
    _named.join(
        inbound,
        sa.and_(inbound.c.account == _named.c.account, inbound.c.request_id == _named.c.request_id),
    )
)


def known_each(tx: Tx, names: Sequence[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
    """The messages recorded under these request ids, each with its account."""
    return {(row[0], row[1]): row[2] for row in tx.execute(_KNOWN_EACH, _named.of(names))}


_WORDS = sa.select(inbound.c.text).where(_IS_REQUEST, _OF_CHAT)


def words(tx: Tx, account: int, chat: int, request_id: str) -> str | None:
    """The text of the chat's message under this request id; None when it has none."""
    asked = {"account_id": account, "chat_id": chat, "request": request_id}
    text: str | None = tx.scalar(_WORDS, asked)
    return text


_FROM = sa.bindparam("from_address", type_=sa.Text)
_AUTHOR_AT = (
    sa.select(inbound.c.sender_id)
    .where(
        _OF_CHAT,
        inbound.c.address == _FROM,
        inbound.c.sender_id != _FROM,
        inbound.c.sender_id != sa.literal_column("''"),
    )
    .order_by(inbound.c.received_at.desc(), inbound.c.id.desc())
    .limit(sa.literal_column("1"))
)


def author_at(tx: Tx, chat: int, address: str) -> str:
    """The id of whoever wrote last in a chat from this address and had an id besides it; empty
    where nobody did."""
    return str(tx.scalar(_AUTHOR_AT, {"chat_id": chat, "from_address": address}) or "")


_ANSWERED = (
    sa.select(inbound.c.address, inbound.c.sender_id, inbound.c.extra)
    .where(_OF_CHAT, inbound.c.run.is_not(None), inbound.c.sender_id != sa.literal_column("''"))
    .order_by(inbound.c.id.desc())
    .limit(AT_MOST)
)


def names_in(tx: Tx, chat: int, at_most: int) -> frozenset[str]:
    """The addresses, ids and @usernames of those whose messages in the chat were taken last."""
    found = tx.execute(_ANSWERED, {"chat_id": chat, "at_most": at_most}).all()
    usernames = {f"@{json.loads(row.extra).get('username', '')}" for row in found}
    return frozenset({name for row in found for name in (row.address, row.sender_id)} | usernames)


_MESSAGES_OF_RUNS = sa.select(*_MESSAGE.columns).where(among(inbound.c.run, "run_ids"))


def of_runs(tx: Tx, runs: Sequence[int]) -> Mapping[int, Sequence[StoredMessage]]:
    """The messages that each of these runs answers, in the order in which they were written."""
    found: dict[int, list[StoredMessage]] = {}
    for message in _MESSAGE.all(tx.execute(_MESSAGES_OF_RUNS, {"run_ids": runs})):
        assert message.run is not None
        found.setdefault(message.run, []).append(message)
    return {run: as_written(messages) for run, messages in found.items()}


def of_run(tx: Tx, run: int) -> Sequence[StoredMessage]:
    """The messages that a run answers, in their order."""
    return of_runs(tx, [run]).get(run, ())


_SOME = among(inbound.c.request_id, "request_ids")
_RECORDED = sa.select(inbound.c.request_id).where(inbound.c.account == ACCOUNT_ID, _SOME)


def recorded(tx: Tx, account: int, request_ids: Sequence[str]) -> tuple[frozenset[str], float]:
    """Those of the messages that are recorded, and the database's time in epoch seconds."""
    asked = {"account_id": account, "request_ids": list(request_ids)}
    return frozenset(tx.scalars(_RECORDED, asked)), clock.read(tx)


_WITHOUT_TIME = (
    sa.select(inbound.c.id, inbound.c.run, inbound.c.request_id)
    .join(runs, runs.c.id == inbound.c.run)
    .where(
        inbound.c.account == ACCOUNT_ID,
        _SOME,
        inbound.c.sent_at.is_(None),
        runs.c.attempts == 0,
        is_in(runs.c.state, *LIVE),
    )
    .order_by(inbound.c.id)
)
_times = Rows("times", message_id=sa.BigInteger(), sent_at=sa.Double())
_SET_SENT_AT = (
    sa.update(inbound).where(inbound.c.id == _times.c.message_id).values(sent_at=_times.c.sent_at)
)


def fill_sent_times(tx: Tx, account: int, times: Mapping[str, float | None]) -> int:
    """Give messages that came without the platform's time (epoch seconds, by request id) what
    its list tells, and order their runs by it if nobody has begun them. Returns how many."""
    known = {name: at for name, at in times.items() if at is not None}
    found = tx.execute(_WITHOUT_TIME, {"account_id": account, "request_ids": list(known)}).all()
    if found:
        tx.execute(_SET_SENT_AT, _times.of((row.id, known[row.request_id]) for row in found))
        run_rows.written_at(tx, [(row.run, known[row.request_id]) for row in found])
    return len(found)


_SOURCE = "source"
"""Set in `extra` of a message that only the platform's list told of, or only an edit."""
OF_AN_EDIT = {_SOURCE: "edit"}
"""The `extra` of a message whose edit came first."""


def tells_more(message: Inbound, extra: str) -> bool:
    """Tell whether a message comes from somewhere that tells more than the platform's list or an
    edit, while its row, with this `extra`, is one that only these told of."""
    return _SOURCE not in message.extra and _SOURCE in json.loads(extra)


_ENRICH = (
    sa.update(inbound)
    .where(_IS_MESSAGE)
    .values({name: sa.bindparam(f"new_{name}") for name in _CONTENT})
)


def enrich(tx: Tx, stored: int, message: Inbound) -> None:
    """Give a row that only the list told of what its webhook tells; its time stays."""
    content = {f"new_{name}": said for name, said in zip(_CONTENT, _content(message), strict=True)}
    tx.execute(_ENRICH, {"message_id": stored, **content})


_NEW_TEXT = sa.bindparam("new_text", type_=sa.Text)
_ARRIVE = (
    sa.update(inbound)
    .where(_IS_MESSAGE, is_in(inbound.c.ignored, Unanswered.AWAITED))
    .values(
        {name: sa.bindparam(f"new_{name}") for name in _CONTENT if name != "text"}
        | {"text": sa.case((inbound.c.text == "", _NEW_TEXT), else_=inbound.c.text)}
        | {name: sa.bindparam(f"new_{name}", type_=sa.Text) for name in ("album", "payload")}
        | {"sent_at": sa.bindparam("new_sent_at", type_=sa.Double), "received_at": now}
        | {"ignored": None}
    )
    .returning(inbound.c.text)
)


def arrive(tx: Tx, stored: int, new: NewMessage) -> Inbound | None:
    """A message comes whose edit came first: its row becomes that of the message, and keeps the
    newer words, if it still has any. Returns it with these; None when it was no longer awaited."""
    said = new.message
    content = {f"new_{name}": value for name, value in zip(_CONTENT, _content(said), strict=True)}
    content |= {"new_album": said.bundle if said.gathers else "", "new_payload": new.payload}
    came = {"message_id": stored, "new_sent_at": said.sent_at, **content}
    text: str | None = tx.scalar(_ARRIVE, came)
    return None if text is None else replace(said, text=text)


_USE_EDIT = (
    sa.update(inbound)
    .where(_IS_MESSAGE, sa.or_(inbound.c.edited_at.is_(None), inbound.c.edited_at <= MOMENT))
    .values(text=sa.bindparam("new_text"), edited_at=MOMENT)
)


def use_edit(tx: Tx, message: int, edited_at: float, text: str) -> None:
    """The run has not started: it will read the new text. An older edit changes nothing."""
    tx.execute(_USE_EDIT, {"message_id": message, "moment": edited_at, "new_text": text})


merge = MoveChat(inbound, inbound.c.chat)
