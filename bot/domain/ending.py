"""The table of endings: every way in which a run may finish, with all that follows from it.

Every list that decides by ending derives from `Ending.rule`: what `stuck` lists, what the
history shows, which retry a person has, what an operator may correct, which note is owed. A
new member needs a whole rule, and every `match` over it ends in `assert_never`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Literal, Self


class Worded(StrEnum):
    """A value that is stored and decided by, and the sentence that people read for it."""

    says: str

    def __new__(cls, value: str, says: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.says = says
        return member


class TurnStatus(Worded):
    """The answer to whoever asks about a request id; `says` names the one right reaction."""

    COMPLETED = "completed", "The stored answer is here; nothing needs to be sent again."
    PENDING = "pending", "It is being worked on; ask again in a moment and do not resend."
    WITHDRAWN = "withdrawn", "It was stopped on purpose; do not resend."
    INTERRUPTED = "interrupted", "It could not be answered; send it again."
    UNKNOWN = "unknown", "No message with this id was recorded; send it."


class Reaction(Enum):
    """The next to act after an ending, if anybody."""

    NOTHING = "nothing"
    ASK_PERSON = "ask the person"
    PERSON_RESENDS = "the person sends it again"
    OPERATOR = "the operator looks"


class Again(StrEnum):
    """A person's way on from an ending, by button or word."""

    RETRY = "retry"
    """A new run for the same messages."""
    RESEND = "resend"
    """The stored parts are sent once more."""


class Note(Enum):
    """The one note that an ending owes the person."""

    UNCERTAIN = "uncertain"
    """Part of the answer may be missing, and how to get it again."""
    TOO_OLD = "too old"
    """The moment to answer is missed; once a day."""
    INVITATION = "invitation"
    """Write again: only if the cause is a closed window, in the template for this."""


ByHand = Literal["answered", "cancelled"]
"""The endings that an operator may give a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingRule:
    """All that follows from one ending.

    `severity` ranks what became of a part within its answer, the greatest winning; None for
    endings that do not follow from deliveries. `shown`: the person has, or may have, the
    stored answer, so it is part of the history. `again` is the person's own way on.
    `not_requeued` says why `runs requeue` refuses; empty when it does not. `correctable_to`
    are the endings that an operator may give in its place.
    """

    says: str
    reaction: Reaction
    status: TurnStatus
    severity: int | None = None
    shown: bool = False
    note: Note | None = None
    again: Again | None = None
    not_requeued: str = ""
    correctable_to: tuple[ByHand, ...] = ()


class Ending(StrEnum):
    """A run's one terminal state."""

    rule: EndingRule

    def __new__(cls, value: str, rule: EndingRule | None = None) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        assert rule is not None, f"the ending {value} has no rule"
        member.rule = rule
        return member

    ANSWERED = (
        "answered",
        EndingRule(
            says="Every part has a receipt, or a human answered after the run's last message.",
            reaction=Reaction.NOTHING,
            status=TurnStatus.COMPLETED,
            severity=0,
            shown=True,
            not_requeued="it was answered; requeueing it would answer twice",
        ),
    )
    UNCERTAIN = (
        "uncertain",
        EndingRule(
            says="A part may or may not have arrived; it is not sent again unasked.",
            reaction=Reaction.ASK_PERSON,
            status=TurnStatus.COMPLETED,
            severity=1,
            shown=True,
            note=Note.UNCERTAIN,
            again=Again.RESEND,
            correctable_to=("answered", "cancelled"),
        ),
    )
    UNDELIVERABLE = (
        "undeliverable",
        EndingRule(
            says="The platform refuses this chat or message for ever, or its window is closed.",
            reaction=Reaction.OPERATOR,
            status=TurnStatus.INTERRUPTED,
            severity=2,
            note=Note.INVITATION,
            correctable_to=("answered", "cancelled"),
        ),
    )
    APOLOGISED = (
        "apologised",
        EndingRule(
            says="Failures or the deadline ended the work; an apology asks to send it again.",
            reaction=Reaction.PERSON_RESENDS,
            status=TurnStatus.INTERRUPTED,
            again=Again.RETRY,
            correctable_to=("answered",),
        ),
    )
    FAILED = (
        "failed",
        EndingRule(
            says="The work was given up and even the apology was refused.",
            reaction=Reaction.OPERATOR,
            status=TurnStatus.INTERRUPTED,
            again=Again.RETRY,
            correctable_to=("answered", "cancelled"),
        ),
    )
    WITHDRAWN = (
        "withdrawn",
        EndingRule(
            says="The person stopped it; nothing more is sent.",
            reaction=Reaction.NOTHING,
            status=TurnStatus.WITHDRAWN,
            not_requeued="the person stopped it; to write to them use `chats reply`",
        ),
    )
    CANCELLED = (
        "cancelled",
        EndingRule(
            says="The operator closed it; nothing more is sent.",
            reaction=Reaction.NOTHING,
            status=TurnStatus.WITHDRAWN,
            correctable_to=("answered",),
        ),
    )
    EXPIRED = (
        "expired",
        EndingRule(
            says="It was too old to answer when its turn came.",
            reaction=Reaction.PERSON_RESENDS,
            status=TurnStatus.INTERRUPTED,
            note=Note.TOO_OLD,
            correctable_to=("answered", "cancelled"),
        ),
    )
    SILENT = (
        "silent",
        EndingRule(
            says="The agent chose to say nothing.",
            reaction=Reaction.NOTHING,
            status=TurnStatus.COMPLETED,
        ),
    )

    @property
    def needs_eyes(self) -> bool:
        """Tell whether something is still owed, so that operators see it listed."""
        return self.rule.reaction is not Reaction.NOTHING

    @property
    def stopped(self) -> bool:
        """Tell whether somebody wanted nothing more of it to be sent."""
        return self.rule.status is TurnStatus.WITHDRAWN

    def correctable_to(self, other: Ending) -> bool:
        """Tell whether an operator may have the last word with `other`."""
        return other.value in self.rule.correctable_to


