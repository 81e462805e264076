"""Recording ordinary messages together: a few statements for all that came.

Ordinary is a message of words or files in a chat that nobody else has locked, which makes a run,
joins one, is passed over in silence, or is known already. Whatever takes more (commands, buttons,
albums, edits, refusals that are told) is left to `record.py`, before anything of it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.delivery.choices import chosen
from bot.domain.admission import Unanswered, admit, joins_until, wait_for_more
from bot.domain.commands import command_of
from bot.domain.message import Address, Ignored, Inbound
from bot.domain.run import Run, RunState
from bot.intake.batching import run_for
from bot.intake.record import (
    REFUSALS,
    Arrival,
    Became,
    Entry,
    Recorded,
    addresses_of,
    heard,
    new_chat,
    store,
)
from bot.leases.runtime import Runtime
from storage import chats, inbox, runs
from storage.chats import Chat
from storage.engine.lane import Left
from storage.engine.tx import Tx
from storage.inbox import NewMessage, StoredMessage
from storage.runs import Claimant, NewRun
from storage.views.arrivals import Standing, Taker, standing
from storage.views.evidence import case_of


@dataclass(frozen=True, slots=True)
class _Join:
    """The message joins a run, which then waits for more: `wait` seconds again, at most to
    `until` (epoch seconds)."""

    run: Taker
    wait: float
    until: float


_Decision = Left | Became | Unanswered | _Join | NewRun
"""What becomes of a message; `Became.DUPLICATE` when it is known."""


@dataclass(slots=True, eq=False)
class _Said:
    """A message of the list on its way. `addresses` are where its sender is reached."""

    place: int
    arrival: Arrival
    message: Inbound
    by: Claimant | None
    addresses: Sequence[Address]

    def met_in(self, chat: Chat, met: Standing, becomes: _Decision) -> _Met:
        return _Met(self, chat, met, becomes)


@dataclass(slots=True, eq=False)
class _Met:
    """A message in its chat, which is locked, with what it meets there and what becomes of it."""

    said: _Said
    chat: Chat
    met: Standing
    becomes: _Decision
    run: Run | None = None
    stored: StoredMessage | None = None
