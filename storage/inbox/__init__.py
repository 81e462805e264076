"""The inbox: messages, their raw payloads and their edits."""

from storage.inbox.edits import store_edit
from storage.inbox.messages import (
    StoredMessage,
    adopt_album,
    album_began,
    assign,
    count_delivery,
    enrich,
    fill_sent_times,
    ignore,
    known,
    listed_only,
    merge,
    of_run,
    of_runs,
    reassign,
    recent_messages,
    recorded,
    store_message,
    store_reminder,
    use_edit,
)
from storage.inbox.payloads import dismiss_dead_letter, forget, store_payload
