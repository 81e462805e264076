"""The inbox: messages, their raw payloads and their edits."""

from bot.lazy_imports import handed_on

with handed_on(__name__):
    from storage.inbox.edits import store_edit
    from storage.inbox.messages import (
        OF_AN_EDIT,
        NewMessage,
        StoredMessage,
        adopt_album,
        album_began,
        arrive,
        assign,
        author_at,
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
        REVOKED,
        NewPayload,
        blank,
        blank_naming,
        blank_of_runs,
        dismiss_dead_letter,
        drop_old_payloads,
        is_kept,
        naming,
        page,
        revoke,
        store_payloads,
    )
