"""The context of log lines and spans: run, chat, request, account, holder.

The fields travel in context variables. A task binds them once at its edge, and every line
that is written underneath carries them, whoever writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from structlog.contextvars import bind_contextvars, bound_contextvars

Fact = str | int | float | bool
"""The value of a field: a name or a number of ours, never a person's words or address."""

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
    bind_contextvars(**_known(facts))


@contextmanager
def about(**facts: Fact | None) -> Iterator[None]:
    """Add fields to every line that is written in the body. None adds nothing."""
    with bound_contextvars(**_known(facts)):
        yield


def held_by(name: Callable[[], str]) -> None:
    """Say whose lines these are, in this task and those that it starts: the holder's name,
    asked for each line, since a process can get another."""
    _holder.set(name)


def holder() -> str:
    """The name of the holder that this task belongs to; empty where there is none."""
    name = _holder.get()
    return "" if name is None else name()


def _known(facts: dict[str, Fact | None]) -> dict[str, Fact]:
    return {key: value for key, value in facts.items() if value is not None}
