"""Delivery of standalone parts: notices, operators' words, answers sent once more on request.

Such a part goes through the same states as a part of a run, but is claimed by itself. The parts of
a chat leave in their order, and each waits while another part of the chat is being sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from bot.delivery.advance import Look, Result, Send, patience_ends
from bot.delivery.clearance import clearance
from bot.delivery.context import WorkerContext
from bot.delivery.deliver import look_up
from bot.delivery.notices import to_chat
from bot.delivery.outcome import alarm, reconsider, record_alone
from bot.domain.delivery import Hold, Lookup, PartState
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.reply import PartKind
from bot.leases.runtime import Runtime
from bot.supervisor import Supervisor
from storage import audit_log, chats, outbox
from storage.chats import Chat
from storage.notify import READY
from storage.outbox import Attempt, Part
from storage.statements import clock
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.standalone")
_AT_ONCE = 20
"""Parts that one pass begins or looks up, besides those that are under way already."""
_AT_MOST = 200
"""Due parts that one pass reads, at most."""


class StandaloneSender:
    """Sends the standalone parts that are due, each in a task of its own, so that a slow chat does
    not hold up the others."""

    def __init__(self, ctx: WorkerContext) -> None:
        self._ctx = ctx
        self._begun: set[int] = set()

    async def send_due(self, tasks: Supervisor) -> None:
        """Begin to send what is due now. Must not be called twice at the same time. Raises
        DatabaseUnavailable."""
        rt = self._ctx.rt
        at_most = min(_AT_ONCE + len(self._begun), _AT_MOST)
        for part, chat in await rt.db.read(_due, rt.mine, at_most):
            if part.id not in self._begun:
                self._begun.add(part.id)
                tasks.once(f"standalone-{part.id}", self._send(part, chat))

    async def _send(self, due: Part, chat: Chat) -> None:
        try:
            await self._deliver(due, chat)
        except (DatabaseUnavailable, StaleLease) as error:
            _log.info("part %d goes on later: %s", due.id, error)
        except Exception:  # noqa: BLE001 - the task's edge: other chats' messages must go on
            _log.exception("part %d broke its delivery", due.id)
        finally:
            self._begun.discard(due.id)

    async def _deliver(self, due: Part, chat: Chat) -> None:
        ctx, rt, to = self._ctx, self._ctx.rt, to_chat(chat)
        limiter = ctx.limiters[due.account]
        permit = await limiter.permit(to, rt.retry.short_wait, returned=True)
        if not permit.taken:
            await rt.db.write(outbox.put_off, due.id, permit.wait)
            return
        begun: Send | None = None
        try:
            if not ctx.lease.draining:
                holder = ctx.lease.holder()
                begun = await rt.db.write(_begin, rt, due, holder, ctx.lease.terms.seconds)
        finally:
            if begun is None:
                permit.refund()
        if begun is None:
            return
        part, to = begun.part, replace(to, address=begun.address)
        async with ctx.sends.call(rt.channels[part.account], to, part) as outcome:
            doubled = await ctx.persist(record_alone, rt, part, outcome)
            alarm(rt, part.id, doubled=doubled)
        rt.wakeups.tell(READY)

    async def look_again(self) -> None:
        """Ask the provider about uncertain standalone parts, where it can tell.

        Raises DatabaseUnavailable.
        """
        rt = self._ctx.rt
        for account in rt.mine:
            looks = rt.channels[account].traits.looks
            if looks:
                for look, chat in await rt.db.read(_doubtful, account, looks):
                    result = await look_up(rt, look, to_chat(chat))
                    doubled = await rt.db.write(_after_look, rt, look.part, result, len(looks))
                    alarm(rt, look.part.id, doubled=doubled)
                    rt.wakeups.tell(READY)


def _due(tx: Tx, mine: Sequence[int], at_most: int) -> list[tuple[Part, Chat]]:
    return [(p, chats.get(tx, p.chat)) for p in outbox.due(tx, mine, at_most)]


def _begin(tx: Tx, rt: Runtime, due: Part, holder: int, lease_seconds: float) -> Send | None:
    """Claim the part if it may leave now; record it as refused if it never may."""
    chat = chats.lock(tx, due.chat)
    part, now = outbox.get(tx, due.id), clock.read(tx)
    if part is None or part.state is not PartState.PENDING or part.not_before > now:
        return None
    if _kept_back(tx, part):
        return None
    within = rt.retry.status_wait
    if part.account in rt.carriers and outbox.follows_unreported(tx, part, within):
        return None
    verdict = clearance(tx, rt, chat, part, now)
    if isinstance(verdict, Hold):
        return None
    begun = outbox.claim(tx, part.id, holder, lease_seconds)
    if begun is None or verdict is None:
        return None if begun is None else Send(begun, chat.address)
    attempt = Attempt(begun.id, begun.attempts)
    outbox.refuse(tx, attempt, verdict.scope, verdict.end.words, "")
    reconsider(tx, part.run)
    return None


def _kept_back(tx: Tx, part: Part) -> bool:
    """Make an answer uncertain again, instead of sending it, if it has been overtaken: its run
    ended in doubt, the proof that it had not left came late, and a later answer of the chat has
    gone out by now. Answers keep their order, and the person was offered a way to get this one. An
    answer that somebody asked for again is never kept back. Returns whether this one was."""
    unasked = part.kind is PartKind.REPLY and part.resends == 0
    if not unasked or not outbox.overtaken(tx, part):
        return False
    why = f"it never left ({part.error}), but what belongs behind it did"
    outbox.keep_back(tx, part.id, why)
    audit_log.note(tx, "delivery", "kept back", why, run=part.run, chat=part.chat)
    return True


def _doubtful(tx: Tx, account: int, looks: Sequence[float]) -> list[tuple[Look, Chat]]:
    """The uncertain parts that the provider is to be asked about now."""
    now = clock.read(tx)
    return [
        (Look.read(tx, part), chat)
        for part in outbox.doubtful(tx, account, len(looks), _AT_ONCE)
        if now >= part.started_at + looks[part.looks]
        if not (chat := chats.get(tx, part.chat)).down
    ]


def _after_look(tx: Tx, rt: Runtime, part: Part, result: Result, looks: int) -> bool:
    if result.outcome is Lookup.CANNOT_TELL:
        patience_ends(tx, rt, result.attempt)
        return False
    doubled = record_alone(tx, rt, part, result.outcome)
    last = result.outcome is Lookup.NOT_FOUND and part.looks + 1 >= looks
    if last and part.resends < rt.retry.max_resends:
        outbox.resend(tx, part.id, part.attempts, standalone=True)
    return doubled
