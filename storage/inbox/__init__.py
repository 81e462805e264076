"""The inbox: messages, their raw payloads and their edits."""

from storage.inbox.edits import store_edit
from storage.inbox.messages import (
    NewMessage,
    StoredMessage,
    adopt_album,
    album_began,
    assign,
    count_deliveries,
    enrich,
    fill_sent_times,
    ignore,
    known,
    merge,
    of_run,
    of_runs,
    reassign,
    recorded,
    store_messages,
    store_reminder,
    tells_more,
    use_edit,
)
from storage.inbox.payloads import NewPayload, dismiss_dead_letter, forget, store_payloads
