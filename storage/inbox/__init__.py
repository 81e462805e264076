"""The inbox: messages, their raw payloads and their edits."""

from storage.inbox.edits import store_edit as store_edit
from storage.inbox.erasure import forget as forget
from storage.inbox.messages import (
    StoredMessage as StoredMessage,
    adopt_album as adopt_album,
    album_began as album_began,
    assign as assign,
    count_delivery as count_delivery,
    enrich as enrich,
    fill_sent_times as fill_sent_times,
    ignore as ignore,
    known as known,
    listed_only as listed_only,
    merge as merge,
    of_run as of_run,
    reassign as reassign,
    recent_messages as recent_messages,
    recorded as recorded,
    store_message as store_message,
    store_reminder as store_reminder,
    use_edit as use_edit,
)
from storage.inbox.payloads import (
    dismiss_dead_letter as dismiss_dead_letter,
    store_payload as store_payload,
)
