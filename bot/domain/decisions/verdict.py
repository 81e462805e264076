"""The verdict on a run: the decision on its next move, from the evidence alone.

`judge()` is asked whenever a worker begins a turn, be it the first one or after a death, and by
`answerback runs why`, which only prints the answer. It never looks at a clock, a database or a
channel: everything that it may use is in `Evidence`. Its questions come in the order of what must
never happen:

1. never answer what a human has answered;
2. never call the agent when a reply is stored;
3. never begin to send what the platform forbids now (a closed window, a parked chat); a send
   that was begun before is still followed to its end;
4. never work for ever (MAX_FAILURES without progress, or the deadline).

Three smaller decisions follow. When parts are to be sent, `plan()` says which is next, given that a
part that may have arrived is not sent again unasked. `follows()` says what happens after the agent
returned or failed. `review()` corrects the ending of a run if late news of its parts contradict it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from bot.domain.decisions.retry import RETRY, RetryPolicy
from bot.domain.delivery import ARRIVED, MAY_BE_SHOWN, PartState, Scope
from bot.domain.ending import Cause, Close, Ending, worst
from bot.domain.reply import Reply
from bot.domain.run import Run


class UncertainDelivery(StrEnum):
    """The treatment of a part that may have arrived, if the provider can't tell."""

    ASK = "ask"
    """Tell the person, with a way to get it again."""
    HOLD = "hold"
    """Only list it for the operator."""
    RESEND = "resend"
    """Send it once more, at the price of a possible double."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's bounds, and what a channel adds to them. All times are in seconds.

    `templates`: an answer may leave in a closed window, in a template. `looks` are the times after
    an uncertain attempt at which the provider's list is asked; empty if it can't tell.
    `witness_wait` is how long a status is waited for instead. `ordered`: the platform keeps the
    order of parts by itself.
    """

    answer_max_age: float = 86_400.0
    uncertain: UncertainDelivery = UncertainDelivery.ASK
    retry: RetryPolicy = RETRY
    free_text_window: float | None = None
    templates: bool = False
    looks: tuple[float, ...] = ()
    witness_wait: float = 0.0
    ordered: bool = True


POLICY: Final = Policy()


@dataclass(frozen=True, slots=True)
class PartFacts:
    """A part of the run's reply or apology. Times are in epoch seconds.

    `confirmed`: after taking it, the platform reported that it is on its way, or further.
    `started_at` is the start of the last attempt. `looks` counts the looks at the provider's list
    since then, or the steps of the wait for a status. `scope` is set if the part was refused.
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
    """All that is known about a run when it is judged. Times are in epoch seconds.

    `last_message_at` is when the run's newest message was recorded here, since a platform's clock
    may be wrong, and its outages are not the person's fault. `window_opened_at` is the time of the
    person's last message in the chat, by the provider's clock if known. `handed_over`: the agent
    asked for a person in a step that is stored. `silenced` is set if nothing may be sent to the
    chat, and is the end that every answer then has.
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
    handed_over: bool = False
    silenced: Close | None = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """A reply or apology is stored: send what is missing; the agent is not called."""


@dataclass(frozen=True, slots=True)
class Think:
    """Call the agent. `suspect`: the run must be the only suspect of its holder."""

    suspect: bool


@dataclass(frozen=True, slots=True)
class Apologise:
    """Give up and say so once: in the agent's own words if there is a `text`, else in ours."""

    cause: Cause
    detail: str = ""
    text: str = ""

    @property
    def words(self) -> str:
        """The detail, or else the cause's sentence."""
        return self.detail or self.cause.says


Verdict = Close | Deliver | Think | Apologise


def judge(evidence: Evidence, policy: Policy) -> Verdict:
    """Decide what may be done with this run."""
    e = evidence
    if e.human_answered:
        return Close(Ending.ANSWERED, Cause.HUMAN_ANSWERED)
    stored = e.reply_stored or e.apology_stored
    if stored and all(p.state is not PartState.PENDING for p in e.parts):
        return Deliver()
    if e.silenced is not None:
        return e.silenced
    if not policy.templates and window_closed(e.window_opened_at, e.now, policy):
        return Close(Ending.UNDELIVERABLE, Cause.WINDOW_CLOSED)
    if e.now - e.last_message_at > policy.answer_max_age:
        return _too_old(e.parts)
    if stored:
        return Deliver()
    if e.failures >= policy.retry.max_failures:
        owed = Apologise(Cause.FAILURES, f"{e.failures} failures without progress")
        return _left_to_a_person(owed) if e.handed_over else owed
    if e.deadline_at is not None and e.now >= e.deadline_at:
        owed = Apologise(Cause.DEADLINE)
        return _left_to_a_person(owed) if e.handed_over else owed
    return Think(suspect=e.deaths >= policy.retry.suspect_after)


