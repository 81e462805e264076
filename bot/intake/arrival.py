"""An arrival: one verified payload of one account, its events, and the outcome of each."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from bot.domain.clients.desk import Named
from bot.domain.message import (
    AnsweredByHand,
    Edited,
    Event,
    Ignored,
    Inbound,
    Membership,
    Migrated,
    Reported,
    Revoked,
    clean,
)
from bot.domain.run import Run
from storage.inbox import NewPayload
from storage.runs import Claimant
from storage.views.evidence import Case


class Became(Enum):
    """The outcome of recording an event."""

    RUN = "run"
    JOINED = "joined"
    DUPLICATE = "duplicate"
    COMMAND = "command"
    IGNORED = "ignored"
    EDIT = "edit"
    NOTED = "noted"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of one event.

    `run` is the run that was made for it, if any, and `case` that run's case if it was born running
    and its case is known already. `stopped` are the runs that a command ended. `wake`: a worker
    should look. `callback_id` names a button press that is to be acknowledged, with `toast` as the
    text to show. `report` is a platform's report on the account that was not logged lately.
    """

    became: Became
    run: Run | None = None
    case: Case | None = None
    stopped: tuple[int, ...] = ()
    wake: bool = False
    callback_id: str = ""
    toast: str = ""
    report: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One verified payload of one account. `body` is what came over the wire, less the characters
    that no database takes."""

    account: int
    body: str
    via: str = "webhook"
    """The way by which it came; also the name of its span."""
    named: Named | None = None
    """For a client's message: its request id under each address of the chat."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", clean(self.body))

    @property
    def digest(self) -> str:
        """A hash of the payload, by which a dead letter is kept only once."""
        return hashlib.sha256(self.body.encode()).hexdigest()

    def payload(
        self,
        *,
        message: int | None = None,
        ignored: str | None = None,
        error: str | None = None,
    ) -> NewPayload:
        """The payload as a row: of a message, or with the reason why it is of none."""
        why = None if error is None else clean(error)  # It may quote the payload.
        return NewPayload(self.account, self.body, self.digest, message, ignored, why)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event to be recorded. `by` claims the run that it may make."""

    arrival: Arrival
    event: Event
    by: Claimant | None

    @property
    def key(self) -> Hashable:
        """The key under which events keep their order: an address of the account. Events that
        belong to no chat have a key of their own."""
        match self.event:
            case Inbound(address=address) | Membership(address=address) | Migrated(new=address):
                return self.arrival.account, address
            case Edited(message):
                return self.arrival.account, message.address
            case Revoked(address) | AnsweredByHand(address):
                return self.arrival.account, address
            case Ignored() | Reported():
                return id(self)
            case other:
                assert_never(other)
