"""Everything that stands still and needs eyes: the worst first, each with its cause in one
sentence and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bot.domain.findings import Level
from bot.domain.ports import Clock
from bot.domain.run import RunState
from bot.operations.reports.phrases import counted, span, when
from storage import holders
from storage.engine.demands import facts_of, judge
from storage.statements import clock as database_clock
from storage.statements.tx import Tx
from storage.views import handoffs
from storage.views.handoffs import Wanted
from storage.views.health import diagnostics
from storage.views.health.diagnostics import Fact, Queue
from storage.views.runs import RunLine

_AT_ONCE = 5.0
"""Seconds in which a worker takes what is due, if one can."""
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
    WANTED = "wants a person"
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
    payload or account; `act` is the command that helps and what it does.

    `what` says in words what `id` names, `run` is the run whose part it is, and `account` its
    account, both by number and 0 for none.
    """

    kind: Trouble
    id: int | str
    since: float
    why: str
    act: str
    what: str = ""
    account: int = 0
    run: int = 0

    @property
    def named(self) -> str:
        """The thing in words, as lists of all runs name it."""
        return (
            f"{self.what or self.id} of run {self.run}" if self.run else self.what or str(self.id)
        )


def find_stuck(tx: Tx, older: float, lease: float) -> Sequence[Stuck]:
    """Everything that the database knows to stand still, worst first, then oldest.

    What moved within `older` seconds is not stuck; a renewal is worth `lease` seconds.
    """
    found = [
        *silent_processes(tx, lease),
        *_runs(tx, older, lease),
        *_unclaimed(tx, older, lease),
        *_parts(tx, older, lease),
        *_chats(tx, older),
        *_channels(tx),
    ]
    return in_order(found)


def stuck_of_run(tx: Tx, run: RunLine, lease: float) -> Sequence[Stuck]:
    """All of it that concerns one run, from when no worker was at once at hand: every screen that
    shows the run has its causes and its next command from here."""
    waits = run.state is RunState.WAITING
    wanted = handoffs.wanted(tx, run.chat)
    found = [
        *_runs(tx, 0.0, lease, run.id),
        *_unclaimed(tx, _AT_ONCE, lease, run.id),
        *_parts(tx, _AT_ONCE, lease, run.id),
        *(_wanted(one) for one in wanted if waits or one.run == run.id),
        *(
            map(_queue, diagnostics.waiting_chats(tx, 0.0, run.chat))
            if waits and not wanted
            else ()
        ),
    ]
    return in_order(found)


def told_of_run(item: Stuck, run: int) -> str:
    """The cause, as a screen says it that is about this run."""
    return item.why if item.what == f"run {run}" else f"{item.what}: {item.why}"


def uncertain(tx: Tx, chat: int | None = None) -> Sequence[Stuck]:
    """The parts, of one chat or of all, that may or may not have arrived and that nobody looks
    after any more."""
    return in_order([_uncertain(fact) for fact in diagnostics.uncertain_parts(tx, chat=chat)])


def database_troubles(url: str, clock: Clock) -> Sequence[Stuck]:
    """The demands that the database does not meet now. Raises DatabaseUnavailable."""
    facts = facts_of(url, clock)
    if facts.foreign:
        # It is this user who may not write, and not the service.
        facts = replace(facts, refusal="", foreign=False)
    return [
        Stuck(Trouble.DATABASE, "database", 0.0, finding.says, finding.fix)
        for finding in judge(facts)
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
        Stuck(
            Trouble.SILENT,
            row.name,
            row.lease_age,
            f"{row.name} (pid {row.pid}) {says}",
            act,
            f"process {row.name}",
        )
        for row in holders.silent(tx, lease)
    ]


def _run(kind: Trouble, fact: Fact, why: str, act: str) -> Stuck:
    return Stuck(kind, fact.id, fact.since, why, act, f"run {fact.id}", fact.account)


def _part(kind: Trouble, fact: Fact, why: str, act: str) -> Stuck:
    what, run = f"part {fact.id}", fact.run or 0
    return Stuck(kind, fact.id, fact.since, why, act, what, fact.account, run)


