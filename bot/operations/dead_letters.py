"""Acts on dead letters: payloads that were acknowledged and could not be read."""

from __future__ import annotations

from bot.leases.runtime import Runtime
from bot.operations.actions import Acted, Operator, Subject
from storage import audit_log, inbox
from storage.statements.tx import Tx


def dismiss(tx: Tx, _rt: Runtime, by: Operator, letter: int) -> Acted:
    """Take a dead letter off the list of what is stuck; it stays stored."""
    it, reason = Subject(f"letter {letter}"), by.because("dismissed")
    if not inbox.dismiss_dead_letter(tx, letter, reason):
        return it.too_late("it is on no list")
    audit_log.note(tx, by.name, "dismissed a dead letter", f"payload {letter}: {reason}")
    return it.done("off the list")
