"""Every way a run may finish, and the reaction that each ending owes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Reaction(Enum):
    """Who acts after an ending, if anybody."""

    NOTHING = "nothing"
    ASK_PERSON = "ask the person"
    PERSON_RESENDS = "the person sends it again"
    OPERATOR = "the operator looks"


class Ending(Enum):
    """A run's one terminal state: stored value, reaction owed, one sentence."""

    ANSWERED = (
        "answered",
        Reaction.NOTHING,
        "Every part has a receipt, or a human answered after the run's last message.",
    )
    UNCERTAIN = (
        "uncertain",
        Reaction.ASK_PERSON,
        "A part may or may not have arrived; the person got a way to have it sent again.",
    )
    UNDELIVERABLE = (
        "undeliverable",
        Reaction.OPERATOR,
        "The platform refuses this chat or message for ever, or its window is closed.",
    )
    APOLOGISED = (
        "apologised",
        Reaction.PERSON_RESENDS,
        "Failures or the deadline ended the work; the person was asked to send it again.",
    )
    FAILED = (
        "failed",
        Reaction.OPERATOR,
        "The work was given up and even the apology was refused.",
    )
    WITHDRAWN = (
        "withdrawn",
        Reaction.NOTHING,
        "The person stopped it; nothing more is sent.",
    )
    CANCELLED = (
        "cancelled",
        Reaction.NOTHING,
        "The operator closed it; nothing more is sent.",
    )
    EXPIRED = (
        "expired",
        Reaction.PERSON_RESENDS,
        "It was too old to answer when its turn came.",
    )
    SILENT = (
        "silent",
        Reaction.NOTHING,
        "The agent chose to say nothing.",
    )

    def __init__(self, value: str, reaction: Reaction, sentence: str) -> None:
        self._value_ = value
        self.reaction = reaction
        self.sentence = sentence


_WORST_FIRST = (Ending.UNDELIVERABLE, Ending.UNCERTAIN, Ending.ANSWERED)


def worst(endings: Iterable[Ending]) -> Ending:
    """The ending of a reply whose parts ended differently."""
    seen = set(endings)
    return next(e for e in _WORST_FIRST if e in seen)


class TurnStatus(Enum):
    """What anyone who asks about a request id is told: stored value, what to do now."""

    COMPLETED = ("completed", "The stored answer is below; nothing needs to be sent again.")
    PENDING = ("pending", "It is being worked on; ask again in a moment and do not resend.")
    WITHDRAWN = ("withdrawn", "It was stopped on purpose; do not resend.")
    INTERRUPTED = ("interrupted", "It could not be answered; send it again.")
    UNKNOWN = ("unknown", "No message with this id was recorded; send it.")
    ALREADY_ACCEPTED = ("already_accepted", "This message was recorded before; do not resend.")

    def __init__(self, value: str, text: str) -> None:
        self._value_ = value
        self.text = text


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
