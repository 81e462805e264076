"""The turn status of a message, for whoever asks by its request id. Only reads."""

from __future__ import annotations

from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.decisions.admission import Unanswered
from bot.domain.ending import TurnStatus, status_of
from bot.domain.run import RunState
from storage.statements.tx import Tx
from storage.views.lookup import recorded_under


def turn_status(tx: Tx, request_id: str, account: int | None = None) -> TurnAnswer:
    """The turn status of a message. Without an account, the newest message with that id counts,
    since ids are unique only within an account."""
    said = recorded_under(tx, request_id, account)
    if said is None:
        return TurnAnswer(request_id, TurnStatus.UNKNOWN, TurnStatus.UNKNOWN.says)
    if said.run is None:
        told = f"It was recorded and gets no answer: {(said.ignored or Unanswered.COMMAND).says}."
        return TurnAnswer(request_id, TurnStatus.COMPLETED, told)
    status = status_of(said.ending)
    return TurnAnswer(
        request_id,
        status,
        status.says,
        queued=said.state in (RunState.WAITING, RunState.READY),
        ending=said.ending,
        answer=said.answer if status is TurnStatus.COMPLETED else None,
    )
