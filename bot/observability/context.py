"""The context of log lines and spans: run, chat, request, account, holder.

The fields are kept in one context variable. A task binds them once, at its beginning, and every
line that is logged within it has them, no matter by which code.
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

    It is a hash of the number of the chat's row, keyed with the account's own name at its platform.
    The person's address is no part of it, so nobody can find the person by trying every phone
    number. The key keeps chats of two installations apart whose rows have the same number.
    """
    key = hashlib.sha256(account.encode()).digest()
    return "c" + hashlib.blake2s(str(chat).encode(), key=key, digest_size=5).hexdigest()


def bind(**facts: Fact | None) -> None:
    """Add fields to every later line of this task. A field that is None is not added."""
    _facts.set(_and(facts))


@contextmanager
def about(**facts: Fact | None) -> Iterator[None]:
    """Add fields to every line that is logged in the body. A field that is None is not added."""
    before = _facts.set(_and(facts))
    try:
        yield
    finally:
        _facts.reset(before)


def fields() -> Mapping[str, Fact]:
    """The fields that a line logged here has."""
    return _facts.get()


def held_by(name: Callable[[], str]) -> None:
    """Name the holder in the lines of this task and of those that it starts. `name` is called for
    each line, since a process can get another holder."""
    _holder.set(name)


def holder() -> str:
    """The name of the holder to which this task belongs; empty if there is none."""
    name = _holder.get()
    return "" if name is None else name()


def _and(facts: dict[str, Fact | None]) -> Mapping[str, Fact]:
    return {**fields(), **{key: value for key, value in facts.items() if value is not None}}
