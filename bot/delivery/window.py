"""Ways to write to a chat whose window is closed: an answer in a template, or an invitation.

Without a template nothing leaves, and the run is undeliverable. When the person writes
again, the new message makes a new run, and its turn's history shows what was not answered.
"""

from __future__ import annotations

from bot.domain.delivery import PartState
from bot.domain.ports import OutsideWindow
from bot.domain.reply import PartBody, PartKind
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import audit_log, chats, outbox
from storage.chats import Chat
from storage.outbox import Part, PartOwner
from storage.statements.tx import Tx

_INVITED_AGAIN_AFTER = 86_400.0
"""Seconds for which a chat is invited once only."""
_MISSING = frozenset({PartState.PENDING, PartState.REFUSED})


def put_into_template(tx: Tx, rt: Runtime, part: Part) -> bool:
    """Put a pending part, with the parts behind it, into a template that may leave in a closed
    window. False: there is no template, or the part is not worth one. The chat is locked."""
    carrier = rt.carriers.get(part.account)
    if carrier is not None and carrier.leaves_outside(part.body):
        return True
    body = _template(tx, rt, part)
    if body is None or not outbox.rewrite(tx, part.id, body):
        return False
    _drop_what_it_carries(tx, part)
    return True


def try_template(tx: Tx, rt: Runtime, part: Part, *, standalone: bool) -> bool:
    """Send a part once more, in a template, after the platform refused it because the window is
    closed. False: there is no template, or the part was in one already. The chat is locked."""
    carrier = rt.carriers.get(part.account)
    if carrier is None or carrier.leaves_outside(part.body):
        return False
    body = _template(tx, rt, part)
    if body is None or not outbox.send_again(tx, part.id, 0.0, standalone=standalone, body=body):
        return False
    _drop_what_it_carries(tx, part)
    return True


def invite(tx: Tx, rt: Runtime, chat: Chat) -> None:
    """Ask the person, in the template that was made for this, to write again; once a day."""
    carrier = rt.carriers.get(chat.account)
    if carrier is None or chat.opted_out_at is not None:
        return
    if rt.channels[chat.account].traits.outside_window is not OutsideWindow.INVITATION:
        return
    body = carrier.outside_window(rt.words.say(Text.TOO_OLD, chat.language))
    if body is not None and chats.tell_once(tx, chat.id, "invited", _INVITED_AGAIN_AFTER):
        outbox.post(tx, PartOwner(chat.account, chat.id, None), PartKind.NOTICE, body)


def _template(tx: Tx, rt: Runtime, part: Part) -> PartBody | None:
    """The words of the part and those behind it, in a template; notices are not worth one."""
    carrier = rt.carriers.get(part.account)
    carries = rt.channels[part.account].traits.outside_window is OutsideWindow.ANSWER
    if carrier is None or not carries or part.kind is PartKind.NOTICE:
        return None
    words = [part.body.text]
    if part.run is not None and part.kind is not PartKind.OPERATOR:
        answer = outbox.of_run_any(tx, part.run)
        words += [p.body.text for p in answer if p.number > part.number and p.state in _MISSING]
    return carrier.outside_window("\n".join(words))


def _drop_what_it_carries(tx: Tx, part: Part) -> None:
    """Drop the other parts of an answer whose words are in the template of this one."""
    if part.run is not None and part.kind is not PartKind.OPERATOR:
        outbox.drop_others(tx, part.run, part.id)
    audit_log.note(tx, "delivery", "put into a template", run=part.run, chat=part.chat)