def _runs(tx: Tx, older: float, lease: float, only: int | None = None) -> Iterator[Stuck]:
    for fact in diagnostics.dead_runs(tx, lease, only):
        why = f"lease expired: {fact.says} died or hangs while it worked on run {fact.id}"
        act = "answerback recover  # releases what dead processes held"
        yield _run(Trouble.DEAD_LEASE, fact, why, act)
    for fact in diagnostics.runs_set_aside(tx, only):
        why = f"it is kept from being claimed: {fact.says}"
        act = f"answerback runs requeue {fact.id}  # or apologise; it then may be claimed again"
        yield _run(Trouble.SET_ASIDE, fact, why, act)
    for fact in diagnostics.late_runs(tx, older, only):
        why = "timeout: its agent is past the deadline and did not stop"
        act = f"answerback runs apologise {fact.id}  # ends the work and says so to the person"
        yield _run(Trouble.OVER_DEADLINE, fact, why, act)
    put_off = diagnostics.put_off_runs(tx, older, only)
    now = database_clock.read(tx) if put_off else 0.0
    for fact in put_off:
        act = f"answerback runs requeue {fact.id}  # makes it due at once"
        why = f"it is due at {_due(now, fact)}" + (f": {fact.says}" if fact.says else "")
        yield _run(Trouble.DELAYED, fact, why, act)
    for fact in diagnostics.restored_runs(tx, only):
        act = (
            f"answerback runs requeue {fact.id}  # has it answered, after a look at the chat;"
            f" `runs close {fact.id} --as answered --reason restored` takes it off this list"
        )
        yield _run(Trouble.UNCERTAIN, fact, f"answered? unknown: {fact.says}", act)


def _unclaimed(tx: Tx, older: float, lease: float, only: int | None = None) -> Iterator[Stuck]:
    late = diagnostics.unclaimed_runs(tx, older, only)
    workers = diagnostics.live_senders(tx, lease) if late else 0
    for fact in late:
        if not workers:
            why = "it is due and no worker is alive"
            act = "answerback serve  # starts one; it takes what is due"
            yield _run(Trouble.WORKER_GONE, fact, why, act)
        else:
            why = "it is due, and the workers are full or do not serve its account"
            act = "answerback top  # says how many runs are in flight and which processes live"
            yield _run(Trouble.UNCLAIMED, fact, why, act)


def _parts(tx: Tx, older: float, lease: float, only: int | None = None) -> Iterator[Stuck]:
    for fact in diagnostics.orphan_parts(tx, lease, only):
        why = f"part {fact.id} was being sent by a process that died: sent? unknown"
        act = "answerback recover  # marks it as uncertain, sends nothing"
        yield _part(Trouble.DEAD_LEASE, fact, why, act)
    yield from map(_uncertain, diagnostics.uncertain_parts(tx, only))
    for fact in diagnostics.refused_parts(tx, _REFUSALS, only):
        why = f"the platform refused it: {fact.says or 'without a reason'}"
        yield _part(Trouble.REFUSED, fact, why, _after_refusal(fact))
    for fact in diagnostics.unsent_words(tx, older, only):
        why = "it is due and nobody sends it" + (f": {fact.says}" if fact.says else "")
        act = "answerback top  # is a worker alive that serves its account?"
        yield _part(Trouble.UNSENT, fact, why, act)
    delayed = diagnostics.delayed_parts(tx, older, only)
    now = database_clock.read(tx) if delayed else 0.0
    for fact in delayed:
        act = "answerback outbox list --state pending  # it goes out by itself when it is due"
        why = f"due at {_due(now, fact)}: {fact.says or 'the platform limits this chat'}"
        yield _part(Trouble.DELAYED, fact, why, act)


def _uncertain(fact: Fact) -> Stuck:
    why = f"it may or may not have arrived: {fact.says or 'nobody told'}"
    act = (
        f"answerback outbox resolve {fact.id} --delivered  # after a look at chat {fact.chat};"
        " --lost sends it once more"
    )
    return _part(Trouble.UNCERTAIN, fact, why, act)


