"""Names resolved: a run's or a chat's number, a request id, a platform's address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.decisions.admission import Unanswered
from bot.domain.ending import Ending
from bot.domain.message import clean, shortened
from bot.domain.run import RunState
from storage.outbox.rows import BEGINS_REPLY, SAID
from storage.schema.tables import accounts, chat_addresses, chats, inbound, outbox, receipts, runs
from storage.statements.binds import ACCOUNT_ID
from storage.statements.entity import Entity
from storage.statements.sets import among
from storage.statements.tx import Tx

_MOST_DIGITS = 18
"""A row's number has 63 bits."""


def _accounts(tx: Tx) -> Sequence[int]:
    """Every account: the indexes are by account, so that a search over all of them names them."""
    return tx.scalars(sa.select(accounts.c.id)).all()


def number_of(name: str) -> int | None:
    """The number that a name is, where a row can have it."""
    if not (name.isascii() and name.isdecimal() and len(name) <= _MOST_DIGITS):
        return None
    return int(name)


def _id_named(tx: Tx, ids: sa.ColumnElement[int], key: sa.Column[int], name: str) -> Sequence[int]:
    number = number_of(name)
    return () if number is None else tx.scalars(sa.select(ids).where(key == number)).all()


def runs_named(tx: Tx, name: str) -> Sequence[int]:
    """The runs that a number or a request id names; several when accounts share the id."""
    by_request = sa.select(inbound.c.run).where(
        inbound.c.account.in_(_accounts(tx)),
        inbound.c.request_id == clean(name),
        inbound.c.run.is_not(None),
    )
    return _id_named(tx, runs.c.id, runs.c.id, name) or tx.scalars(by_request.distinct()).all()


_OF_RECEIPT = (
    sa.select(outbox.c.run)
    .join(receipts, receipts.c.outbox == outbox.c.id)
    .where(receipts.c.receipt == sa.bindparam("receipt", type_=sa.Text), outbox.c.run.is_not(None))
    .distinct()
    .limit(sa.literal_column("50"))
)


def runs_of_receipt(tx: Tx, receipt: str) -> Sequence[int]:
    """The runs of which a platform took a part under this receipt."""
    return tx.scalars(_OF_RECEIPT, {"receipt": receipt}).all()


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """A recorded message: why no run answers it, or the run that does, with how it stands and the
    answer that is stored."""

    run: int | None
    ignored: Unanswered | None
    state: RunState | None
    ending: Ending | None
    answer: str | None


_RECORDED = Entity(RecordedMessage, inbound, state=runs.c.state, ending=runs.c.ending, answer=SAID)
_UNDER = (
    sa.select(*_RECORDED.columns)
    .select_from(
        inbound.outerjoin(runs, runs.c.id == inbound.c.run).outerjoin(
            outbox, sa.and_(outbox.c.run == runs.c.id, BEGINS_REPLY)
        )
    )
    .where(among(inbound.c.account, "account_ids"))
    .order_by(inbound.c.id.desc())
    .limit(sa.literal_column("1"))
)
_name = inbound.c.request_id
_UNDER_NAME = _UNDER.where(_name == sa.bindparam("request", type_=sa.Text))
_begins = sa.func.length(_name) - sa.func.length(sa.bindparam("request", type_=sa.Text)) + 1
_UNDER_ENDING = _UNDER.where(sa.func.substr(_name, _begins) == sa.bindparam("request"))


def recorded_under(tx: Tx, request_id: str, account: int | None) -> RecordedMessage | None:
    """The newest message recorded under this id, of one account or of any; None: unknown.

    Of any also by the name that a client of ours gave it, which ends the id: that reads the table.
    """
    request_id = clean(request_id)
    of = {"account_ids": list(_accounts(tx) if account is None else [account])}
    found = _RECORDED.first(tx.execute(_UNDER_NAME, of | {"request": request_id}))
    if found is not None or account is not None or not request_id:
        return found
    return _RECORDED.first(tx.execute(_UNDER_ENDING, of | {"request": f"-{request_id}"}))


@dataclass(frozen=True, slots=True)
class RecordedWords:
    """The words of a recorded message, under its request id; empty once its words are deleted."""

    request_id: str
    text: str
    button: str
    attachments: str


_WORDS = sa.select(
    inbound.c.request_id, inbound.c.text, inbound.c.button, inbound.c.attachments
).where(inbound.c.account == ACCOUNT_ID, among(inbound.c.request_id, "request_ids"))


def words_under(tx: Tx, account: int, request_ids: Sequence[str]) -> RecordedWords | None:
    """The message recorded under one of these ids of an account; None: nothing."""
    row = tx.execute(_WORDS, {"account_id": account, "request_ids": list(request_ids)}).first()
    return None if row is None else RecordedWords(*row)


_SURVIVOR = sa.func.coalesce(chats.c.merged_into, chats.c.id)
"""The number of a chat, or of the one that it became part of."""


def chats_named(tx: Tx, name: str) -> Sequence[int]:
    """The chats that our id or a platform's address names (`address/topic` for a topic), whole
    or cut short as lists show it; where addresses begin with the platform's name and a colon,
    with or without that."""
    address, _, topic = clean(name).replace("...", "…").partition("/")
    every = tx.execute(sa.select(accounts.c.id, accounts.c.channel)).all()
    spelled = {address, *(f"{row.channel}:{address}" for row in every)}
    known = chat_addresses.c.address
    of_accounts = chat_addresses.c.account.in_([row.id for row in every])
    if "…" in address:
        ending = known.endswith(address.rpartition("…")[2], autoescape=True)
        likely = tx.scalars(sa.select(known).where(of_accounts, ending)).all()
        spelled = {whole for whole in likely if shortened(whole) in spelled}
    question = sa.select(chat_addresses.c.chat).where(of_accounts, known.in_(sorted(spelled)))
    if topic:
        question = question.where(chat_addresses.c.topic == topic)
    return tx.scalars(question.distinct()).all() or _id_named(tx, _SURVIVOR, chats.c.id, name)
