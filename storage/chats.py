"""Chats: who is at an address, and what holds for the whole conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CompoundSelect,
    Double,
    Select,
    Text,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from bot.domain.message import Address, ChatKind
from bot.domain.run import RunState
from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.literals import is_in, is_not
from storage.engine.tx import Row, Tx
from storage.schema.tables import chat_addresses, chats, inbound, runs, told


@dataclass(frozen=True, slots=True)
class Chat:
    """One row of `chats`. Times in epoch seconds."""

    id: int
    account: int
    address: Address
    kind: ChatKind
    name: str
    language: str
    last_inbound_at: float | None
    stop_revision: int
    paused_until: float | None
    unreachable_reason: str | None
    opted_out_at: float | None
    not_before: float
    offered: str | None

    @property
    def silence(self) -> str:
        """Why nothing may be sent to this chat; empty when it may."""
        if self.opted_out_at is not None:
            return "the person opted out"
        return self.unreachable_reason or ""


_COLUMNS = (
    chats.c.id,
    chats.c.account,
    chats.c.address,
    chats.c.topic,
    chats.c.kind,
    chats.c.name,
    chats.c.language,
    chats.c.last_inbound_at,
    chats.c.stop_revision,
    chats.c.paused_until,
    chats.c.unreachable_reason,
    chats.c.opted_out_at,
    chats.c.not_before,
    chats.c.offered,
    chats.c.merged_into,
)


def _chat(row: Row) -> Chat:
    return Chat(
        id=row.id,
        account=row.account,
        address=Address(row.address, row.topic),
        kind=ChatKind(row.kind),
        name=row.name,
        language=row.language,
        last_inbound_at=row.last_inbound_at,
        stop_revision=row.stop_revision,
        paused_until=row.paused_until,
        unreachable_reason=row.unreachable_reason,
        opted_out_at=row.opted_out_at,
        not_before=row.not_before,
        offered=row.offered,
    )


_LOCATE = select(chat_addresses.c.chat).where(
    chat_addresses.c.account == bindparam("on"),
    chat_addresses.c.address == bindparam("at"),
    chat_addresses.c.topic == bindparam("under"),
)


def locate(tx: Tx, account: int, addresses: Sequence[Address]) -> int | None:
    """The chat known under the first of these addresses that is known at all."""
    for address in addresses:
        where = {"on": account, "at": address.chat, "under": address.topic}
        found = tx.scalar(_LOCATE, where)
        if found is not None:
            return int(found)
    return None


_CREATE = InsertOrSkip(chats, chats.c.id, created_at=now)
_KNOW = InsertOrSkip(chat_addresses, chat_addresses.c.chat)
_AT = select(chats.c.id).where(
    chats.c.account == bindparam("on"),
    chats.c.address == bindparam("at"),
    chats.c.topic == bindparam("under"),
)


def create(tx: Tx, account: int, address: Address, kind: ChatKind, name: str, language: str) -> int:
    """The chat at this address, made if nobody made it meanwhile."""
    values = {
        "account": account,
        "address": address.chat,
        "topic": address.topic,
        "kind": kind.value,
        "name": name,
        "language": language,
    }
    made = _CREATE.run(tx, values)
    if made is None:
        where = {"on": account, "at": address.chat, "under": address.topic}
        made = tx.scalars(_AT, where).one()
    know_address(tx, account, address, int(made))
    return int(made)


def know_address(tx: Tx, account: int, address: Address, chat: int) -> None:
    """Remember one more address of a chat; an address that is taken stays as it is."""
    values = {"account": account, "address": address.chat, "topic": address.topic, "chat": chat}
    _KNOW.run(tx, values)


_GET = select(*_COLUMNS).where(chats.c.id == bindparam("of"))
_LOCK = _GET.with_for_update(key_share=True)


def lock(tx: Tx, chat: int) -> Chat:
    """Lock the chat's row and read it: every move that changes who is the head does so. A chat
    that became part of another one is that other one."""
    return _found(tx, _LOCK, chat)


def get(tx: Tx, chat: int) -> Chat:
    """One chat, read only; the other one if it became part of it."""
    return _found(tx, _GET, chat)


def _found(tx: Tx, how: Select[*tuple[Any, ...]], chat: int) -> Chat:
    row = tx.execute(how, {"of": chat}).one()
    while row.merged_into is not None:
        row = tx.execute(how, {"of": row.merged_into}).one()
    return _chat(row)


_WHEN = func.coalesce(bindparam("at", type_=Double), now)
_HEARD = (
    update(chats)
    .where(chats.c.id == bindparam("of"))
    .values(
        last_inbound_at=case(
            (or_(chats.c.last_inbound_at.is_(None), chats.c.last_inbound_at < _WHEN), _WHEN),
            else_=chats.c.last_inbound_at,
        ),
        unreachable_since=None,
        unreachable_reason=None,
        address=bindparam("from_here"),
        name=func.coalesce(func.nullif(bindparam("called", type_=Text), ""), chats.c.name),
        language=func.coalesce(func.nullif(bindparam("speaks", type_=Text), ""), chats.c.language),
    )
)


def heard(tx: Tx, chat: int, at: float | None, name: str, language: str, address: Address) -> None:
    """A person wrote: the window opens (it only moves forward), the chat is reachable again,
    and replies go to the exact address of this message."""
    told = {"of": chat, "at": at, "from_here": address.chat, "called": name, "speaks": language}
    tx.execute(_HEARD, told)


def park(tx: Tx, chat: int, reason: str, at: float | None = None) -> bool:
    """Nothing reaches this chat. With `at`, the provider's time of a block: one that is older
    than the chat's last message changes nothing. Without it the evidence is a send of now."""
    guard = [chats.c.id == chat]
    if at is not None:
        guard.append(or_(chats.c.last_inbound_at.is_(None), chats.c.last_inbound_at <= at))
    move = (
        update(chats)
        .where(*guard)
        .values(unreachable_since=now if at is None else at, unreachable_reason=reason)
    )
    return tx.execute(move).rowcount == 1


