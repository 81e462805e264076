"""An arrival: a verified payload of one account, its events, and what each of them became."""

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
    """The outcome of one event. `run` is set when a run was made, and `case` when it was born
    running and there is nothing more to know; `stopped` are runs that a command ended; `wake`
    says that a worker should look. `callback_id` names a button press to be answered, with
    `toast` as its words. `report` is news of the account that nobody was told of lately."""

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
    """One payload of one account, verified; `body` is what came over the wire, by whichever door,
    with all that a database takes of it: else nobody could keep it."""

    account: int
    body: str
    via: str = "webhook"
    """The way it came, which names its span."""
    named: Named | None = None
    """The name of a client's message, which has one under each address of its chat."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", clean(self.body))

    @property
    def digest(self) -> str:
        """Names the payload, so that a dead letter is kept once."""
        return hashlib.sha256(self.body.encode()).hexdigest()

    def payload(
        self,
        *,
        message: int | None = None,
        ignored: str | None = None,
        error: str | None = None,
    ) -> NewPayload:
        """The payload to be kept, with what it is: a message's, or answered by nothing."""
        return NewPayload(self.account, self.body, self.digest, message, ignored, error)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a payload, to be recorded; `by` claims the run that it may make."""

    arrival: Arrival
    event: Event
    by: Claimant | None

    @property
    def key(self) -> Hashable:
        """The name under which events keep their order: an address of the account. What is
        nobody's message keeps none."""
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
