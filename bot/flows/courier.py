"""Loose messages: notices, operators' words, answers that are sent once more on request.

Each is claimed by itself, in its chat's order, behind whatever of that chat is on its way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.delivery import Lookup, Outcome, Refused, Scope
from bot.domain.message import Address
from bot.domain.ports import SendRef
from bot.domain.verdict import WINDOW_CLOSED
from bot.flows.desk import Desk
from bot.flows.notices import to_chat
from bot.flows.runtime import Runtime
from bot.flows.sends import record_alone
from storage import chats, clock, outbox
from storage.chats import Chat
from storage.outbox import Attempt, Part
from storage.tx import Tx
from storage.wakeup import READY

_AT_ONCE = 20


async def carry(desk: Desk) -> int:
    """Send the loose parts that are due now, one after the other; returns how many left.

    The caller runs one of these at a time. Raises DatabaseUnavailable, StaleLease.
    """
    rt = desk.rt
    carried = 0
    for due in await rt.db.read(outbox.due_loose, rt.mine, _AT_ONCE):
        chat = await rt.db.read(chats.get, due.chat)
        to = to_chat(chat)
        slot = desk.pacers[due.account].reserve(to)
        if slot.wait > 0:
            continue
        begun = await rt.db.write(_begin, rt, due, desk.lease.holder(), desk.lease.terms.seconds)
        if begun is None:
            slot.refund()
            continue
        part, address = begun
        to = replace(to, address=address)
        async with desk.sends.call(rt.channels[part.account], to, part) as outcome:
            await desk.persist(
                record_alone,
                rt,
                part,
                Attempt(part.id, part.attempts),
                outcome,
                rt.clock.jitter(),
            )
        carried += 1
    if carried:
        rt.wakeups.tell(READY)
    return carried


def _begin(
    tx: Tx, rt: Runtime, due: Part, holder: int, lease_seconds: float
) -> tuple[Part, Address] | None:
    """Claim the part if its chat still takes it; (part, address) or None."""
    chat = chats.lock(tx, due.chat)
    now = clock.read(tx)
    part = outbox.claim_loose(tx, due.id, holder, lease_seconds)
    if part is None:
        return None
    refusal = _forbidden(rt, chat, part, now)
    if refusal is not None:
        outbox.refuse(
            tx, Attempt(part.id, part.attempts), refusal.scope, refusal.reason, refusal.code
        )
        return None
    return part, chat.address


def _forbidden(rt: Runtime, chat: Chat, part: Part, now: float) -> Refused | None:
    """Why this message may not leave now, if it may not."""
    if chat.unreachable_reason:
        return Refused(Scope.CHAT, chat.unreachable_reason)
    if rt.window_closed(chat.account, chat.last_inbound_at, now):
        return Refused(Scope.WINDOW, WINDOW_CLOSED)
    if now - part.created_at > rt.terms.delivery.answer_max_age:
        return Refused(Scope.PAYLOAD, "too old to be worth sending")
    return None


@dataclass(frozen=True, slots=True)
class _Doubtful:
    part: Part
    chat: Chat
    owned: frozenset[str]
    now: float


async def look_again(desk: Desk) -> None:
    """Ask the provider about loose parts that may have arrived, where it can tell."""
    rt = desk.rt
    tells = [a for a in rt.mine if rt.channels[a].traits.looks]
    if not tells:
        return
    for doubtful in await rt.db.read(_doubtful, tells):
        await _look(desk, doubtful)


def _doubtful(tx: Tx, mine: list[int]) -> list[_Doubtful]:
    now = clock.read(tx)
    return [
        _Doubtful(p, chats.get(tx, p.chat), outbox.owned_receipts(tx, p.chat, p.id), now)
        for p in outbox.doubtful_loose(tx, mine, _AT_ONCE)
    ]


async def _look(desk: Desk, doubtful: _Doubtful) -> None:
    rt, part = desk.rt, doubtful.part
    looks = rt.channels[part.account].traits.looks
    if part.looks >= len(looks) or doubtful.now < part.started_at + looks[part.looks]:
        return
    ref = SendRef(part.id, part.attempts, part.started_at)
    found = await rt.channels[part.account].look_up(
        to_chat(doubtful.chat), part.body, ref, doubtful.owned
    )
    if found is not Lookup.CANNOT_TELL:
        await rt.db.write(_after_look, rt, part, found, len(looks), rt.clock.jitter())


def _after_look(
    tx: Tx, rt: Runtime, part: Part, found: Outcome | Lookup, looks: int, jitter: float
) -> None:
    record_alone(tx, rt, part, Attempt(part.id, part.attempts), found, jitter)
    if found is Lookup.NOT_FOUND and part.looks + 1 >= looks and part.resends < 1:
        outbox.resend(tx, part.id, part.attempts, loose=True)
