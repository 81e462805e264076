"""Standalone messages: notices, operators' words, answers that are sent once more on request.

Each is claimed by itself, in its chat's order, behind whatever of that chat is on its way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.delivery import window
from bot.delivery.context import WorkerContext
from bot.delivery.inflight import record_alone
from bot.delivery.notices import to_chat
from bot.delivery.outcome import alarm, reconsider
from bot.domain.delivery import Lookup, Outcome, Refused, Scope, Sent
from bot.domain.ending import Cause
from bot.domain.errors import StaleLease
from bot.domain.message import Address
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import PartKind
from bot.leases.runtime import Runtime
from bot.supervisor import Supervisor
from storage import chats, outbox
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.notify import READY
from storage.outbox import Attempt, Part

_log = logging.getLogger("answerback.courier")
_AT_ONCE = 20


async def carry(ctx: WorkerContext, calls: Supervisor) -> float:
    """Begin to send the standalone parts that are due now, each as a task of `calls`, so that one
    slow chat holds up no other. Returns the seconds after which to look again without a hint.

    The caller runs one of these at a time. Raises DatabaseUnavailable, StaleLease.
    """
    rt = ctx.rt
    again = rt.terms.work.poll
    for due in await rt.db.read(_due, rt.mine):
        to = to_chat(due.chat)
        slot = await ctx.pacers[due.part.account].reserve(to)
        if slot.wait > 0:
            again = min(again, slot.wait)
            continue
        begun: tuple[Part, Address] | None = None
        try:
            by = ctx.lease.holder()
            begun = await rt.db.write(_begin, rt, due.part, by, ctx.lease.terms.seconds)
        finally:
            if begun is None:
                slot.refund()
        if begun is not None:
            part, address = begun
            sending = _send(ctx, part, replace(to, address=address))
            calls.once(f"standalone-{part.id}", sending)
    return again


async def _send(ctx: WorkerContext, part: Part, to: Recipient) -> None:
    rt = ctx.rt
    try:
        async with ctx.sends.call(rt.channels[part.account], to, part) as outcome:
            attempt = Attempt(part.id, part.attempts)
            doubled = await ctx.persist(record_alone, rt, part, attempt, outcome, rt.clock.jitter())
            alarm(rt, part.id, doubled=doubled)
    except StaleLease as error:
        _log.info("part %d: its outcome is written later: %s", part.id, error)
    except Exception:  # noqa: BLE001 - the task's edge: other chats' messages must go on
        _log.exception("part %d broke its delivery", part.id)
    rt.wakeups.tell(READY)


@dataclass(frozen=True, slots=True)
class _Due:
    part: Part
    chat: Chat


def _due(tx: Tx, mine: Sequence[int]) -> list[_Due]:
    return [_Due(p, chats.get(tx, p.chat)) for p in outbox.due(tx, mine, _AT_ONCE)]


def _begin(
    tx: Tx, rt: Runtime, due: Part, holder: int, lease_seconds: float
) -> tuple[Part, Address] | None:
    """Claim the part if its chat still takes it; (part, address) or None."""
    chat = chats.lock(tx, due.chat)
    now = clock.read(tx)
    within = rt.retry.status_wait
    if due.account in rt.carriers and outbox.follows_unreported(tx, due, within):
        return None
    part = outbox.claim(tx, due.id, holder, lease_seconds)
    if part is None:
        return None
    refusal = _forbidden(tx, rt, chat, part, now)
    if refusal is not None:
        outbox.refuse(
            tx, Attempt(part.id, part.attempts), refusal.scope, refusal.reason, refusal.code
        )
        if part.run is not None:
            reconsider(tx, part.run)
        return None
    begun = outbox.get(tx, part.id)
    return None if begun is None else (begun, chat.address)


def _forbidden(tx: Tx, rt: Runtime, chat: Chat, part: Part, now: float) -> Refused | None:
    """Why this message may not leave now, if it may not. Our confirmation of an opt-out is
    the last notice that leaves."""
    if chat.unreachable_reason:
        return Refused(Scope.CHAT, chat.unreachable_reason)
    if chat.silenced is not None and not (part.kind is PartKind.NOTICE and part.run is None):
        return Refused(Scope.CONSENT, chat.silenced.words)
    closed = rt.window_closed(chat.account, chat.last_inbound_at, now)
    if closed and not window.may_leave(tx, rt, part):
        return Refused(Scope.WINDOW, Cause.WINDOW_CLOSED.says)
    if now - part.created_at > rt.terms.policy.answer_max_age:
        return Refused(Scope.PAYLOAD, "too old to be worth sending")
    return None


@dataclass(frozen=True, slots=True)
class _Doubtful:
    part: Part
    chat: Chat
    owned: frozenset[str]
    addresses: Sequence[Address]
    now: float


async def look_again(ctx: WorkerContext) -> None:
    """Ask the provider about standalone parts that may have arrived, where it can tell.

    Raises DatabaseUnavailable.
    """
    rt = ctx.rt
    for account in rt.mine:
        looks = rt.channels[account].traits.looks
        if not looks:
            continue
        for doubtful in await rt.db.read(_doubtful, account, len(looks)):
            await _look(ctx, doubtful, looks)


def _doubtful(tx: Tx, account: int, looks: int) -> list[_Doubtful]:
    now = clock.read(tx)
    return [
        _Doubtful(
            p,
            chats.get(tx, p.chat),
            outbox.owned_receipts(tx, p.chat),
            chats.addresses(tx, p.chat),
            now,
        )
        for p in outbox.doubtful(tx, account, looks, _AT_ONCE)
    ]


async def _look(ctx: WorkerContext, doubtful: _Doubtful, looks: Sequence[float]) -> None:
    rt, part = ctx.rt, doubtful.part
    if doubtful.now < part.started_at + looks[part.looks]:
        return
    found = await _ask_list(rt, doubtful)
    doubled = await rt.db.write(_after_look, rt, part, found, len(looks), rt.clock.jitter())
    alarm(rt, part.id, doubled=doubled)
    rt.wakeups.tell(READY)


async def _ask_list(rt: Runtime, doubtful: _Doubtful) -> Sent | Lookup:
    """Look under every address of the chat: it may have got a newer one since the attempt."""
    part = doubtful.part
    ref = SendRef(part.id, part.attempts, part.started_at)
    found: Sent | Lookup = Lookup.NOT_FOUND
    for address in doubtful.addresses:
        to = replace(to_chat(doubtful.chat), address=address)
        seen = await rt.channels[part.account].look_up(to, part.body, ref, doubtful.owned)
        if isinstance(seen, Sent):
            return seen
        found = seen if seen is Lookup.CANNOT_TELL else found
    return found


def _after_look(
    tx: Tx, rt: Runtime, part: Part, found: Outcome | Lookup, looks: int, jitter: float
) -> bool:
    attempt = Attempt(part.id, part.attempts)
    if found is Lookup.CANNOT_TELL:
        if clock.read(tx) >= part.started_at + rt.retry.look_patience:
            outbox.give_up_looking(tx, part.id, attempt.number)
        return False
    doubled = record_alone(tx, rt, part, attempt, found, jitter)
    last = found is Lookup.NOT_FOUND and part.looks + 1 >= looks
    if last and part.resends < rt.retry.max_resends:
        outbox.resend(tx, part.id, part.attempts, standalone=True)
    return doubled
