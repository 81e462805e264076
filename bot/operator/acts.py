"""Acts: the same as on the command line, shown before they are done.

The page of an act shows what it would do now, by doing it in a transaction that is rolled back. Its
button then does it, in one transaction under the same guards. If something happened in between, the
act is too late or refused, and the page says so in the same words as the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.exceptions import HTTPException
from starlette.responses import Response

from bot.domain.ending import Ending
from bot.domain.operators import Role
from bot.leases.runtime import Runtime
from bot.operations import chats, dead_letters, inbox, parts, recovering, runs
from bot.operations.actions import Acted, Operator, Result, apply
from bot.operations.reports.phrases import counted
from bot.operations.reports.stuck import Stuck, Trouble
from bot.operator.view import Asked, View
from storage import outbox
from storage import runs as run_rows
from storage.statements.tx import Tx
from storage.views import chats as chat_views
from storage.views.health import diagnostics

Do = Callable[[Tx, Runtime, Operator, int], Acted]


@dataclass(frozen=True, slots=True)
class Act:
    """Something that can be done with a run, a part, a chat or a dead letter (`of`). `name` stands
    for it in addresses, `label` is the text of its button, and `means` explains it."""

    name: str
    of: str
    label: str
    means: str
    do: Do


_ACTS = (
    Act(
        "requeue",
        "run",
        "Requeue",
        "It is worked on again, in the way that its state allows; what arrived is not sent again.",
        partial(runs.requeue),
    ),
    Act(
        "requeue-anyway",
        "run",
        "Requeue, although it may double",
        "As before, and sent although the person may have it already.",
        partial(runs.requeue, may_duplicate=True),
    ),
    Act(
        "apologise",
        "run",
        "Apologise",
        "It is given up. The person is told once, and asked to send it again.",
        runs.apologise,
    ),
    Act(
        "answered",
        "run",
        "Close as answered",
        "It ends as answered and nothing more of it is sent. Say in the reason how you know.",
        partial(runs.close, wanted=Ending.ANSWERED),
    ),
    Act(
        "cancelled",
        "run",
        "Close as cancelled",
        "It ends and nothing more of it is sent; the person is told nothing.",
        partial(runs.close, wanted=Ending.CANCELLED),
    ),
    Act(
        "delivered",
        "part",
        "It arrived",
        "After a look at the chat: it counts as sent.",
        partial(parts.resolve, arrived=True),
    ),
    Act(
        "lost",
        "part",
        "It did not arrive",
        "After a look at the chat: it is sent once more.",
        partial(parts.resolve, arrived=False),
    ),
    Act(
        "resume",
        "chat",
        "Give back, and answer",
        "The agent answers again, what waited first.",
        partial(chats.resume, drop=False),
    ),
    Act(
        "resume-drop",
        "chat",
        "Give back, without what waited",
        "The agent answers what comes from now on; what waited is cancelled.",
        partial(chats.resume, drop=True),
    ),
    Act(
        "pause",
        "chat",
        "Pause",
        "The agent answers nothing here until the chat is given back; what comes waits.",
        partial(chats.pause, seconds=None),
    ),
    Act(
        "answered",
        "chat",
        "Mark as answered",
        "Somebody answered in another way: what waits ends as answered, and nothing is sent.",
        inbox.mark_answered,
    ),
    Act(
        "dismiss",
        "letter",
        "Dismiss",
        "It is taken off the list, and stays stored.",
        dead_letters.dismiss,
    ),
)
ACTS = {(act.of, act.name): act for act in _ACTS}
Choice = tuple[Act, int]
"""An act, and the number of the row that it would be done with."""


def acts_of_run(*names: str, run: int) -> Sequence[Choice]:
    """The acts on runs with these names, for this run."""
    return [(ACTS["run", name], run) for name in names]


def choices(item: Stuck) -> Sequence[Choice]:
    """The acts that may help with something that is stuck, the safest first."""
    number = item.id if isinstance(item.id, int) else 0
    match item.kind:
        case Trouble.SET_ASIDE:
            return acts_of_run("requeue", "apologise", run=number)
        case Trouble.OVER_DEADLINE:
            return acts_of_run("apologise", run=number)
        case Trouble.DELAYED:
            return () if item.what.startswith("part") else acts_of_run("requeue", run=number)
        case Trouble.UNCERTAIN if item.what.startswith("run"):
            return acts_of_run("requeue", "answered", run=number)
        case Trouble.UNCERTAIN:
            return [(ACTS["part", "delivered"], number), (ACTS["part", "lost"], number)]
        case Trouble.REFUSED:
            return acts_of_run("requeue", "cancelled", run=item.run) if item.run else ()
        case Trouble.PAUSED | Trouble.WANTED:
            return [(ACTS["chat", "resume"], number), (ACTS["chat", "resume-drop"], number)]
        case Trouble.DEAD_LETTER:
            return [(ACTS["letter", "dismiss"], number)]
        case (
            Trouble.SCHEMA
            | Trouble.DATABASE
            | Trouble.SILENT
            | Trouble.DEAD_LEASE
            | Trouble.WORKER_GONE
            | Trouble.CHANNEL_DOWN
            | Trouble.CUT_OFF
            | Trouble.WEBHOOK
            | Trouble.UNCLAIMED
            | Trouble.BLOCKED
            | Trouble.UNSENT
            | Trouble.WAKE_UPS
        ):
            return ()


def recovers(item: Stuck) -> bool:
    """Tell whether a recovery pass helps with it."""
    return item.act.startswith("answerback recover")


def _exists(tx: Tx, of: str, number: int) -> bool:
    match of:
        case "run":
            return run_rows.find(tx, number) is not None
        case "part":
            return outbox.get(tx, number) is not None
        case "chat":
            return bool(chat_views.chats_listed(tx, [number]))
        case _:
            return True


async def _named(asked: Asked) -> tuple[Act, int]:
    """The act that the path names, and the number that it is for. Raises HTTPException."""
    of = asked.request.path_params["of"]
    act, number = ACTS.get((of, asked.request.path_params["act"])), asked.number("number")
    if act is None or not await asked.read(_exists, of, number):
        raise HTTPException(404, "there is nothing like it")
    return act, number


async def plan(asked: Asked) -> Response:
    """Show the outcome that an act would have now, without changing anything."""
    act, number = await _named(asked)
    acted = await _applied(asked, act, number, dry_run=True)
    return asked.page(
        "act.html", act=act, number=number, acted=acted, done=False, back=_back(act, number)
    )


async def do(asked: Asked) -> Response:
    """Do the act, and show its outcome: done, too late, or refused and why."""
    act, number = await _named(asked)
    acted = await _applied(asked, act, number, dry_run=False)
    status = 200 if acted.result is Result.DONE else 409
    back = _back(act, number)
    return asked.page("act.html", status, act=act, number=number, acted=acted, done=True, back=back)


async def _applied(asked: Asked, act: Act, number: int, *, dry_run: bool) -> Acted:
    by, rt = asked.operator(), asked.rt
    return await apply(rt, lambda tx: act.do(tx, rt, by, number), dry_run=dry_run)


def _back(act: Act, number: int) -> str:
    """The path of the page about the run or chat of an act; empty for a part or a dead letter."""
    return f"/{act.of}s/{number}" if act.of in ("run", "chat") else ""


async def plan_recovery(asked: Asked) -> Response:
    """Show what a recovery pass would release now."""
    dead = await asked.read(diagnostics.dead_runs, asked.tools.lease_seconds)
    says = f"{counted(len(dead), 'run')} of dead processes would be released"
    return asked.page("recovery.html", says=says, done=False)


async def do_recovery(asked: Asked) -> Response:
    """Do one recovery pass, and show what it did."""
    did = await recovering.recover(asked.rt, asked.who)
    says = (
        f"released: {counted(did.released, 'run')}; uncertain: {counted(did.uncertain, 'part')}; "
        f"going on: {counted(did.promoted, 'chat')}"
    )
    return asked.page("recovery.html", says=says, done=True)


_PATH = "/acts/{of}/{number:int}/{act}"
VIEWS = (
    View(_PATH, plan, role=Role.ACTING),
    View(_PATH, do, method="POST", role=Role.ACTING),
    View("/acts/recover", plan_recovery, role=Role.ACTING),
    View("/acts/recover", do_recovery, method="POST", role=Role.ACTING),
)
