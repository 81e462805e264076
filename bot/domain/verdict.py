"""The verdict on a run: what may be done with it, from the evidence alone.

`judge()` is asked whenever a worker takes a run up, for the first time or after any death,
and by `answerback runs why`, which only prints the answer. It never looks at a clock, a
database or a channel: everything that it may use is in `Evidence`. The order of its
questions is the order of what must never happen:

1. never answer what a human has answered;
2. never call the agent when a reply is stored;
3. never begin to send what the platform forbids now (a closed window, a parked chat); what
   was begun before is still followed to its end;
4. never work for ever (three failures without progress, or the deadline).

`plan()` answers the smaller question inside "send the rest": which part is next, given that
a part that may have arrived is not sent again unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.delivery import ARRIVED, PartState, Scope
from bot.domain.ending import Ending, worst


class UncertainDelivery(StrEnum):
    """What happens to a part that may have arrived where the provider can't tell."""

    ASK = "ask"
    """Tell the person, with a way to get it again."""
    HOLD = "hold"
    """Only list it for the operator."""
    RESEND = "resend"
    """Send it once more, at the price of a possible double."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's bounds. Seconds throughout.

    `looks` are when, after an uncertain attempt, the provider's list is asked; empty where
    it can't tell. `status_wait` bounds the wait for the platform's `sent` between parts
    (0 where parts keep their order by themselves). `templates` says that an answer may leave
    in a closed window, in a template.
    """

    max_failures: int = 3
    suspect_after: int = 2
    answer_max_age: float = 86_400.0
    free_text_window: float | None = None
    templates: bool = False
    looks: tuple[float, ...] = ()
    status_wait: float = 0.0
    uncertain: UncertainDelivery = UncertainDelivery.ASK
    max_resends: int = 1


@dataclass(frozen=True, slots=True)
class PartFacts:
    """A part of the run's reply or apology. Times in epoch seconds.

    `confirmed` says that the platform reported it on its way (or further) after taking it;
    `started_at` is when the last attempt was committed; `scope` is set on a refusal.
    """

    id: int
    number: int
    state: PartState
    attempts: int = 0
    resends: int = 0
    looks: int = 0
    not_before: float = 0.0
    started_at: float = 0.0
    confirmed: bool = False
    scope: Scope | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known about a run when it is judged. Times in epoch seconds.

    `last_message_at` is when the run's newest message was recorded here (a platform's own
    clock may be wrong, and its outages are not the person's fault); `window_opened_at` is
    the person's last message in the chat, by the provider's time where it is known;
    `unreachable` is the reason for which the chat is parked.
    """

    now: float
    failures: int
    deaths: int
    deadline_at: float | None
    last_message_at: float
    window_opened_at: float
    reply_stored: bool
    apology_stored: bool = False
    parts: tuple[PartFacts, ...] = ()
    human_answered: bool = False
    unreachable: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """End the run now."""

    ending: Ending
    detail: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """A reply or apology is stored: send what is missing; the agent is not called."""


@dataclass(frozen=True, slots=True)
class Think:
    """Call the agent. `suspect` says that it must be the only suspect of its holder."""

    suspect: bool


@dataclass(frozen=True, slots=True)
class Apologise:
    """Give up and say so once."""

    why: str


Verdict = Close | Deliver | Think | Apologise


def judge(evidence: Evidence, policy: Policy) -> Verdict:
    """What may be done with this run."""
    e = evidence
    if e.human_answered:
        return Close(Ending.ANSWERED, "a human answered after the last message")
    stored = e.reply_stored or e.apology_stored
    if stored and all(p.state is not PartState.PENDING for p in e.parts):
        return Deliver()
    if e.unreachable:
        return Close(Ending.UNDELIVERABLE, e.unreachable)
    if not policy.templates and window_closed(e.window_opened_at, e.now, policy):
        return Close(Ending.UNDELIVERABLE, WINDOW_CLOSED)
    if e.now - e.last_message_at > policy.answer_max_age:
        return _too_old(e.parts)
    if stored:
        return Deliver()
    if e.failures >= policy.max_failures:
        return Apologise(f"{e.failures} failures without progress")
    if e.deadline_at is not None and e.now >= e.deadline_at:
        return Apologise("the deadline passed")
    return Think(suspect=e.deaths >= policy.suspect_after)


WINDOW_CLOSED = "window closed"


def window_closed(opened_at: float, now: float, policy: Policy) -> bool:
    """Whether free text is forbidden: the person's last message is too long ago."""
    return policy.free_text_window is not None and now >= opened_at + policy.free_text_window


