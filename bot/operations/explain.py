"""A run explained: the verdict that a worker would come to now, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.delivery.status import PLATFORM
from bot.domain.ending import Close
from bot.domain.run import RunState
from bot.domain.verdict import Apologise, Deliver, Evidence, Policy, Think, judge, plan
from bot.leases.runtime import Runtime
from storage import audit_log, runs
from storage.engine.tx import Tx
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
    if line.ending is not None:
        word = line.ending.value
        says = f"it ended as {word}: {line.ending.rule.says}"
        act = f"answerback runs show {number}  # what happened"
    else:
        word, may = _in_words(evidence, rt.policy(run.account))
        where, act = _where(line, evidence)
        says = f"{where}; {may}"
    facts = [*_facts(line, evidence), *audit_log.of_run(tx, number, PLATFORM)]
    return Explained(number, word, says, facts, act)


def _in_words(evidence: Evidence, policy: Policy) -> tuple[str, str]:
    """The verdict's name, and what it allows."""
    match judge(evidence, policy):
        case Close(ending) as end:
            return f"close: {ending.value}", f"it may be closed as {ending.value}: {end.words}"
        case Deliver():
            step = type(plan(evidence.parts, evidence.now, policy)).__name__
            says = "what is stored may be sent; the agent is not called again"
            return "deliver", f"{says}; next: {step}"
        case Think(suspect):
            alone = ", alone: it may have killed its workers" if suspect else ""
            return "think", f"the agent may be called{alone}"
        case Apologise() as owed:
            return "apologise", f"an apology is due: {owed.words}"
        case other:
            assert_never(other)


def _where(line: RunLine, evidence: Evidence) -> tuple[str, str]:
    """The run's place, and the command that helps."""
    late = line.not_before - evidence.now
    match line.state:
        case RunState.RUNNING if not line.holder_alive:
            return f"its holder {line.holder} is dead", "answerback recover  # releases it"
        case RunState.RUNNING:
            stop = f"answerback runs close {line.id} --as cancelled  # only if it must end"
            return f"{line.holder} works on it", stop
        case RunState.READY | RunState.WAITING if line.set_aside:
            return f"it is set aside: {line.set_aside}", f"answerback runs requeue {line.id}"
        case RunState.WAITING:
            return "it waits behind another run of its chat", f"answerback chats show {line.chat}"
        case RunState.READY if line.kept:
            act = "answerback doctor  # says what is wrong with the account"
            return "it is answered and waits for its account to send again", act
        case RunState.READY if late > 0:
            act = f"answerback runs requeue {line.id}  # makes it due at once"
            return f"it is ready and due in {late:.0f} s", act
        case RunState.READY:
            return "it is ready and due", "answerback stuck  # says whether nobody claims it"
        case RunState.ENDED:
            return "it has ended", ""
        case other:
            assert_never(other)


def _facts(line: RunLine, e: Evidence) -> Sequence[tuple[str, str]]:
    deadline = "not begun" if e.deadline_at is None else f"in {e.deadline_at - e.now:.0f} s"
    parts = ", ".join(f"{p.number}: {p.state.value}" for p in e.parts) or "none"
    return [
        ("state", line.state.value),
        ("holder", (line.holder or "none") + (" (alive)" if line.holder_alive else "")),
        ("attempts", str(line.attempts)),
        ("failures", str(e.failures)),
        ("deaths of its holders", str(e.deaths)),
        ("deadline", deadline),
        ("last message", f"{e.now - e.last_message_at:.0f} s ago"),
        ("person last wrote", f"{e.now - e.window_opened_at:.0f} s ago"),
        ("reply stored", _yes(e.reply_stored)),
        ("apology stored", _yes(e.apology_stored)),
        ("parts", parts),
        ("a human answered", _yes(e.human_answered)),
        ("unreachable", "no" if e.silenced is None else e.silenced.words),
    ]


def _yes(fact: bool) -> str:  # noqa: FBT001 - it is the value that is put in words
    return "yes" if fact else "no"
