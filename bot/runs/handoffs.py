"""Handoffs that no person has taken up: the chat is told so, once."""

from __future__ import annotations

from bot.delivery import notices
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import chats
from storage.notify import READY
from storage.outbox import Notice
from storage.statements.tx import Tx
from storage.views import handoffs


async def tell_forsaken(rt: Runtime) -> int:
    """Say in each chat where it is due that nobody could answer yet. Returns the number of chats.
    May be called by any process at any time. Raises DatabaseUnavailable."""
    patience = rt.terms.work.handoff_patience
    if not patience:
        return 0
    found = await rt.db.read(handoffs.forsaken, rt.mine, patience)
    told = [await rt.db.write(_tell, rt, chat, patience) for chat in found]
    if any(told):
        rt.wakeups.tell(READY)
    return sum(told)


def _tell(tx: Tx, rt: Runtime, number: int, patience: float) -> bool:
    """False: another process was first, or somebody came."""
    chat = chats.lock(tx, number)
    run = handoffs.forsaken_by(tx, chat.id, patience)
    if run is None:
        return False
    said = notices.plain(rt, chat, Text.NOBODY_YET)
    return notices.say(tx, rt, chat, said, run=run, notice=Notice.NOBODY_YET) is not None