_SHOWN = ARRIVED | {PartState.SENDING, PartState.UNCERTAIN}
"""States in which the person may have a part; one that was proven not to leave is none."""


def _too_old(parts: Sequence[PartFacts]) -> Close:
    if any(p.state in _SHOWN for p in parts):
        return Close(Ending.UNDELIVERABLE, "the rest was older than ANSWER_MAX_AGE")
    return Close(Ending.EXPIRED, "older than ANSWER_MAX_AGE when its turn came")


@dataclass(frozen=True, slots=True)
class SendPart:
    """This part goes out now."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the provider about this uncertain part now."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Resend:
    """This uncertain part may be tried once more: make it pending again."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Doubt:
    """This part was being sent by an attempt that is gone: it is uncertain."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before `until` (epoch seconds), or before `awaited`, the part before this
    one, is reported on by its provider."""

    until: float
    why: str
    awaited: int | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Every part is where it stays; `drop` are parts that are never sent."""

    ending: Ending
    detail: str
    drop: tuple[int, ...] = ()


Move = SendPart | LookUp | Resend | Doubt | Wait | Finish


def plan(parts: Sequence[PartFacts], now: float, policy: Policy) -> Move:
    """The next move for the stored parts of one reply, in order of their numbers."""
    endings: list[Ending] = []
    detail = ""
    previous: PartFacts | None = None
    for part in sorted(parts, key=lambda p: p.number):
        match part.state:
            case PartState.SENT | PartState.DELIVERED | PartState.READ:
                endings.append(Ending.ANSWERED)
            case PartState.SENDING:
                return Doubt(part)
            case PartState.UNCERTAIN:
                move = _doubted(part, now, policy)
                if move is not None:
                    return move
                endings.append(Ending.UNCERTAIN)
                detail = detail or part.error
            case PartState.REFUSED:
                endings.append(Ending.UNDELIVERABLE)
                detail = part.error or detail
                if part.scope is not Scope.PAYLOAD:
                    rest = tuple(p.id for p in parts if p.state is PartState.PENDING)
                    return Finish(Ending.UNDELIVERABLE, detail, rest)
            case PartState.PENDING:
                return _pending(part, previous, now, policy)
            case PartState.DROPPED:
                pass
        previous = part
    return Finish(worst(endings), detail) if endings else Finish(Ending.SILENT, "nothing to send")


def _doubted(part: PartFacts, now: float, policy: Policy) -> Move | None:
    if part.looks < len(policy.looks):
        at = part.started_at + policy.looks[part.looks]
        return LookUp(part) if now >= at else Wait(at, "waiting to ask the provider again")
    may_resend = bool(policy.looks) or policy.uncertain is UncertainDelivery.RESEND
    if may_resend and part.resends < policy.max_resends:
        return Resend(part)
    return None


def _pending(part: PartFacts, previous: PartFacts | None, now: float, policy: Policy) -> Move:
    if part.not_before > now:
        return Wait(part.not_before, part.error or "due later")
    if previous is not None and previous.state is PartState.SENT and not previous.confirmed:
        at = previous.started_at + policy.status_wait
        if now < at:
            return Wait(at, "waiting for the previous part to leave", previous.id)
    return SendPart(part)
