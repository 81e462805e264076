"""Two chats become one: everything of the younger moves to the older. Both are locked.

The younger chat's row stays and says into which it went; whoever looks for it there is led on
(`chats.lock`). Two runs that are being worked on at this moment both finish: the younger chat's
stays where it is until it ends, counted as a head of the older chat (`runs.moves_to`), which
promotes nobody before.
"""

from __future__ import annotations

from sqlalchemy import bindparam, case, func, select, update

from bot.domain.run import RunState
from storage import chats as chat_rows
from storage.engine.literals import is_in, word
from storage.engine.tx import Tx
from storage.runs.moves import HEADS
from storage.schema.tables import chat_addresses, chats, events, inbound, outbox, reminders, runs


def move_all(tx: Tx, gone: int, kept: int) -> None:
    """Move addresses, messages, parts, events, reminders, and every run but a second running
    one. Of two heads that nobody works on, or one that somebody does, one steps back."""
    straggler = _one_head(tx, gone, kept)
    for table in (inbound, outbox, events, reminders, chat_addresses):
        tx.execute(update(table).where(table.c.chat == gone).values(chat=kept))
    moving = update(runs).where(runs.c.chat == gone)
    if straggler is not None:
        moving = moving.where(runs.c.id != straggler)
        tx.execute(update(runs).where(runs.c.id == straggler).values(moves_to=kept))
    tx.execute(moving.values(chat=kept))
    _carry_over(tx, gone, kept)
    chat_rows.settle_pause(tx, kept)


_HEADS = (
    select(runs.c.id, runs.c.chat, runs.c.state)
    .where(
        runs.c.chat.in_([bindparam("gone"), bindparam("kept")]),
        is_in(runs.c.state, *HEADS),
    )
    .order_by(runs.c.id)
    .with_for_update(key_share=True)
)
_STEP_BACK = (
    update(runs)
    .where(runs.c.id == bindparam("of"), is_in(runs.c.state, RunState.READY))
    .values(state=word(RunState.WAITING))
)


def _one_head(tx: Tx, gone: int, kept: int) -> int | None:
    """Leave one head that may move; returns the younger chat's run if both are running."""
    heads = {row.chat: row for row in tx.execute(_HEADS, {"gone": gone, "kept": kept})}
    if len(heads) < 2:
        return None
    second, first = heads[gone], heads[kept]
    if second.state == RunState.READY:
        tx.execute(_STEP_BACK, {"of": second.id})
    elif first.state == RunState.READY:
        tx.execute(_STEP_BACK, {"of": first.id})
    else:
        return int(second.id)
    return None


def _carry_over(tx: Tx, gone: int, kept: int) -> None:
    """What was known of the person under the younger chat holds for the older one."""
    of = select(chats).where(chats.c.id == gone).subquery()

    def theirs(name: str):  # type: ignore[no-untyped-def]
        return select(of.c[name]).scalar_subquery()

    def later(name: str):  # type: ignore[no-untyped-def]
        mine, other = chats.c[name], theirs(name)
        return case((mine.is_(None), other), (mine < other, other), else_=mine)

    tx.execute(
        update(chats)
        .where(chats.c.id == kept)
        .values(
            last_inbound_at=later("last_inbound_at"),
            not_before=later("not_before"),
            paused_until=later("paused_until"),
            stop_revision=later("stop_revision"),
            opted_out_at=func.coalesce(chats.c.opted_out_at, theirs("opted_out_at")),
        )
    )
    # The address is the older chat's to take.
    tx.execute(
        update(chats).where(chats.c.id == gone).values(address=f"merged:{gone}", merged_into=kept)
    )
    tx.execute(update(chats).where(chats.c.merged_into == gone).values(merged_into=kept))
    tx.execute(update(runs).where(runs.c.moves_to == gone).values(moves_to=kept))
