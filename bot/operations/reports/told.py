"""The note that the ending of a run owes the person, and its way as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Ending, Note
from bot.domain.reply import PartKind
from storage.outbox import Notice
from storage.statements.tx import Tx
from storage.views import parts
from storage.views.parts import PartFilter, PartLine
from storage.views.runs import RunLine

_NOTICES = {Note.UNCERTAIN: Notice.UNCERTAIN, Note.TOO_OLD: Notice.TOO_OLD}
_OWED = (Cause.UNCONFIRMED, Cause.TOO_OLD)
"""The causes with which an ending owes its note."""
_AT_MOST = 20
"""Notices and parts of an apology that a run has at most."""


def what_was_told(tx: Tx, run: RunLine) -> str:
    """A sentence about the note that this run's ending owes; empty where it owes none."""
    if run.ending is None:
        return ""
    wanted = PartFilter(runs=(run.id,), kinds=(PartKind.NOTICE, PartKind.APOLOGY), limit=_AT_MOST)
    return told(run.ending, run.cause, parts.parts_listed(tx, wanted))


def told(ending: Ending, cause: Cause | None, notes: Sequence[PartLine]) -> str:
    """The sentence, from the notices and the apology of a run."""
    if ending is Ending.APOLOGISED:
        return " ".join(_became("The apology", n) for n in notes if n.kind is PartKind.APOLOGY)
    number = None if ending.rule.note is None else _NOTICES.get(ending.rule.note)
    found = [n for n in notes if n.kind is PartKind.NOTICE and n.part == number]
    if found:
        return _became("The note about it to the person", found[0])
    return "The person was told nothing of it." if number and cause in _OWED else ""


def _became(what: str, part: PartLine) -> str:
    named = f"{what} (part {part.id})"
    match part.state:
        case PartState.PENDING | PartState.SENDING:
            return f"{named} is on its way."
        case PartState.SENT:
            return f"{named} was sent."
        case PartState.DELIVERED | PartState.READ:
            return f"{named} arrived."
        case PartState.UNCERTAIN:
            return f"{named} may not have arrived either."
        case PartState.REFUSED:
            return f"{named} was refused: {part.error or 'without a reason'}."
        case PartState.DROPPED:
            return f"{named} was not sent."
        case other:
            assert_never(other)
