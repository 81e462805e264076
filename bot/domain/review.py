"""What a run that has ended is called once more is known of its parts."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.delivery import ARRIVED, PartState
from bot.domain.ending import Ending
from bot.domain.verdict import Close, PartFacts

_BY_DELIVERY = frozenset({Ending.ANSWERED, Ending.UNCERTAIN, Ending.UNDELIVERABLE})
"""Endings that only say what became of a stored answer."""
_UNDER_WAY = frozenset({PartState.PENDING, PartState.SENDING})


def review(ending: Ending, parts: Sequence[PartFacts]) -> Close | None:
    """The other ending that fits the parts of the answer by now; None: it stays as it is.

    `parts` are those of the reply or the apology, without any that another took over.
    """
    if not parts:
        return None
    arrived = all(p.state in ARRIVED for p in parts)
    refused = next((p.error for p in parts if p.state is PartState.REFUSED), None)
    after: Close | None = None
    if ending is Ending.APOLOGISED and refused is not None:
        after = Close(Ending.FAILED, f"the apology was refused: {refused}")
    elif ending is Ending.FAILED and arrived:
        after = Close(Ending.APOLOGISED, "the apology arrived after all")
    elif ending in _BY_DELIVERY:
        after = _by_delivery(ending, parts, refused, arrived=arrived)
    return None if after is None or after.ending is ending else after


def _by_delivery(
    ending: Ending, parts: Sequence[PartFacts], refused: str | None, *, arrived: bool
) -> Close | None:
    if refused is not None:
        return Close(Ending.UNDELIVERABLE, refused)
    if arrived:
        return Close(Ending.ANSWERED, "a late witness saw every part arrive")
    again = next((p for p in parts if p.state in _UNDER_WAY), None)
    if again is not None and ending is Ending.ANSWERED:
        return Close(Ending.UNCERTAIN, f"sent once more: {again.error}")
    doubtful = next((p for p in parts if p.state is PartState.UNCERTAIN), None)
    if doubtful is not None and ending is not Ending.ANSWERED:
        return Close(Ending.UNCERTAIN, doubtful.error)
    return None