def _due(now: float, fact: Fact) -> str:
    return when(now + fact.wait, now)


def _after_refusal(fact: Fact) -> str:
    if fact.run is None:
        return f"answerback outbox list --before {fact.id + 1} --limit 1  # shows it"
    return (
        f"answerback runs requeue {fact.run}  # sends it once more;"
        f" `runs close {fact.run} --as cancelled` takes it off this list"
    )


def _chats(tx: Tx, older: float) -> Iterator[Stuck]:
    """Chats that want a person, and others in which messages wait."""
    wanted = {one.chat: one for one in handoffs.wanted(tx)}
    yield from map(_wanted, wanted.values())
    for queue in diagnostics.waiting_chats(tx, older):
        if queue.chat not in wanted:
            yield _queue(queue)


def _wanted(one: Wanted) -> Stuck:
    waits = f", {counted(one.messages, 'message')} waiting" if one.messages else ""
    why = f"its agent asked for a person; nobody has answered for {span(one.since)}{waits}"
    what = f"chat {one.chat}"
    return Stuck(Trouble.WANTED, one.chat, one.since, why, _read_it(one.chat), what, one.account)


def _read_it(chat: int) -> str:
    return (
        f"answerback chats show {chat} --text  # what is wanted; then `chats reply {chat} TEXT`,"
        f" and `chats resume {chat}` gives it back"
    )


def _queue(queue: Queue) -> Stuck:
    waits = "waits" if queue.waiting == 1 else "wait"
    wait = f"{counted(queue.waiting, 'run')} {waits}, the oldest for {span(queue.since)}"
    if queue.paused and queue.handed_over:
        act = f"answerback chats resume {queue.chat}  # answers what waits; --drop cancels it"
        why = f"{wait}: its agent asked for a person, who has not given the chat back"
        return _chat(Trouble.PAUSED, queue, why, act)
    if queue.paused:
        act = f"answerback chats resume {queue.chat}  # answers what waits; --drop cancels it"
        return _chat(Trouble.PAUSED, queue, f"{wait}: the chat is paused", act)
    if queue.head is None:
        act = "answerback recover  # lets the first of them begin"
        return _chat(Trouble.BLOCKED, queue, f"{wait}, behind nothing", act)
    act = f"answerback runs why {queue.head}  # says what may be done with it"
    why = f"{wait} behind run {queue.head}, which is {queue.head_state}"
    return _chat(Trouble.BLOCKED, queue, why, act)


def _chat(kind: Trouble, queue: Queue, why: str, act: str) -> Stuck:
    what = f"chat {queue.chat}"
    return Stuck(kind, queue.chat, queue.since, why, act, what, queue.account)


def _channels(tx: Tx) -> Iterator[Stuck]:
    if fact := diagnostics.unparsed_payloads(tx):
        letters = counted(fact.count, "dead letter")
        why = f"{letters}, payloads that nobody could read; last: {fact.says}"
        act = "answerback letters list  # then `letters dismiss`"
        yield Stuck(Trouble.DEAD_LETTER, fact.id, fact.since, why, act, f"letter {fact.id}")
    for fact in diagnostics.accounts_cut_off(tx):
        act = "answerback doctor  # says more; what waits at the platform comes in afterwards"
        yield _account(Trouble.CUT_OFF, fact, f"nothing comes in: {fact.says}", act)
    for fact in diagnostics.accounts_down(tx):
        act = "answerback doctor  # says what is wrong; a restart or `webhook set` tries it again"
        most = "at least " if fact.count == diagnostics.AT_MOST else ""
        answers = f"{most}{counted(fact.count, 'stored answer')}"
        kept = f"; kept for it: {answers}" if fact.count else ""
        yield _account(Trouble.CHANNEL_DOWN, fact, f"it can't send: {fact.says}{kept}", act)


def _account(kind: Trouble, fact: Fact, why: str, act: str) -> Stuck:
    return Stuck(kind, fact.id, fact.since, why, act, f"account {fact.id}", fact.account)
