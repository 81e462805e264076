"""Every way a run may finish, and the reaction that each ending owes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum


class Reaction(Enum):
    """Who acts after an ending, if anybody."""

    NOTHING = "nothing"
    ASK_PERSON = "ask the person"
    PERSON_RESENDS = "the person sends it again"
    OPERATOR = "the operator looks"


class Ending(StrEnum):
    """A run's one terminal state. `reaction` is what it owes, `sentence` says what it means."""

    ANSWERED = "answered"
    UNCERTAIN = "uncertain"
    UNDELIVERABLE = "undeliverable"
    APOLOGISED = "apologised"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SILENT = "silent"

    @property
    def reaction(self) -> Reaction:
        """Who acts next."""
        return _OWED[self][0]

    @property
    def sentence(self) -> str:
        """What the ending means, for an operator."""
        return _OWED[self][1]


_OWED = {
    Ending.ANSWERED: (
        Reaction.NOTHING,
        "Every part has a receipt, or a human answered after the run's last message.",
    ),
    Ending.UNCERTAIN: (
        Reaction.ASK_PERSON,
        "A part may or may not have arrived; the person got a way to have it sent again.",
    ),
    Ending.UNDELIVERABLE: (
        Reaction.OPERATOR,
        "The platform refuses this chat or message for ever, or its window is closed.",
    ),
    Ending.APOLOGISED: (
        Reaction.PERSON_RESENDS,
        "Failures or the deadline ended the work; the person was asked to send it again.",
    ),
    Ending.FAILED: (
        Reaction.OPERATOR,
        "The work was given up and even the apology was refused.",
    ),
    Ending.WITHDRAWN: (Reaction.NOTHING, "The person stopped it; nothing more is sent."),
    Ending.CANCELLED: (Reaction.NOTHING, "The operator closed it; nothing more is sent."),
    Ending.EXPIRED: (Reaction.PERSON_RESENDS, "It was too old to answer when its turn came."),
    Ending.SILENT: (Reaction.NOTHING, "The agent chose to say nothing."),
}

_WORST_FIRST = (Ending.UNDELIVERABLE, Ending.UNCERTAIN, Ending.ANSWERED)


def worst(endings: Iterable[Ending]) -> Ending:
    """The ending of a reply whose parts ended differently."""
    seen = set(endings)
    return next(e for e in _WORST_FIRST if e in seen)


class TurnStatus(StrEnum):
    """What anyone who asks about a request id is told; `text` says what to do now."""

    COMPLETED = "completed"
    PENDING = "pending"
    WITHDRAWN = "withdrawn"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    ALREADY_ACCEPTED = "already_accepted"

    @property
    def text(self) -> str:
        """The one right reaction, in words."""
        return _TOLD[self]


_TOLD = {
    TurnStatus.COMPLETED: "The stored answer is here; nothing needs to be sent again.",
    TurnStatus.PENDING: "It is being worked on; ask again in a moment and do not resend.",
    TurnStatus.WITHDRAWN: "It was stopped on purpose; do not resend.",
    TurnStatus.INTERRUPTED: "It could not be answered; send it again.",
    TurnStatus.UNKNOWN: "No message with this id was recorded; send it.",
    TurnStatus.ALREADY_ACCEPTED: "This message was recorded before; do not resend.",
}

_STATUS_OF_ENDING = {
    Ending.ANSWERED: TurnStatus.COMPLETED,
    Ending.SILENT: TurnStatus.COMPLETED,
    Ending.UNCERTAIN: TurnStatus.COMPLETED,
    Ending.WITHDRAWN: TurnStatus.WITHDRAWN,
    Ending.CANCELLED: TurnStatus.WITHDRAWN,
    Ending.APOLOGISED: TurnStatus.INTERRUPTED,
    Ending.FAILED: TurnStatus.INTERRUPTED,
    Ending.EXPIRED: TurnStatus.INTERRUPTED,
    Ending.UNDELIVERABLE: TurnStatus.INTERRUPTED,
}


def status_of(ending: Ending | None) -> TurnStatus:
    """The turn status of a run with this ending; None is a run that has not ended."""
    return TurnStatus.PENDING if ending is None else _STATUS_OF_ENDING[ending]
