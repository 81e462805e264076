"""The context of log lines and spans: run, chat, request, account, holder.

The fields travel in one context variable. A task binds them once at its edge, and every line
that is written underneath carries them, whoever writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Fact = str | int | float | bool
"""The value of a field: a name or a number of ours, never a person's words or address."""

_facts: ContextVar[Mapping[str, Fact]] = ContextVar("facts", default=MappingProxyType({}))
_holder: ContextVar[Callable[[], str] | None] = ContextVar("holder", default=None)


def chat_tag(account: str, chat: int) -> str:
    """A chat's short name in logs and traces, the same in every process and after a restart.

    It is a hash of the chat's row, keyed with the account's own name at its platform: it has
    nothing of the person's address in it, so that not even trying every phone number finds
    whose it is; and chats of two installations do not share it by having the same row.
    """
    key = hashlib.sha256(account.encode()).digest()
    return "c" + hashlib.blake2s(str(chat).encode(), key=key, digest_size=5).hexdigest()


def bind(**facts: Fact | None) -> None:
    """Add fields to every line of this task from here on. None adds nothing."""
    _facts.set(_and(facts))


@contextmanager
def about(**facts: Fact | None) -> Iterator[None]:
    """Add fields to every line that is written in the body. None adds nothing."""
    before = _facts.set(_and(facts))
    try:
        yield
    finally:
        _facts.reset(before)


def fields() -> Mapping[str, Fact]:
    """The fields of a line that is written here."""
    return _facts.get()


def held_by(name: Callable[[], str]) -> None:
    """Say whose lines these are, in this task and those that it starts: the holder's name,
    asked for each line, since a process can get another."""
    _holder.set(name)


def holder() -> str:
    """The name of the holder that this task belongs to; empty where there is none."""
    name = _holder.get()
    return "" if name is None else name()


def _and(facts: dict[str, Fact | None]) -> Mapping[str, Fact]:
    return {**fields(), **{key: value for key, value in facts.items() if value is not None}}