def _left_to_a_person(owed: Apologise) -> Close:
    """The end that replaces an apology: the handoff tells the chat that a person will answer."""
    return Close(Ending.SILENT, owed.cause, f"left to a person: {owed.words}")


def window_closed(opened_at: float, now: float, policy: Policy) -> bool:
    """Tell whether the platform forbids free text, as the person's last message is too long ago."""
    return policy.free_text_window is not None and now >= opened_at + policy.free_text_window


def _too_old(parts: Sequence[PartFacts]) -> Close:
    if any(p.state in MAY_BE_SHOWN for p in parts):
        return Close(Ending.UNDELIVERABLE, Cause.TOO_OLD, "the rest was older than ANSWER_MAX_AGE")
    return Close(Ending.EXPIRED, Cause.TOO_OLD)


@dataclass(frozen=True, slots=True)
class SendPart:
    """This part goes out now."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the provider about this uncertain part now."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Unheard:
    """Count one more step of the wait for a status on this uncertain part."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Resend:
    """Make this uncertain part pending again: it may be sent once more."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Doubt:
    """Make this part uncertain, unless its attempt goes on: it is marked as being sent."""

    part: PartFacts


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until `until` (epoch seconds), or until the provider reports on `awaited`, the
    part before this one."""

    until: float
    why: str
    awaited: int | None = None


Move = SendPart | LookUp | Unheard | Resend | Doubt | Wait | Close


def plan(parts: Sequence[PartFacts], now: float, policy: Policy) -> Move:
    """The next move for the stored parts of a reply or apology, or its end if none is left. The
    parts are taken in the order of their numbers."""
    ends: list[Close] = []
    previous: PartFacts | None = None
    for part in sorted(parts, key=lambda p: p.number):
        match part.state:
            case PartState.SENT | PartState.DELIVERED | PartState.READ:
                ends.append(Close(Ending.ANSWERED, Cause.DELIVERED))
            case PartState.SENDING:
                return Doubt(part)
            case PartState.UNCERTAIN:
                move = _doubted(part, now, policy)
                if move is not None:
                    return move
                ends.append(Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, part.error))
            case PartState.REFUSED:
                ends.append(refused_end(part))
                if part.scope is not Scope.PAYLOAD:
                    return ends[-1]
            case PartState.PENDING:
                return _pending(part, previous, now, policy)
            case PartState.DROPPED:
                pass
            case other:
                assert_never(other)
        previous = part
    return worst(ends) if ends else Close(Ending.SILENT, Cause.NOTHING_TO_SEND)


def refused_end(part: PartFacts) -> Close:
    """The end of an answer of which this part was refused."""
    match part.scope:
        case Scope.WINDOW:
            cause = Cause.WINDOW_CLOSED
        case Scope.CHAT:
            cause = Cause.UNREACHABLE
        case Scope.CONSENT:
            cause = Cause.OPTED_OUT
        case Scope.PAYLOAD | None:
            cause = Cause.REFUSED
        case other:
            assert_never(other)
    return Close(Ending.UNDELIVERABLE, cause, part.error)


def _doubted(part: PartFacts, now: float, policy: Policy) -> Move | None:
    if part.looks < len(policy.looks):
        at = part.started_at + policy.looks[part.looks]
        return LookUp(part) if now >= at else Wait(at, "waiting to ask the provider again")
    step = policy.retry.witness_step
    if part.looks * step < policy.witness_wait:
        at = max(part.not_before, part.started_at + step)
        return Unheard(part) if now >= at else Wait(at, "waiting for a status that tells")
    may_resend = bool(policy.looks) or policy.uncertain is UncertainDelivery.RESEND
    if may_resend and part.resends < policy.retry.max_resends:
        return Resend(part)
    return None


def _pending(part: PartFacts, previous: PartFacts | None, now: float, policy: Policy) -> Move:
    if part.not_before > now:
        return Wait(part.not_before, part.error or "due later")
    before = None if policy.ordered else previous
    if before is not None and before.state is PartState.SENT and not before.confirmed:
        at = before.started_at + policy.retry.status_wait
        if now < at:
            return Wait(at, "waiting for the previous part to leave", before.id)
    return SendPart(part)


