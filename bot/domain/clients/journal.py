"""The journal of a chat: the numbered events by which a client follows it.

A part is an event of its own, written when it is sent. What becomes of the messages is projected
from their rows: `news()` compares what was shown of one with what is true of it now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.ending import Ending, TurnStatus, status_of
from bot.domain.message import Attachment
from bot.domain.reply import PartKind
from bot.domain.run import RunState


class EventKind(StrEnum):
    """The kinds of events. The first four tell of a message, the others are parts."""

    ACCEPTED = "accepted"
    WORKING = "working"
    ENDED = "ended"
    WITHDRAWN = "withdrawn"
    STILL_WORKING = "still_working"
    MESSAGE = "message"
    NOTICE = "notice"


class Shown(StrEnum):
    """The last thing that the journal has shown of a message."""

    ACCEPTED = "accepted"
    WORKING = "working"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """A message as its journal is compared with it. `state` and `ending` are its run's; a message
    without a run is over from the start. `shown` is None where nothing was shown yet."""

    message: int
    state: RunState | None = None
    ending: Ending | None = None
    shown: Shown | None = None

    @property
    def now(self) -> Shown:
        """The thing to be shown of it."""
        match self.state:
            case RunState.WAITING | RunState.READY:
                return Shown.ACCEPTED
            case RunState.RUNNING:
                return Shown.WORKING
            case RunState.ENDED | None:
                return Shown.OVER

    @property
    def status(self) -> TurnStatus:
        """The answer to whoever asks about it."""
        return TurnStatus.COMPLETED if self.state is None else status_of(self.ending)


_TO_SHOW: dict[tuple[Shown | None, Shown], tuple[Shown, ...]] = {
    (None, Shown.ACCEPTED): (Shown.ACCEPTED,),
    (None, Shown.WORKING): (Shown.ACCEPTED, Shown.WORKING),
    (None, Shown.OVER): (Shown.ACCEPTED, Shown.OVER),
    (Shown.ACCEPTED, Shown.ACCEPTED): (),
    (Shown.ACCEPTED, Shown.WORKING): (Shown.WORKING,),
    (Shown.ACCEPTED, Shown.OVER): (Shown.OVER,),
    # A run that was given back for a while is still being worked on, for whoever looks at it.
    (Shown.WORKING, Shown.ACCEPTED): (),
    (Shown.WORKING, Shown.WORKING): (),
    (Shown.WORKING, Shown.OVER): (Shown.OVER,),
    # It was over and is tried again: the person asked for it, or an operator.
    (Shown.OVER, Shown.ACCEPTED): (Shown.ACCEPTED,),
    (Shown.OVER, Shown.WORKING): (Shown.WORKING,),
    (Shown.OVER, Shown.OVER): (),
}


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be written, about a message or a part."""

    kind: EventKind
    message: int | None = None
    part: int | None = None
    status: TurnStatus | None = None
    ending: Ending | None = None


def news(facts: MessageFacts) -> Sequence[NewEvent]:
    """The events that the journal lacks about this message, in order."""
    return [_event(facts, shown) for shown in _TO_SHOW[facts.shown, facts.now]]


def _event(facts: MessageFacts, shown: Shown) -> NewEvent:
    match shown:
        case Shown.ACCEPTED:
            # The second time it is no new message of the conversation.
            again = None if facts.shown is None else TurnStatus.PENDING
            return NewEvent(EventKind.ACCEPTED, facts.message, status=again)
        case Shown.WORKING:
            return NewEvent(EventKind.WORKING, facts.message)
        case Shown.OVER:
            status = facts.status
            withdrawn = status is TurnStatus.WITHDRAWN
            kind = EventKind.WITHDRAWN if withdrawn else EventKind.ENDED
            return NewEvent(kind, facts.message, status=status, ending=facts.ending)


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """An event as it is read: its number in its chat, and what it is about. `at` in epoch seconds.

    `request_id` names the message, or the newest one that a part answers; it is empty for a part
    that answers none. A message has `text`, `button` and `attachments`, and when it was accepted
    also its `status` as it is read, with `queued`; a part has `text` and `wire`.
    """

    n: int
    kind: EventKind
    at: float
    request_id: str
    text: str = ""
    status: TurnStatus | None = None
    ending: Ending | None = None
    queued: bool = False
    part: int | None = None
    part_kind: PartKind | None = None
    wire: str = ""
    button: str = ""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A message whose turn is not over. `queued`: nobody works on it; `answering`: some of its
    answer is there already."""

    request_id: str
    queued: bool
    answering: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A chat at one moment: the number of its last event, its latest messages on both sides,
    oldest first, and whether there are `more`; what is not answered yet, and how many of our
    messages nobody has seen."""

    n: int
    messages: Sequence[ChatEvent] = ()
    more: bool = False
    open: Sequence[OpenTurn] = ()
    unread: int = 0


SAID = (EventKind.ACCEPTED, EventKind.MESSAGE, EventKind.NOTICE)
"""The events that are the conversation: what the person wrote, and what was said to them."""


def told_as(kind: PartKind, *, still_working: bool) -> EventKind:
    """The kind of event that a part is."""
    match kind:
        case PartKind.REPLY | PartKind.APOLOGY | PartKind.OPERATOR:
            return EventKind.MESSAGE
        case PartKind.NOTICE:
            return EventKind.STILL_WORKING if still_working else EventKind.NOTICE


def interleaved(several: Iterable[Sequence[tuple[float, int]]]) -> Sequence[int]:
    """The rows of several journals, each as (time, row) in the order of its numbers, in one order:
    by time, and never against the order of a journal."""
    placed = []
    for place, journal in enumerate(several):
        latest = 0.0
        for number, (at, row) in enumerate(journal):
            latest = max(latest, at)
            placed.append((latest, place, number, row))
    return [row for *_, row in sorted(placed)]
