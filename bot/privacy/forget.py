"""Forgetting a chat: every word of it goes, a page at a time; what happened stays."""

from __future__ import annotations

import logging

from bot.domain.errors import DatabaseUnavailable
from bot.leases.runtime import Runtime
from storage import erasure
from storage.engine.database import Database
from storage.retention import compacted, compaction_owed
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


async def settle_compaction(db: Database) -> bool:
    """Take what was deleted of those who were forgotten since the last time out of the unused space
    of a file of SQLite, too: of all at once, since nobody can write meanwhile. False: the file is
    large, or others were in the way, so that this waits. Raises DatabaseUnavailable."""
    since = await db.read(compaction_owed)
    if since is None:
        return True
    if db.is_sqlite and not await _compacted(db):
        _log.warning(
            "deleted words are in unused space of the database until `answerback db compact`"
        )
        return False
    await db.write(compacted, since)
    return True


async def _compacted(db: Database) -> bool:
    try:
        return await db.size() <= COMPACTED_AT_ONCE and await db.compact()
    except DatabaseUnavailable as error:
        _log.info("the file of the database was not written anew: %s", error)
        return False
