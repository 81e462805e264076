"""Accounts: the bot identities, whether they can send, and who polls for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from sqlalchemy import exists, or_, select, update

from bot.domain.message import ChannelName
from storage import holders as holder_moves
from storage.engine import clock
from storage.engine.clock import now
from storage.engine.insert import insert_or_skip
from storage.engine.tx import Tx
from storage.schema.tables import accounts, holders


@dataclass(frozen=True, slots=True)
class Account:
    """A bot identity. `down_reason` is set while it can't send."""

    id: int
    channel: ChannelName
    account: str
    name: str
    down_since: float | None
    down_reason: str | None
    catchup_mark: float | None


_COLUMNS = (
    accounts.c.id,
    accounts.c.channel,
    accounts.c.account,
    accounts.c.name,
    accounts.c.down_since,
    accounts.c.down_reason,
    accounts.c.catchup_mark,
)


def ensure(tx: Tx, channel: ChannelName, account: str) -> Account:
    """The account's row, made if it is new."""
    tx.execute(
        insert_or_skip(tx, accounts, {"channel": channel.value, "account": account, "name": ""})
    )
    row = tx.execute(
        select(*_COLUMNS).where(accounts.c.channel == channel.value, accounts.c.account == account)
    ).one()
    return _account(row)


def _account(row) -> Account:  # type: ignore[no-untyped-def]
    return Account(row.id, ChannelName(row.channel), *row[2:])


def listed(tx: Tx) -> Sequence[Account]:
    """Every account that was ever configured."""
    return [_account(r) for r in tx.execute(select(*_COLUMNS).order_by(accounts.c.id))]


def set_name(tx: Tx, account: int, name: str) -> None:
    """Remember the bot's user name, so that a start without the platform still knows it."""
    tx.execute(update(accounts).where(accounts.c.id == account).values(name=name))


def mark_down(tx: Tx, account: int, reason: str) -> bool:
    """up -> down: nothing of it is claimed until it is up. False: it was down already."""
    move = (
        update(accounts)
        .where(accounts.c.id == account, accounts.c.down_since.is_(None))
        .values(down_since=now, down_reason=reason)
    )
    return tx.execute(move).rowcount == 1


def mark_up(tx: Tx, account: int) -> bool:
    """down -> up. False: it was up."""
    move = (
        update(accounts)
        .where(accounts.c.id == account, accounts.c.down_since.is_not(None))
        .values(down_since=None, down_reason=None)
    )
    return tx.execute(move).rowcount == 1


def take_polling(tx: Tx, account: int, holder: int, lease_seconds: float) -> bool:
    """Become (or stay) the one process that polls for this account. False: another one does."""
    other = exists(
        select(1).where(
            holders.c.id == accounts.c.poller,
            holder_moves.alive(holders.c.id, lease_seconds),
        )
    ).correlate(accounts)
    free = or_(accounts.c.poller.is_(None), accounts.c.poller == holder, ~other)
    tx.execute(select(1).where(accounts.c.id == account).with_for_update(key_share=True))
    move = (
        update(accounts)
        .where(accounts.c.id == account, free, holder_moves.alive(holder, lease_seconds))
        .values(poller=holder)
    )
    return tx.execute(move).rowcount == 1


def leave_all_polling(tx: Tx, holder: int) -> None:
    """Let another process poll at once."""
    tx.execute(update(accounts).where(accounts.c.poller == holder).values(poller=None))


def move_mark(tx: Tx, account: int, mark: float) -> None:
    """Everything up to `mark` (epoch seconds) is recorded: only after a complete listing."""
    tx.execute(
        update(accounts)
        .where(
            accounts.c.id == account,
            or_(accounts.c.catchup_mark.is_(None), accounts.c.catchup_mark < mark),
        )
        .values(catchup_mark=mark)
    )


def begin_mark(tx: Tx, account: int) -> float:
    """Where the account's next listing begins, in epoch seconds. The first one begins now, in
    whole seconds as platforms tell them: what was written before is nobody's to answer."""
    tx.execute(
        update(accounts)
        .where(accounts.c.id == account, accounts.c.catchup_mark.is_(None))
        .values(catchup_mark=floor(clock.read(tx)))
    )
    return float(tx.scalars(select(accounts.c.catchup_mark).where(accounts.c.id == account)).one())
