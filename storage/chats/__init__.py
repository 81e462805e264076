"""Chats: who is at an address, and what holds for the whole conversation."""

from storage.chats.merge import link as link, migrate as migrate
from storage.chats.moves import (
    forget as forget,
    heard as heard,
    hold_back as hold_back,
    offer as offer,
    opt_out as opt_out,
    park as park,
    pause as pause,
    raise_stop as raise_stop,
    resume as resume,
    tell_once as tell_once,
    unpark as unpark,
)
from storage.chats.rows import (
    Chat as Chat,
    addresses as addresses,
    at_address as at_address,
    create as create,
    get as get,
    know_address as know_address,
    locate as locate,
    lock as lock,
)
