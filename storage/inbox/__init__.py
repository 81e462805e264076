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
    known_each,
    last_of_bundle,
    merge,
    names_in,
    of_run,
    of_runs,
    reassign,
    recorded,
    store_messages,
    store_reminder,
    tells_more,
    use_edit,
    words,
)
from storage.inbox.payloads import (
    NewPayload,
    blank,
    blank_naming,
    blank_of_runs,
    dismiss_dead_letter,
    drop_old_payloads,
    page,
    store_payloads,
)
