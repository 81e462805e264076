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
    names_in,
    of_run,
    of_runs,
    reassign,
    recent_messages,
    recorded,
    store_message,
    store_reminder,
    use_edit,
    words,
)
from storage.inbox.payloads import (
    blank,
    blank_naming,
    blank_of_runs,
    dismiss_dead_letter,
    drop_old_payloads,
    page,
    store_payload,
)
