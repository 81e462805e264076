"""Accounts: the bot identities, their state, and their pollers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import sqlalchemy as sa

from bot.domain.message import ChannelName
from storage.holders import alive
from storage.schema.tables import accounts
from storage.statements import clock
from storage.statements.binds import ACCOUNT_ID, HOLDER_ID, LEASE_SECONDS, MOMENT, REASON
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Account:
    """A bot identity. `down_reason` is set while it can't send, and `down_code` where its platform
    named a code for that; `cut_off_reason` while nothing of it comes in."""

    id: int
    channel: ChannelName
    account: str
    name: str
    down_since: float | None
    down_reason: str | None
    down_code: str | None
    cut_off_since: float | None
    cut_off_reason: str | None
    catchup_mark: float | None


_ACCOUNT = Entity(Account, accounts)
_IS_ACCOUNT = accounts.c.id == ACCOUNT_ID
_THIS = sa.update(accounts).where(_IS_ACCOUNT)

_ENSURE = InsertOrSkip(accounts)
_LISTED = sa.select(*_ACCOUNT.columns).order_by(accounts.c.id)
_FIND = _LISTED.where(
    accounts.c.channel == sa.bindparam("channel"), accounts.c.account == sa.bindparam("account")
)


def ensure(tx: Tx, channel: ChannelName, account: str) -> Account:
    """The account's row, made if it is new."""
    named = {"channel": str(channel), "account": account}
    _ENSURE.run(tx, named)
    return _ACCOUNT.read(tx.execute(_FIND, named).one())


def listed(tx: Tx) -> Sequence[Account]:
    """Every account that was ever configured."""
    return _ACCOUNT.all(tx.execute(_LISTED))


_SET_NAME = _THIS.values(name=sa.bindparam("called"))
_MENU = sa.select(accounts.c.menu).where(_IS_ACCOUNT)
_SET_MENU = _THIS.values(menu=sa.bindparam("shown"))
_MARK_DOWN = _THIS.where(accounts.c.down_since.is_(None)).values(
    down_since=now, down_reason=REASON, down_code=sa.bindparam("code", type_=sa.Text)
)
_MARK_UP = _THIS.where(accounts.c.down_since.is_not(None)).values(
    down_since=None, down_reason=None, down_code=None
)


_CUT_OFF = _THIS.where(accounts.c.cut_off_since.is_(None)).values(
    cut_off_since=now, cut_off_reason=REASON
)
_COMES_IN = _THIS.where(accounts.c.cut_off_since.is_not(None)).values(
    cut_off_since=None, cut_off_reason=None
)


def set_name(tx: Tx, account: int, name: str) -> None:
    """Remember the bot's user name, so that a start without the platform still knows it."""
    tx.execute(_SET_NAME, {"account_id": account, "called": name})


def menu(tx: Tx, account: int) -> str:
    """The digest of the menu that its platform was given last; empty before the first."""
    return str(tx.scalars(_MENU, {"account_id": account}).one())


def set_menu(tx: Tx, account: int, digest: str) -> None:
    """Remember which menu the platform has, so that no later start gives it again."""
    tx.execute(_SET_MENU, {"account_id": account, "shown": digest})


def mark_down(tx: Tx, account: int, reason: str, code: str | None = None) -> bool:
    """up -> down: nothing of it is sent until it is up. False: it was down already."""
    values = {"account_id": account, "reason": reason, "code": code}
    return tx.execute(_MARK_DOWN, values).rowcount == 1


def mark_up(tx: Tx, account: int) -> bool:
    """down -> up. False: it was up."""
    return tx.execute(_MARK_UP, {"account_id": account}).rowcount == 1


def cut_off(tx: Tx, account: int, reason: str) -> bool:
    """Nothing comes in any more. False: that was known."""
    return tx.execute(_CUT_OFF, {"account_id": account, "reason": reason}).rowcount == 1


def comes_in(tx: Tx, account: int) -> bool:
    """Record that messages come in again. False: they did before."""
    return tx.execute(_COMES_IN, {"account_id": account}).rowcount == 1


_LOCK = sa.select(1).where(_IS_ACCOUNT).with_for_update(key_share=True)
_TAKE_POLLING = _THIS.where(
    sa.or_(
        accounts.c.poller.is_(None),
        accounts.c.poller == HOLDER_ID,
        ~alive(accounts.c.poller, LEASE_SECONDS),
    ),
    alive(HOLDER_ID, LEASE_SECONDS),
).values(poller=HOLDER_ID)
_LEAVE_POLLING = sa.update(accounts).where(accounts.c.poller == HOLDER_ID).values(poller=None)


def take_polling(tx: Tx, account: int, holder: int, lease_seconds: float) -> bool:
    """Become (or stay) the one process that polls for this account. False: another one does."""
    tx.execute(_LOCK, {"account_id": account})
    values = {"account_id": account, "holder_id": holder, "lease_seconds": lease_seconds}
    return tx.execute(_TAKE_POLLING, values).rowcount == 1


def leave_all_polling(tx: Tx, holder: int) -> None:
    """Let another process poll at once."""
    tx.execute(_LEAVE_POLLING, {"holder_id": holder})


_MOVE_MARK = _THIS.where(
    sa.or_(accounts.c.catchup_mark.is_(None), accounts.c.catchup_mark < MOMENT)
).values(catchup_mark=MOMENT)
_BEGIN_MARK = _THIS.values(
    catchup_mark=sa.func.coalesce(accounts.c.catchup_mark, MOMENT)
).returning(accounts.c.catchup_mark)


def move_mark(tx: Tx, account: int, mark: float) -> None:
    """Everything up to `mark` (epoch seconds) is recorded: only after a complete listing."""
    tx.execute(_MOVE_MARK, {"account_id": account, "moment": mark})


def begin_mark(tx: Tx, account: int) -> float:
    """The place where the account's next listing begins, in epoch seconds. The first one begins
    now, in whole seconds as platforms tell them: what was written before is nobody's to answer."""
    begins = {"account_id": account, "moment": floor(clock.read(tx))}
    return float(tx.scalars(_BEGIN_MARK, begins).one())