def leading_to(again: Again) -> tuple[Ending, ...]:
    """The endings from which the person has this way on."""
    return tuple(e for e in Ending if e.rule.again is again)


def status_of(ending: Ending | None) -> TurnStatus:
    """The turn status of a run with this ending; None is a run that has not ended."""
    return TurnStatus.PENDING if ending is None else ending.rule.status


class Cause(Worded):
    """The reason for an ending or an apology, as a value that the program goes by.

    The free `detail` beside it is for people; without one they read the cause's sentence.
    """

    DELIVERED = "delivered", ""
    HUMAN_ANSWERED = "human_answered", "a human answered after the last message"
    CHOSE_SILENCE = "chose_silence", "the agent chose to say nothing"
    NOTHING_TO_SEND = "nothing_to_send", "nothing to send"
    UNCONFIRMED = "unconfirmed", "nobody knows whether it arrived"
    SENT_AGAIN = "sent_again", "sent once more"
    REFUSED = "refused", "the platform refused it"
    UNREACHABLE = "unreachable", "nothing reaches the chat"
    OPTED_OUT = "opted_out", "the person opted out"
    WINDOW_CLOSED = "window_closed", "window closed"
    TOO_OLD = "too_old", "older than ANSWER_MAX_AGE when its turn came"
    FAILURES = "failures", "failures without progress"
    DEADLINE = "deadline", "the deadline passed"
    GAVE_UP = "gave_up", "the agent gave up"
    STOPPED = "stopped", "the person stopped it"
    OPERATOR = "operator", "closed by hand"


@dataclass(frozen=True, slots=True)
class Close:
    """A run's end: how, why, and what else is known of it in words."""

    ending: Ending
    cause: Cause
    detail: str = ""

    @property
    def words(self) -> str:
        """The detail, or else the cause's sentence."""
        return self.detail or self.cause.says


def worst(ends: Iterable[Close]) -> Close:
    """The end of a reply whose parts ended differently. There is at least one."""
    return max(ends, key=lambda end: end.ending.rule.severity or 0)
