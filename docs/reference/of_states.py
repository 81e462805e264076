"""The page of the states that a row can be in, from the enums and the packages' diagrams."""

from __future__ import annotations

import inspect
from types import ModuleType

from form import MADE, page, table

import storage.outbox
import storage.runs
from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.run import RunState
from bot.leases.checkpoints import Checkpoint

_STATES = """\
Every state that a row can be in, and every move between them. Each move is one guarded statement;
the names at the right are functions of `storage/runs/__init__.py` and `storage/outbox/__init__.py`,
and `tests/storage/test_writers.py::test_the_state_diagram_names_every_move_and_nothing_else` holds
the diagrams against them. Why it is built so: [how it works](how-it-works.md)."""


_CRASHES = """\
`tests/crash/test_matrix.py` lets a process die at each of these instants, starts the next, and
compares the rows with those of a run in which nobody died."""


def states() -> str:
    """The page of the states of runs and parts, of endings and of crashes that are tested."""
    endings = [(f"`{e}`", e.rule.says, e.rule.reaction.value, f"`{e.rule.status}`") for e in Ending]
    crashes = [(f"`{point.name}`", point.value) for point in Checkpoint]
    return page(
        "# States and moves",
        MADE,
        _STATES,
        "## A run",
        _rest(RunState),
        _diagram(storage.runs),
        "## A part of an answer",
        _rest(PartState),
        _diagram(storage.outbox),
        "## How a run ends",
        "`answerback explain` prints this table; `status` is what `answerback status` says.",
        table(("ending", "what it means", "what follows", "status"), endings),
        "## Where the tests die",
        _CRASHES,
        table(("instant", "what is stored by then"), crashes),
    )


def _rest(kind: type) -> str:
    """The docstring of an enum behind its first paragraph."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[2]


def _diagram(module: ModuleType) -> str:
    """The indented lines of a package's docstring."""
    lines = (module.__doc__ or "").splitlines()
    shown = [line.removeprefix("    ") for line in lines if line.startswith("    ")]
    return "\n".join(["```text", *shown, "```"])
