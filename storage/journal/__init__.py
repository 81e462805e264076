"""The journal: the numbered events of a chat, for clients that follow it.

An event is appended under the lock of its chat's row, so the numbers of a chat have no gap and
come in the order of the commits. Parts are written as they are sent. What becomes of messages is
projected: `project` compares their rows with what was shown of them, whoever moved them.
"""

from bot.lazy_imports import handed_on

with handed_on(__name__):
    from storage.journal.events import (
        Part,
        after,
        append,
        before,
        exists,
        head,
        heads,
        leave_gap,
        merge,
        part_of,
        prune,
        see,
        unread,
    )
    from storage.journal.shown import lacking, open_turns, project
