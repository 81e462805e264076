"""Chats: the people and groups at an address, with all that holds for the whole conversation."""

from bot.lazy_imports import handed_on

with handed_on(__name__):
    from storage.chats.merge import link, lock_both, migrate
    from storage.chats.moves import (
        answered,
        follow_clock,
        forget,
        hand_over,
        heard,
        hold_back,
        offer,
        opt_out,
        park,
        pause,
        resume,
        tell_once,
        unpark,
    )
    from storage.chats.requests import DataRequest
    from storage.chats.rows import (
        CHAT,
        Chat,
        NewChat,
        addresses,
        addresses_each,
        at_address,
        create,
        get,
        know_address,
        leave_address,
        locate,
        locate_each,
        lock,
        lock_at,
        lock_each,
        lock_free,
        lock_with_next,
        merged_of,
        names,
    )
