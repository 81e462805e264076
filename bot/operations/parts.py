"""Acts on single parts of the outbox."""

from __future__ import annotations

from collections.abc import Sequence

from bot.delivery.outcome import reconsider
from bot.domain.delivery import PartState
from bot.leases.runtime import Runtime
from bot.operations.actions import Acted, Operator, Subject
from bot.operations.chats import cannot_write
from storage import audit_log, chats, outbox, runs
from storage.chats import Chat
from storage.notify import READY, part_topic
from storage.outbox import Attempt, Part
from storage.statements import clock
from storage.statements.tx import Tx

_MOVED_ON = "it moved on while you looked"


def resolve(tx: Tx, rt: Runtime, by: Operator, part: int, *, arrived: bool) -> Acted:
    """Resolve an uncertain part on an operator's word. `arrived`: it counts as sent, and a run that
    ended in doubt of it as answered. Else it is sent once more."""
    found = outbox.get(tx, part)
    assert found is not None
    chat = chats.lock(tx, found.chat)
    found = outbox.get(tx, part)
    assert found is not None
    it = Subject(f"part {part}")
    if found.state is not PartState.UNCERTAIN:
        return it.too_late(f"it is {found.state.value}, not uncertain")
    acted = _count_as_sent(tx, by, found, it) if arrived else _send_again(tx, rt, found, chat, it)
    if acted.wake:
        reason = it.name + (f": {by.reason}" if by.reason else "")
        what = f"resolved: {'delivered' if arrived else 'lost'}"
        audit_log.note(tx, by.name, what, reason, run=found.run, chat=found.chat)
    return acted


def _count_as_sent(tx: Tx, by: Operator, part: Part, it: Subject) -> Acted:
    if not outbox.believe_arrived(tx, Attempt(part.id, part.attempts), f"word-of-{by.name}"):
        return it.too_late(_MOVED_ON)
    if part.run is not None:
        reconsider(tx, part.run)
    return it.done("counts as sent", part_topic(part.id), READY)


def _send_again(tx: Tx, rt: Runtime, part: Part, chat: Chat, it: Subject) -> Acted:
    if closed := cannot_write(tx, rt, chat):
        return it.refused(closed)
    if too_old(tx, rt, [part]):
        return it.refused("it is older than ANSWER_MAX_AGE; use `chats reply`")
    run = None if part.run is None else runs.find(tx, part.run)
    ended = run is None or run.ending is not None
    if not outbox.resend(tx, part.id, part.attempts, standalone=ended or part.standalone):
        return it.too_late(_MOVED_ON)
    if run is not None and not ended:
        runs.make_due(tx, run.id)
    return it.done("will be sent once more", part_topic(part.id), READY)


def too_old(tx: Tx, rt: Runtime, parts: Sequence[Part]) -> bool:
    """Tell whether these parts are too old to be sent."""
    eldest = min(part.created_at for part in parts)
    return clock.read(tx) - eldest > rt.terms.policy.answer_max_age