def at_address(tx: Tx, account: int, address: str) -> Sequence[int]:
    """The chats at an address, every topic among them, in id order."""
    question = (
        select(chat_addresses.c.chat)
        .where(chat_addresses.c.account == account, chat_addresses.c.address == address)
        .distinct()
        .order_by(chat_addresses.c.chat)
    )
    return tx.scalars(question).all()


def addresses(tx: Tx, chat: int) -> Sequence[Address]:
    """Every address under which this chat was ever known."""
    question = select(chat_addresses.c.address, chat_addresses.c.topic).where(
        chat_addresses.c.chat == chat
    )
    return [Address(row.address, row.topic) for row in tx.execute(question)]


def unpark(tx: Tx, chat: int) -> None:
    """The platform lets us in again."""
    tx.execute(
        update(chats)
        .where(chats.c.id == chat)
        .values(unreachable_since=None, unreachable_reason=None)
    )


def raise_stop(tx: Tx, chat: int) -> int:
    """The person said stop: returns the new revision. The chat is locked."""
    move = (
        update(chats)
        .where(chats.c.id == chat)
        .values(stop_revision=chats.c.stop_revision + 1)
        .returning(chats.c.stop_revision)
    )
    return int(tx.scalars(move).one())


def readdress(tx: Tx, chat: int, to: Address) -> None:
    """The conversation goes on under another address. The chat is locked."""
    tx.execute(update(chats).where(chats.c.id == chat).values(address=to.chat, topic=to.topic))


def pause(tx: Tx, chat: int, until: float | None) -> None:
    """Stop the agent in this chat until `until` (epoch seconds; None: until resumed). The
    chat is locked; its head, if nobody works on it, goes back to the waiters."""
    tx.execute(
        update(chats)
        .where(chats.c.id == chat)
        .values(paused_until=1e12 if until is None else until)
    )
    tx.execute(
        update(runs).where(runs.c.chat == chat, runs.c.state == "ready").values(state="waiting")
    )


def settle_pause(tx: Tx, chat: int) -> None:
    """A run went back to ready in a chat that was paused meanwhile: it waits instead."""
    paused = exists(select(1).where(chats.c.id == chat, chats.c.paused_until > now))
    tx.execute(
        update(runs)
        .where(runs.c.chat == chat, runs.c.state == "ready", paused)
        .values(state="waiting")
    )


def resume(tx: Tx, chat: int) -> bool:
    """Let the agent answer again. False: the chat was not paused. The caller promotes."""
    move = (
        update(chats)
        .where(chats.c.id == chat, chats.c.paused_until > now)
        .values(paused_until=None)
    )
    return tx.execute(move).rowcount == 1