def review(ending: Ending, parts: Sequence[PartFacts]) -> Close | None:
    """The end that a finished run should have instead, after late news of its parts, or None.

    `parts` are those of the reply or the apology, except any that another part replaced.
    """
    refused = next((p for p in parts if p.state is PartState.REFUSED), None)
    arrived = bool(parts) and all(p.state in ARRIVED for p in parts)
    after: Close | None = None
    if ending is Ending.APOLOGISED and refused is not None:
        detail = f"the apology was refused: {refused.error}"
        after = Close(Ending.FAILED, refused_end(refused).cause, detail)
    elif ending is Ending.FAILED and arrived:
        after = Close(Ending.APOLOGISED, Cause.DELIVERED, "the apology arrived after all")
    elif ending.rule.severity is not None:
        after = _by_delivery(ending, parts, refused, arrived=arrived)
    return None if after is None or after.ending is ending else after


def _by_delivery(
    ending: Ending, parts: Sequence[PartFacts], refused: PartFacts | None, *, arrived: bool
) -> Close | None:
    if refused is not None:
        return refused_end(refused)
    if arrived:
        detail = "a late delivery status: every part arrived"
        return Close(Ending.ANSWERED, Cause.DELIVERED, detail)
    under_way = (PartState.PENDING, PartState.SENDING)
    again = next((p for p in parts if p.state in under_way), None)
    if again is not None and ending is Ending.ANSWERED:
        return Close(Ending.UNCERTAIN, Cause.SENT_AGAIN, f"sent once more: {again.error}")
    doubtful = next((p for p in parts if p.state is PartState.UNCERTAIN), None)
    if doubtful is not None and ending is not Ending.ANSWERED:
        return Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, doubtful.error)
    return None


@dataclass(frozen=True, slots=True)
class Answer:
    """The agent returned; None is its choice to say nothing."""

    reply: Reply | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The agent raised something it did not mean to."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """The agent asked to be tried again, after so many seconds if it named them."""

    after: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The agent says that it can't answer. `text` is for the person; if empty, ours is used."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The deadline passed while the agent was at work."""


Thought = Answer | Failed | Later | GaveUp | OutOfTime


@dataclass(frozen=True, slots=True)
class PutBack:
    """The run is ready again after `wait` seconds; `failed` counts against it."""

    wait: float
    reason: str
    failed: bool


def follows(
    thought: Thought, run: Run, retry: RetryPolicy, jitter: float, now: float
) -> Close | Reply | Apologise | PutBack:
    """Decide what follows after the agent returned or failed in this attempt.

    `jitter` is in [0, 1), `now` in epoch seconds as the deadline. If the agent asked for a person,
    there is no apology: the words that it gave up with, if any, become its answer.
    """
    then = _follows(thought, run, retry, jitter, now)
    if run.handoff is None or not isinstance(then, Apologise):
        return then
    return Reply(then.text) if then.text else _left_to_a_person(then)


def _follows(
    thought: Thought, run: Run, retry: RetryPolicy, jitter: float, now: float
) -> Close | Reply | Apologise | PutBack:
    match thought:
        case Answer(None) if run.handoff is not None:
            return Close(Ending.SILENT, Cause.CHOSE_SILENCE, "left to a person")
        case Answer(reply):
            return Close(Ending.SILENT, Cause.CHOSE_SILENCE) if reply is None else reply
        case GaveUp(text, reason):
            return Apologise(Cause.GAVE_UP, reason, text.strip())
        case OutOfTime():
            return Apologise(Cause.DEADLINE)
        case Later() if _past_deadline(run, now):
            return Apologise(Cause.DEADLINE)
        case Later(after, reason) if after is not None and _past_deadline(run, now + after):
            # There would be no further try: the person is told now, and not at the deadline.
            detail = f"it was asked to wait {after:.0f} s, past its deadline: {reason}"
            return Apologise(Cause.GAVE_UP, detail)
        case Later(after, reason):
            asked = None if after is None else max(retry.soonest, after) * (1 + jitter / 10)
            wait = retry.agent.after(run.attempts, jitter) if asked is None else asked
            return PutBack(wait, reason, failed=False)
        case Failed(reason):
            failures = run.failures + 1
            last = failures >= retry.max_failures
            wait = 0.0 if last else retry.agent.after(failures, jitter)
            return PutBack(wait, reason, failed=True)
        case other:
            assert_never(other)


def _past_deadline(run: Run, at: float) -> bool:
    return run.deadline_at is not None and at >= run.deadline_at
