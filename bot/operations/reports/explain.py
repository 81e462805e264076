"""A run explained: the verdict that a worker would come to now, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.delivery.status import PLATFORM
from bot.domain.decisions.verdict import (
    Apologise,
    Deliver,
    Doubt,
    Evidence,
    LookUp,
    Move,
    Policy,
    Resend,
    SendPart,
    Think,
    Unheard,
    Wait,
    judge,
    plan,
)
from bot.domain.ending import Close
from bot.domain.run import RunState
from bot.leases.runtime import Runtime
from bot.operations.reports.phrases import when
from bot.operations.reports.stuck import stuck_of_run, told_of_run
from bot.operations.reports.told import what_was_told
from storage import audit_log, runs
from storage.statements.tx import Tx
from storage.views import runs as run_views
from storage.views.evidence import gather_one
from storage.views.runs import RunLine


@dataclass(frozen=True, slots=True)
class Explained:
    """The verdict in words, its evidence, and the command that helps (empty: none needed)."""

    run: int
    verdict: str
    says: str
    evidence: Sequence[tuple[str, str]]
    act: str


def explain_run(tx: Tx, rt: Runtime, number: int, lease_seconds: float) -> Explained:
    """Judge a run as a worker would now. Read only. The run exists."""
    run = runs.find(tx, number)
    line = run_views.run_line(tx, number, lease_seconds)
    assert run is not None
    assert line is not None
    evidence = gather_one(tx, run).evidence
    stuck = stuck_of_run(tx, line, lease_seconds)
    if line.ending is not None:
        word = line.ending.value
        causes = "; ".join(told_of_run(one, number) for one in stuck)
        why = f"; {causes}" if causes else f". {line.ending.rule.says}"
        sentence = f"it ended as {word}{why}".removesuffix(".")
        sentence = f"{sentence}. {what_was_told(tx, line)}".rstrip()
        act = f"answerback runs show {number}  # what happened"
    else:
        word, may = _in_words(evidence, rt.policy(run.account))
        where, act = _where(line, evidence)
        first = told_of_run(stuck[0], number) if stuck else where
        then = "when its turn comes: " if line.state is RunState.WAITING else ""
        sentence = f"{first}; {then}{may}"
    facts = [*_facts(line, evidence), *audit_log.of_run(tx, number, PLATFORM)]
    return Explained(number, word, sentence, facts, stuck[0].act if stuck else act)


def _in_words(evidence: Evidence, policy: Policy) -> tuple[str, str]:
    """The verdict's name, and what it allows."""
    match judge(evidence, policy):
        case Close(ending) as end:
            return f"close: {ending.value}", f"it may be closed as {ending.value}: {end.words}"
        case Deliver():
            move = _move_in_words(plan(evidence.parts, evidence.now, policy), evidence.now)
            return "deliver", f"its answer is stored, and the agent is not called again: {move}"
        case Think(suspect):
            alone = ", alone: it may have killed its workers" if suspect else ""
            return "think", f"the agent may be called{alone}"
        case Apologise() as owed:
            return "apologise", f"an apology is due: {owed.words}"
        case other:
            assert_never(other)


def _move_in_words(move: Move, now: float) -> str:
    """The next step of a delivery."""
    match move:
        case SendPart(part):
            return f"part {part.id} may be sent"
        case LookUp(part):
            return f"part {part.id} may have arrived, and the platform is asked about it"
        case Unheard(part):
            return f"part {part.id} may have arrived, and no status has told of it yet"
        case Resend(part):
            return f"part {part.id} did not arrive, as far as can be known, and is sent once more"
        case Doubt(part):
            return f"part {part.id} is being sent; if its process died, it may have arrived"
        case Wait(until, why):
            return f"{why}, until {when(until, now)}"
        case Close(ending):
            return f"all is sent that can be, and it ends as {ending.value}"
        case other:
            assert_never(other)


def _where(line: RunLine, evidence: Evidence) -> tuple[str, str]:
    """The place of a run that does not stand still, and the command that helps."""
    match line.state:
        case RunState.RUNNING:
            stop = f"answerback runs close {line.id} --as cancelled  # only if it must end"
            return f"{line.holder} works on it", stop
        case RunState.WAITING:
            return "it waits behind another run of its chat", f"answerback chats show {line.chat}"
        case RunState.READY if line.kept:
            act = "answerback doctor  # says what is wrong with the account"
            return "it is answered and waits for its account to send again", act
        case RunState.READY:
            late = line.not_before > evidence.now
            due = f"at {when(line.not_before, evidence.now)}" if late else "now"
            return f"it is ready and due {due}", "answerback top  # says which processes live"
        case RunState.ENDED:
            return "it has ended", ""
        case other:
            assert_never(other)


def _facts(line: RunLine, e: Evidence) -> Sequence[tuple[str, str]]:
    if line.ending is not None:
        deadline = "none: it has ended"
    else:
        deadline = "not begun" if e.deadline_at is None else when(e.deadline_at, e.now)
    parts = ", ".join(f"{p.number} (part {p.id}): {p.state.value}" for p in e.parts) or "none"
    alive = " (alive)" if line.holder_alive else " (dead)"
    return [
        ("state", line.state.value),
        ("holder", line.holder + alive if line.holder else "none"),
        ("attempts", str(line.attempts)),
        ("failures", str(e.failures)),
        ("deaths of its holders", str(e.deaths)),
        ("deadline", deadline),
        ("last message", when(e.last_message_at, e.now)),
        ("person last wrote", when(e.window_opened_at, e.now)),
        ("reply stored", _yes(e.reply_stored)),
        ("apology stored", _yes(e.apology_stored)),
        ("parts", parts),
        ("a human answered", _yes(e.human_answered)),
        ("unreachable", "no" if e.silenced is None else e.silenced.words),
    ]


def _yes(fact: bool) -> str:  # noqa: FBT001 - it is the value that is put in words
    return "yes" if fact else "no"
