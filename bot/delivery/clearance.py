"""The clearance of a part: it may leave now, later, or not at all, as its chat is now.

The decision itself is `bot.domain.delivery.sendable`. This module asks it, given the rows, and puts
a part into a template where the window is closed.
"""

from __future__ import annotations

from dataclasses import replace

from bot.delivery import window
from bot.domain.delivery import ChatDoor, Forbidden, Hold, Outgoing, Scope, sendable
from bot.domain.reply import PartKind
from bot.leases.runtime import Runtime
from storage.chats import Chat
from storage.outbox import Part
from storage.statements.tx import Tx


def _door(rt: Runtime, chat: Chat, now: float) -> ChatDoor:
    """The state of the chat, as `sendable` wants it."""
    return ChatDoor(
        paused_until=chat.paused_until,
        held_until=chat.not_before,
        unreachable=chat.unreachable_reason or "",
        opted_out=chat.opted_out_at is not None,
        window_open=not rt.window_closed(chat.account, chat.last_inbound_at, now),
        down=chat.down,
    )


def may_begin(rt: Runtime, chat: Chat, now: float) -> bool:
    """Tell whether the chat lets a part of a run's answer leave now."""
    max_age = rt.terms.policy.answer_max_age
    return sendable(Outgoing(standalone=False), _door(rt, chat, now), now, max_age) is None


def clearance(tx: Tx, rt: Runtime, chat: Chat, part: Part, now: float) -> Hold | Forbidden | None:
    """The reason why a pending part may not leave now; None if it may. If only the closed window
    forbids it, the part is put into a template if there is one. The chat is locked."""
    outgoing = Outgoing(
        standalone=part.standalone,
        own_notice=part.kind is PartKind.NOTICE and part.run is None,
        # One that is wanted once more is as young as the wish: its words may be old.
        posted_at=max(part.created_at, part.not_before) if part.resends else part.created_at,
    )
    chat_door, max_age = _door(rt, chat, now), rt.terms.policy.answer_max_age
    verdict = sendable(outgoing, chat_door, now, max_age)
    if isinstance(verdict, Forbidden) and verdict.scope is Scope.WINDOW:
        otherwise = sendable(outgoing, replace(chat_door, window_open=True), now, max_age)
        if otherwise is None and window.put_into_template(tx, rt, part):
            return None
    return verdict
