"""Everything that stands still and needs eyes: the worst first, each with its cause in one
sentence and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bot.domain.findings import Level
from bot.domain.ports import Clock
from storage.engine.demands import facts_of, judge
from storage.engine.tx import Tx
from storage.views import diagnostics
from storage.views.diagnostics import Fact, Queue

_LATE = 2 / 3
"""Of a lease: a process that renews at all has done so by then."""
_REFUSALS = 7 * 86_400.0
"""Seconds for which a refused part is listed."""


class Trouble(Enum):
    """Kinds of trouble, the worst first; the value is the name that is shown."""

    SCHEMA = "old schema"
    DATABASE = "database unfit"
    SILENT = "can't write"
    DEAD_LEASE = "dead lease"
    WORKER_GONE = "no worker"
    CHANNEL_DOWN = "channel down"
    CUT_OFF = "nothing comes in"
    WEBHOOK = "webhook fails"
    SET_ASIDE = "set aside"
    OVER_DEADLINE = "over the deadline"
    UNCLAIMED = "nobody claims it"
    UNCERTAIN = "sent? unknown"
    REFUSED = "refused"
    BLOCKED = "chat blocked"
    PAUSED = "chat paused"
    UNSENT = "not sent yet"
    DELAYED = "delayed"
    DEAD_LETTER = "dead letter"
    WAKE_UPS = "wake-ups lost"


@dataclass(frozen=True, slots=True)
class Stuck:
    """One thing that stands still since `since` seconds. `id` names the run, part, chat,
    payload or account; `act` is the command that helps and what it does."""

    kind: Trouble
    id: int | str
    since: float
    why: str
    act: str


def find_stuck(tx: Tx, older: float, lease: float) -> Sequence[Stuck]:
    """Everything that the database knows to stand still, worst first, then oldest.

    What moved within `older` seconds is not stuck; a renewal is worth `lease` seconds.
    """
    found = [
        *silent_processes(tx, lease),
        *_runs(tx, older, lease),
        *_unclaimed(tx, older, lease),
        *_parts(tx, older, lease),
        *map(_queue, diagnostics.waiting_chats(tx, older)),
        *_channels(tx),
    ]
    return in_order(found)


def database_troubles(url: str, clock: Clock) -> Sequence[Stuck]:
    """The demands that the database does not meet now. Raises DatabaseUnavailable."""
    return [
        Stuck(Trouble.DATABASE, "database", 0.0, finding.says, finding.fix)
        for finding in judge(facts_of(url, clock))
        if finding.level is Level.PROBLEM
    ]


def in_order(found: Sequence[Stuck]) -> Sequence[Stuck]:
    """Worst first, then oldest."""
    worst_first = list(Trouble)
    return sorted(found, key=lambda stuck: (worst_first.index(stuck.kind), -stuck.since))


def silent_processes(tx: Tx, lease: float) -> Sequence[Stuck]:
    """Processes that are there and do not renew their lease."""
    says = "runs and does not renew its lease: it can't write, or it stands still"
    act = "answerback doctor  # names what can't be written; its own /readyz and log say more"
    return [
        Stuck(Trouble.SILENT, row.name, row.lease_age, f"{row.name} (pid {row.pid}) {says}", act)
        for row in diagnostics.silent_holders(tx, lease * _LATE)
    ]


def _runs(tx: Tx, older: float, lease: float) -> Iterator[Stuck]:
    for fact in diagnostics.dead_runs(tx, lease):
        why = f"lease expired: {fact.says} died or hangs while it worked on run {fact.id}"
        act = "answerback recover  # releases what dead processes held"
        yield Stuck(Trouble.DEAD_LEASE, fact.id, fact.since, why, act)
    for fact in diagnostics.runs_set_aside(tx):
        why = f"it is kept from being claimed: {fact.says}"
        act = f"answerback runs requeue {fact.id}  # or apologise; it then may be claimed again"
        yield Stuck(Trouble.SET_ASIDE, fact.id, fact.since, why, act)
    for fact in diagnostics.late_runs(tx, older):
        why = "timeout: its agent is past the deadline and did not stop"
        act = f"answerback runs apologise {fact.id}  # ends the work and says so to the person"
        yield Stuck(Trouble.OVER_DEADLINE, fact.id, fact.since, why, act)
    for fact in diagnostics.put_off_runs(tx, older):
        act = f"answerback runs requeue {fact.id}  # makes it due at once"
        yield Stuck(Trouble.DELAYED, fact.id, fact.since, f"the run is {fact.says}", act)


def _unclaimed(tx: Tx, older: float, lease: float) -> Iterator[Stuck]:
    late = diagnostics.unclaimed_runs(tx, older)
    workers = diagnostics.live_senders(tx, lease) if late else 0
    for fact in late:
        if not workers:
            why = "it is due and no worker is alive"
            act = "answerback serve  # starts one; it takes what is due"
            yield Stuck(Trouble.WORKER_GONE, fact.id, fact.since, why, act)
        else:
            why = "it is due, and the workers are full or do not serve its account"
            act = f"answerback runs why {fact.id}  # then `answerback top` for the workers"
            yield Stuck(Trouble.UNCLAIMED, fact.id, fact.since, why, act)


def _parts(tx: Tx, older: float, lease: float) -> Iterator[Stuck]:
    for fact in diagnostics.orphan_parts(tx, lease):
        why = f"part {fact.id} was being sent by a process that died: sent? unknown"
        act = "answerback recover  # marks it as uncertain, sends nothing"
        yield Stuck(Trouble.DEAD_LEASE, fact.id, fact.since, why, act)
    for fact in diagnostics.uncertain_parts(tx):
        why = f"sent? unknown: {fact.says or 'nobody told'}{_of(fact)}"
        act = (
            f"answerback outbox resolve {fact.id} --delivered  # after a look at the chat;"
            " --lost sends it once more"
        )
        yield Stuck(Trouble.UNCERTAIN, fact.id, fact.since, why, act)
    for fact in diagnostics.restored_runs(tx):
        act = (
            f"answerback runs requeue {fact.id}  # has it answered, after a look at the chat;"
            f" `runs close {fact.id} --as answered --reason restored` takes it off this list"
        )
        yield Stuck(Trouble.UNCERTAIN, fact.id, fact.since, f"answered? unknown: {fact.says}", act)
    for fact in diagnostics.refused_parts(tx, _REFUSALS):
        why = f"the platform refused it: {fact.says or 'without a reason'}{_of(fact)}"
        yield Stuck(Trouble.REFUSED, fact.id, fact.since, why, _after_refusal(fact))
    for fact in diagnostics.unsent_words(tx, older):
        why = f"it is due and nobody sends it{': ' + fact.says if fact.says else ''}{_of(fact)}"
        act = "answerback top  # is a worker alive that serves its account?"
        yield Stuck(Trouble.UNSENT, fact.id, fact.since, why, act)
    for fact in diagnostics.delayed_parts(tx, older):
        act = "answerback outbox list --state pending  # it goes out by itself when it is due"
        yield Stuck(Trouble.DELAYED, fact.id, fact.since, f"{fact.says}{_of(fact)}", act)


def _of(fact: Fact) -> str:
    return "" if fact.run is None else f" (run {fact.run})"


def _after_refusal(fact: Fact) -> str:
    if fact.run is None:
        return f"answerback outbox list --before {fact.id + 1} --limit 1  # shows it"
    return (
        f"answerback runs requeue {fact.run}  # sends it once more;"
        f" `runs close {fact.run} --as cancelled` takes it off this list"
    )


def _queue(queue: Queue) -> Stuck:
    wait = f"{queue.waiting} run(s) wait, the oldest for {queue.since:.0f} s"
    if queue.paused:
        act = f"answerback chats resume {queue.chat}  # answers what waits; --drop cancels it"
        return Stuck(Trouble.PAUSED, queue.chat, queue.since, f"{wait}: the chat is paused", act)
    if queue.head is None:
        act = "answerback recover  # lets the first of them begin"
        return Stuck(Trouble.BLOCKED, queue.chat, queue.since, f"{wait}, behind nothing", act)
    act = f"answerback runs why {queue.head}  # says what may be done with it"
    why = f"{wait} behind run {queue.head}, which is {queue.head_state}"
    return Stuck(Trouble.BLOCKED, queue.chat, queue.since, why, act)


def _channels(tx: Tx) -> Iterator[Stuck]:
    if fact := diagnostics.unparsed_payloads(tx):
        why = f"{fact.count} dead letter(s), payloads that nobody could read; last: {fact.says}"
        act = "answerback letters list  # then `letters dismiss`"
        yield Stuck(Trouble.DEAD_LETTER, fact.id, fact.since, why, act)
    for fact in diagnostics.accounts_cut_off(tx):
        act = "answerback doctor  # says more; what waits at the platform comes in afterwards"
        yield Stuck(Trouble.CUT_OFF, fact.id, fact.since, f"nothing comes in: {fact.says}", act)
    for fact in diagnostics.accounts_down(tx):
        act = "answerback doctor  # says what is wrong; a restart tries the account again"
        more = "+" if fact.count == diagnostics.AT_MOST else ""
        kept = f"; {fact.count}{more} run(s) are answered and wait for it" if fact.count else ""
        why = f"it can't send: {fact.says}{kept}"
        yield Stuck(Trouble.CHANNEL_DOWN, fact.id, fact.since, why, act)
