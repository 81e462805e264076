"""Forgetting a chat: every word of it goes, a page at a time; what happened stays."""

from __future__ import annotations

import logging

from bot.domain.errors import DatabaseUnavailable
from bot.leases.runtime import Runtime
from storage import erasure
from storage.engine.database import Database
from storage.statements.chat_rows import START, Mark
from storage.views.chats import LastIds

COMPACTED_AT_ONCE = 64_000_000
"""Bytes of a file that is written anew at once: within the second or two that a writer waits."""

_log = logging.getLogger("answerback.privacy")


async def erase(rt: Runtime, chat: int, until: LastIds) -> None:
    """Delete what was said in a chat up to these ids. `storage.erasure.finish` is still to follow.
    What was deleted before a death, or before DatabaseUnavailable, stays deleted."""
    for step in erasure.steps_of(until):
        after: Mark | None = START
        while after is not None:
            after = await rt.db.write(step, chat, after)


async def clean_up(db: Database) -> bool:
    """Take what was deleted out of the unused space of a file of SQLite, too. False: it is large,
    or others were in the way, so that this waits for `answerback db compact`."""
    if not db.is_sqlite:
        return True
    try:
        if await db.size() <= COMPACTED_AT_ONCE and await db.compact():
            return True
    except DatabaseUnavailable as error:
        _log.info("the file of the database was not written anew: %s", error)
    _log.warning("deleted words are in unused space of the database until `answerback db compact`")
    return False
