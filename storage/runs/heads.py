"""The head of a chat, its one run that is ready or running: promotion, pauses, merges.

Every move here expects the chat's row to be locked (`chats.lock`), so that no waiting run is
forgotten between two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from bot.domain.run import Run, RunState
from storage import holders as holder_rows
from storage.runs.claims import CLAIMED, Claimant
from storage.runs.rows import HEADS, IS_RUN, LIVE, OPEN, PAUSED, READY, RUN, WAITING, of_chat
from storage.schema.tables import chats, runs
from storage.statements.binds import AT_MOST, CHAT_ID, GONE, HOLDER_ID, KEPT, LEASE_SECONDS
from storage.statements.clock import now
from storage.statements.literals import is_in, word
from storage.statements.sets import among, within
from storage.statements.tx import Tx

_head = runs.alias("head")


def _has_head(chat: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """The condition that this chat has a head, which may still stand in a chat that was merged into
    it."""
    here, elsewhere = (
        sa.exists(sa.select(1).where(column == chat, is_in(_head.c.state, *HEADS)))
        for column in (_head.c.chat, _head.c.moves_to)
    )
    return sa.or_(here, elsewhere)


_of, _survivor = chats.alias("of"), chats.alias("survivor")
_SURVIVOR = sa.func.coalesce(_of.c.merged_into, _of.c.id)
_first = (
    sa.select(runs.c.id)
    .where(runs.c.chat == _survivor.c.id, WAITING)
    .order_by(runs.c.order_at, runs.c.id)
    .limit(1)
    .correlate(_survivor)
    .scalar_subquery()
)
_FIRST_WAITERS = (
    sa.select(_first)
    .select_from(_of.join(_survivor, _survivor.c.id == _SURVIVOR))
    .where(
        among(_of.c.id, "chat_ids"),
        sa.or_(_survivor.c.paused_until.is_(None), _survivor.c.paused_until <= now),
        ~_has_head(_survivor.c.id),
    )
)
_goes_on = sa.and_(
    among(runs.c.chat, "going_on"),
    runs.c.not_before <= now,
    runs.c.set_aside.is_(None),
    runs.c.quarantined == sa.false(),
    holder_rows.alive(HOLDER_ID, LEASE_SECONDS),
)
_PROMOTED = {
    "state": word(RunState.READY),
    "not_before": sa.case((runs.c.not_before < now, now), else_=runs.c.not_before),
    "idle_since": sa.case((runs.c.attempts == 0, now), else_=runs.c.idle_since),
}
_PROMOTE = (
    sa.update(runs)
    .where(within(runs.c.id, _FIRST_WAITERS), WAITING)
    .values(
        _PROMOTED
        | {
            name: sa.case((_goes_on, value), else_=_PROMOTED.get(name, runs.c[name]))
            for name, value in CLAIMED.items()
        }
    )
    .returning(*RUN.columns)
)
_NOBODY = Claimant(0, 0.0, 0.0)


def promote(tx: Tx, chat: int) -> int | None:
    """waiting -> ready, for the first waiting run of a chat without a head. Returns it, if any.

    Nothing moves in a paused chat, so `chats.resume` is followed by this. If the run was worked on
    before, its deadline is later moved by the time until it is claimed.
    """
    return next((run.id for run in promote_each(tx, [chat]).values()), None)


def promote_each(
    tx: Tx, of: Sequence[int], going_on: Collection[int] = (), by: Claimant = _NOBODY
) -> Mapping[int, Run]:
    """As `promote`, for several chats; returns the runs that moved, by their chats.

    In the chats that are `going_on`: waiting -> running, claimed by `by`, provided that a claim
    could take the run at once: it is due and no suspect, and the holder is alive.
    """
    if not of:
        return {}
    values = by.values | {"chat_ids": list(of), "going_on": list(going_on)}
    return {run.chat: run for run in RUN.all(tx.execute(_PROMOTE, values))}


_STEP_BACK = (
    sa.update(runs).where(runs.c.chat == CHAT_ID, READY).values(state=word(RunState.WAITING))
)
_STEP_BACK_IF_PAUSED = _STEP_BACK.where(PAUSED)
_STEP_BACK_ONE = sa.update(runs).where(IS_RUN, READY).values(state=word(RunState.WAITING))


def step_back(tx: Tx, chat: int) -> None:
    """ready -> waiting, for the head of a chat that is being paused. A running head goes on."""
    tx.execute(_STEP_BACK, {"chat_id": chat})


_HEADS_OF_BOTH = (
    sa.select(runs.c.id, runs.c.chat, runs.c.state)
    .where(
        sa.or_(runs.c.chat.in_([GONE, KEPT]), runs.c.moves_to.in_([GONE, KEPT])),
        is_in(runs.c.state, *HEADS),
    )
    .order_by(runs.c.chat.desc(), runs.c.id)
    .with_for_update(key_share=True)
)
_STAYS = sa.update(runs).where(IS_RUN).values(moves_to=KEPT)
_MOVE = sa.update(runs).where(of_chat(GONE), runs.c.moves_to.is_(None)).values(chat=KEPT)
_LEAD_ON = sa.update(runs).where(runs.c.moves_to == GONE).values(moves_to=KEPT)


def merge(tx: Tx, gone: int, kept: int) -> None:
    """Move every run of the chat `gone` to `kept`. Both are locked, and the chats' own rows are
    merged already.

    If both have a head, ready ones step back (ready -> waiting) until one head is left. If both are
    running, that of `gone` stays where it is until it ends, and counts as a head of `kept`
    (`moves_to`), in which nothing is promoted before.
    """
    both = {"gone": gone, "kept": kept}
    heads = tx.execute(_HEADS_OF_BOTH, both).all()
    ready = [head for head in heads if head.state == RunState.READY]
    running = [head for head in heads if head.state == RunState.RUNNING]
    for head in ready if running else ready[:-1]:
        tx.execute(_STEP_BACK_ONE, {"run_id": head.id})
    if {gone, kept} <= {head.chat for head in running}:
        stays = next(head for head in running if head.chat == gone)
        tx.execute(_STAYS, {"run_id": stays.id, "kept": kept})
    tx.execute(_LEAD_ON, both)
    tx.execute(_MOVE, both)
    tx.execute(_STEP_BACK_IF_PAUSED, {"chat_id": kept})


_live = sa.union_all(
    *(
        sa.select(*RUN.columns, runs.c.order_at).where(here)
        for here in (
            *(sa.and_(runs.c.chat == CHAT_ID, share) for share in OPEN),
            sa.and_(runs.c.moves_to == CHAT_ID, LIVE),
        )
    )
).subquery()
_LIVE_IN_CHAT = sa.select(_live).order_by(
    sa.case((is_in(_live.c.state, RunState.WAITING), 1), else_=0), _live.c.order_at, _live.c.id
)


def live_in_chat(tx: Tx, chat: int) -> Sequence[Run]:
    """The chat's runs that have not ended: the head first, then the waiting ones in their order.
    Includes a running one that still stands in a chat that was merged into this one."""
    return RUN.all(tx.execute(_LIVE_IN_CHAT, {"chat_id": chat}))


def _next_waiting(behind: sa.ColumnElement[int]) -> sa.ScalarSelect[int]:
    """The next chat that has waiting runs: one step in the index, however many wait there."""
    return (
        sa.select(runs.c.chat)
        .where(WAITING, runs.c.chat > behind)
        .order_by(runs.c.chat)
        .limit(sa.literal_column("1"))
        .scalar_subquery()
    )


_steps = sa.select(
    _next_waiting(sa.bindparam("after", type_=sa.BigInteger)).label("chat"),
    sa.literal_column("1", sa.Integer).label("number"),
).cte("steps", recursive=True)
_steps = _steps.union_all(
    sa.select(_next_waiting(_steps.c.chat), _steps.c.number + 1).where(
        _steps.c.chat.is_not(None), _steps.c.number < AT_MOST
    )
)
_page = sa.select(_steps.c.chat).where(_steps.c.chat.is_not(None)).subquery("page")
_PAGE_ENDS = sa.select(sa.func.max(_page.c.chat))
_STRANDED = (
    sa.select(_page.c.chat)
    .join(chats, chats.c.id == _page.c.chat)
    .where(
        sa.or_(chats.c.paused_until.is_(None), chats.c.paused_until <= now),
        ~_has_head(_page.c.chat),
    )
)


def stranded_chats(tx: Tx, limit: int, after: int = 0) -> Sequence[int]:
    """Of the next `limit` chats that have waiting runs, those that have no head and are not paused:
    as a crash between two moves could leave them."""
    return tx.scalars(_STRANDED, {"at_most": limit, "after": after}).all()


def waiting_until(tx: Tx, limit: int, after: int) -> int | None:
    """The last of the next `limit` chats that have waiting runs; None if there are no more."""
    until: int | None = tx.scalar(_PAGE_ENDS, {"at_most": limit, "after": after})
    return until
