"""Recording ordinary messages together: a few statements for all that came.

Ordinary is a message of words or files in a chat that nobody else has locked, which makes a run,
joins one, is passed over in silence, or is known already. Whatever takes more (commands, buttons,
albums, edits, refusals that are told) is left to `record.py`, before anything of it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.domain.admission import Unanswered, admit, joins_until, wait_for_more
from bot.domain.commands import command_of
from bot.domain.message import Ignored, Inbound, InboundKind
from bot.domain.run import Run, RunState
from bot.domain.verdict import Evidence
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
from storage.inbox import NewMessage, NewPayload, StoredMessage
from storage.runs import Claimant, NewRun
from storage.views.arrivals import Standing, Taker, standing
from storage.views.evidence import Case


@dataclass(frozen=True, slots=True)
class _Joins:
    """The message joins a run, which then waits for more until `until` (epoch seconds)."""

    run: Taker
    wait: float
    until: float


_Decision = Left | Became | Unanswered | _Joins | NewRun
"""What becomes of a message. `Became.DUPLICATE`: it is known."""


@dataclass(slots=True, eq=False)
class _Member:
    """A message of the list on its way, and in the end its outcome."""

    arrival: Arrival
    message: Inbound
    by: Claimant | None
    outcome: Recorded | Left = Left.ALONE
    chat: Chat | None = None


def record_together(
    tx: Tx, rt: Runtime, entries: Sequence[Entry]
) -> Sequence[Recorded | Left]:
    """Record events of as many chats. Those that are not ordinary are left out."""