def hold_back(tx: Tx, chat: int, seconds: float) -> None:
    """The platform limits this chat: nothing goes out for so long, in none of its topics."""
    due = now + seconds
    here = chats.alias("here")
    topic = chats.alias("topic")
    same = (topic.c.account == here.c.account) & (topic.c.address == here.c.address)
    # A topic that somebody is at work on is passed by: waiting for it could be for each other.
    topics = (
        select(topic.c.id)
        .join(here, same)
        .where(here.c.id == chat)
        .with_for_update(of=topic, key_share=True, skip_locked=True)
    )
    tx.execute(
        update(chats).where(chats.c.id.in_(topics), chats.c.not_before < due).values(not_before=due)
    )


def opt_out(tx: Tx, chat: int, *, out: bool) -> None:
    """The person wants no more messages, or wants them again."""
    tx.execute(update(chats).where(chats.c.id == chat).values(opted_out_at=now if out else None))


def offer(tx: Tx, chat: int, options: str | None) -> None:
    """Remember the choices that the last reply offered, as the channel's JSON."""
    tx.execute(update(chats).where(chats.c.id == chat).values(offered=options))


_TELL = InsertOrSkip(told, told.c.chat, at=now)


def tell_once(tx: Tx, chat: int, what: str, again_after: float) -> bool:
    """Whether the chat should be told `what` now: not if it was within `again_after` s."""
    if _TELL.run(tx, {"chat": chat, "what": what}) is not None:
        return True
    move = (
        update(told)
        .where(told.c.chat == chat, told.c.what == what, told.c.at < now - again_after)
        .values(at=now)
    )
    return tx.execute(move).rowcount == 1


_RECENT: Select[Any] = (
    select(literal_column("1"))
    .where(
        inbound.c.chat == bindparam("of"),
        inbound.c.received_at > now - bindparam("within", type_=Double),
        or_(inbound.c.run.is_not(None), inbound.c.ignored.startswith("a command:")),
    )
    .limit(bindparam("at_most"))
)
_RECENTLY_WRITTEN = _RECENT.where(
    func.coalesce(inbound.c.sent_at, inbound.c.received_at)
    > bindparam("written", type_=Double) - bindparam("within", type_=Double)
)
_COUNT_RECENT = select(func.count()).select_from(_RECENT.subquery())
_COUNT_RECENTLY_WRITTEN = select(func.count()).select_from(_RECENTLY_WRITTEN.subquery())
_WAITING = select(func.coalesce(func.sum(runs.c.messages), literal_column("0"))).where(
    runs.c.chat == bindparam("of"),
    is_in(runs.c.state, RunState.WAITING),
    is_not(runs.c.state, RunState.ENDED),
)


def recent_messages(
    tx: Tx, chat: int, seconds: float, at_most: int, sent_at: float | None = None
) -> int:
    """How many messages to the bot came within the last `seconds`, counted up to `at_most`.

    What concerned somebody else or was refused counts nothing. With `sent_at`, the provider's
    time of a new message, only messages that were written within `seconds` before it count: a
    backlog that arrives at once was not written at once.
    """
    asked = {"of": chat, "within": seconds, "at_most": at_most}
    if sent_at is None:
        return int(tx.scalars(_COUNT_RECENT, asked).one())
    return int(tx.scalars(_COUNT_RECENTLY_WRITTEN, asked | {"written": sent_at}).one())


_SINCE = now - bindparam("within", type_=Double)
_TURNS: CompoundSelect[Any] = union_all(
    select(literal_column("1")).where(
        runs.c.chat == bindparam("of"), runs.c.ended_at > _SINCE, runs.c.created_at > _SINCE
    ),
    select(literal_column("1")).where(
        runs.c.chat == bindparam("of"),
        is_not(runs.c.state, RunState.ENDED),
        runs.c.created_at > _SINCE,
    ),
)
_COUNT_TURNS = select(func.count()).select_from(_TURNS.limit(bindparam("at_most")).subquery())


def recent_turns(tx: Tx, chat: int, seconds: float, at_most: int) -> int:
    """How many runs were made within the last `seconds`, counted up to `at_most`."""
    return int(tx.scalars(_COUNT_TURNS, {"of": chat, "within": seconds, "at_most": at_most}).one())


def waiting_messages(tx: Tx, chat: int) -> int:
    """How many messages of this chat wait for a run that nobody has begun."""
    return int(tx.scalars(_WAITING, {"of": chat}).one())
