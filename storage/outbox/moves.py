"""The moves of a part, guarded by its run's claim or by the number of its attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from bot.domain.delivery import ARRIVED, PartState, Scope
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Claim, RunState
from storage import holders
from storage.outbox.rows import (
    ANSWERS,
    IS_PART,
    OF_CHAT,
    OF_RUN,
    PART,
    PENDING,
    SAID,
    SENDING,
    STANDALONE,
    UNCERTAIN,
    Notice,
    Part,
    of_run,
)
from storage.schema.tables import outbox, receipts, runs
from storage.schema.tables.outgoing import Watched
from storage.statements.binds import HOLDER_ID, PART_ID, WAIT
from storage.statements.chat_rows import Blank, MoveChat, Page
from storage.statements.clock import as_old, moved, now, stamped_before, waited
from storage.statements.insert import InsertOrSkip, insert_rows
from storage.statements.literals import is_in, is_not, word
from storage.statements.sets import Rows, among, within
from storage.statements.tx import Tx

_POST = InsertOrSkip(outbox, outbox.c.id, created_at=now)
_NEW_RECEIPT = InsertOrSkip(receipts, receipts.c.outbox, at=now)


@dataclass(frozen=True, slots=True)
class PartOwner:
    """The account, chat and run that a new part belongs to; `run` is None if it answers no run."""

    account: int
    chat: int
    run: int | None


@dataclass(frozen=True, slots=True)
class NewParts:
    """The parts of a run's reply or apology, as `store_parts` takes them. The first one is
    `sending` at once for the holder `first_by`, if any."""

    to: PartOwner
    kind: PartKind
    bodies: Sequence[PartBody]
    first_by: int | None = None
    reply: str | None = None
    """The reply in the agent's own words; None for an apology."""

    def rows(self) -> Iterable[Sequence[object]]:
        """One row for each part, in the columns of `_new`."""
        to, kind = self.to, self.kind.value
        for number, body in enumerate(self.bodies, 1):
            by = self.first_by if number == 1 else None
            reply = self.reply if number == 1 and self.reply != body.text else None
            yield to.account, to.chat, to.run, kind, number, body.text, body.wire, reply, by


_new = Rows(
    "parts",
    account=sa.BigInteger(),
    chat=sa.BigInteger(),
    run=sa.BigInteger(),
    kind=sa.Text(),
    part=sa.Integer(),
    text=sa.Text(),
    wire=sa.Text(),
    reply=sa.Text(),
    holder=sa.BigInteger(),
)
_begun = _new.c.holder.is_not(None)
_there = outbox.alias("there")
_known = sa.exists(
    sa.select(1).where(
        _there.c.run == _new.c.run, _there.c.kind == _new.c.kind, _there.c.part == _new.c.part
    )
)
_STORE_PARTS = insert_rows(
    outbox,
    _new,
    ~_known,
    standalone=sa.false(),
    created_at=now,
    state=sa.case((_begun, word(PartState.SENDING)), else_=word(PartState.PENDING)),
    attempts=sa.case((_begun, 1), else_=0),
    started_at=sa.case((_begun, now), else_=sa.literal(0.0)),
).returning(*PART.columns)


def store_parts(
    tx: Tx, to: PartOwner, kind: PartKind, bodies: Sequence[PartBody], first_by: int | None = None
) -> Sequence[Part]:
    """Insert a run's parts, pending; the first is `sending` at once for the holder `first_by`, if
    any. Parts that exist already stay as they are: after a lost answer, a commit is made again."""
    return store_parts_each(tx, [NewParts(to, kind, bodies, first_by)])[to.run or 0]


def store_parts_each(tx: Tx, new: Sequence[NewParts]) -> Mapping[int, Sequence[Part]]:
    """As `store_parts`, for several runs. Returns the parts in order, by their runs."""
    if not new:
        return {}
    stored: dict[int, list[Part]] = {one.to.run or 0: [] for one in new}
    rows = [row for one in new for row in one.rows()]
    for part in PART.all(tx.execute(_STORE_PARTS, _new.of(rows))):
        stored[part.run or 0].append(part)
    for one in new:
        run = one.to.run or 0
        if len(stored[run]) < len(one.bodies):
            stored[run] = [part for part in of_run(tx, run) if part.kind is one.kind]
        stored[run].sort(key=lambda part: part.number)
    return stored


FIRST_OF_EXPORT = 1000
"""The number of the first notice that carries a copy of the chat. Other notices without a run have
the number 1."""


def post(tx: Tx, to: PartOwner, kind: PartKind, body: PartBody, number: int = 1) -> int | None:
    """Insert a standalone part: a notice or an operator's words. Returns its id, or None if this
    notice was posted for the run before."""
    values = {
        "account": to.account,
        "chat": to.chat,
        "run": to.run,
        "kind": kind.value,
        "part": number,
        "state": PartState.PENDING.value,
        "standalone": True,
        "text": body.text,
        "wire": body.wire,
    }
    return _POST.run(tx, values)


_POST_SENT = InsertOrSkip(outbox, outbox.c.id, created_at=now, started_at=now, confirmed=sa.true())


def post_sent(tx: Tx, to: PartOwner, text: str, receipt: str, at: float) -> int:
    """Insert, as a part that was sent at the provider's time `at`, what a person of ours wrote with
    a device of their own."""
    values = {
        "account": to.account,
        "chat": to.chat,
        "kind": PartKind.OPERATOR.value,
        "part": 1,
        "state": PartState.SENT.value,
        "standalone": True,
        "text": text,
        "wire": "",
        "receipt": receipt,
        "sent_at": at,
    }
    part = _POST_SENT.run(tx, values)
    assert part is not None
    _NEW_RECEIPT.run(tx, {"outbox": part, "receipt": receipt, "attempt": 0})
    return int(part)


BEGUN: dict[str, Any] = {
    "state": word(PartState.SENDING),
    "holder": HOLDER_ID,
    "fence": outbox.c.fence + 1,
    "attempts": outbox.c.attempts + 1,
    "started_at": now,
}
"""pending -> sending: one more attempt, committed before the provider is called."""

_marked = Rows("marked", part_id=sa.BigInteger(), run_id=sa.BigInteger(), holder_id=sa.BigInteger())
_MARK_SENDING = (
    sa.update(outbox)
    .where(
        outbox.c.id == _marked.c.part_id,
        outbox.c.run == _marked.c.run_id,
        PENDING,
        ~outbox.c.standalone,
    )
    .values(**BEGUN | {"holder": _marked.c.holder_id})
    .returning(*PART.columns)
)


def mark_sending(tx: Tx, claim: Claim, part: int) -> Part | None:
    """pending -> sending, for a part of a run that is held (`runs.hold`). None: it is not pending
    any more."""
    return mark_sending_each(tx, [(claim, part)]).get(part)


def mark_sending_each(tx: Tx, marked: Sequence[tuple[Claim, int]]) -> Mapping[int, Part]:
    """As `mark_sending`, for parts of several runs (`of_held`). Returns those that were still
    pending, by their ids."""
    if not marked:
        return {}
    rows = [(part, claim.run, claim.holder) for claim, part in marked]
    begun = PART.all(tx.execute(_MARK_SENDING, _marked.of(rows)))
    return {part.id: part for part in begun}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to send one part: outcomes are recorded for it. `looks` is the number of looks at the
    provider's list that were recorded before this one."""

    part: int
    number: int
    looks: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """The provider's id for what an attempt sent. `reported`: statuses will refer to it later."""

    attempt: Attempt
    name: str
    reported: bool


_RECEIVED: dict[str, Any] = {
    "state": word(PartState.SENT),
    "holder": None,
    "receipt": sa.bindparam("new_receipt"),
    "sent_at": now,
    "error": "",
    "code": "",
    "scope": None,
}
_NOT_ARRIVED = ~is_in(outbox.c.state, *sorted(ARRIVED))
_RECEIVE = sa.update(outbox).where(IS_PART, _NOT_ARRIVED).values(**_RECEIVED)
_taken = Rows("taken", part_id=sa.BigInteger(), receipt=sa.Text())
_RECEIVE_FIRST = (
    sa.update(outbox)
    .where(outbox.c.id == _taken.c.part_id, _NOT_ARRIVED, outbox.c.receipt.is_(None))
    .values(**_RECEIVED | {"receipt": _taken.c.receipt})
    .returning(outbox.c.id)
)
_kept = Rows("kept", outbox=sa.BigInteger(), receipt=sa.Text(), attempt=sa.Integer())
_KEEP = insert_rows(receipts, _kept, at=now).on_conflict_do_nothing()
_KEEP_OWN = (
    insert(receipts)
    .from_select(
        ["outbox", "receipt", "attempt", "at"],
        sa.select(outbox.c.id, outbox.c.receipt, outbox.c.attempts, outbox.c.sent_at).where(
            IS_PART, outbox.c.receipt.is_not(None)
        ),
    )
    .on_conflict_do_nothing()
)


def receive(tx: Tx, attempt: Attempt, receipt: str) -> bool:
    """Any unfinished state -> sent, whoever holds the run. A receipt that is known changes nothing.
    False: it is a new receipt of a part that had arrived, so the person has the part twice."""
    tx.later(_KEEP_OWN, {"part_id": attempt.part})
    kept = tx.execute(_KEEP, _kept.of([(attempt.part, receipt, attempt.number)]))
    if not kept.rowcount:
        return True
    values = {"part_id": attempt.part, "new_receipt": receipt}
    return tx.execute(_RECEIVE, values).rowcount == 1


def receive_first(tx: Tx, taken: Sequence[Receipt]) -> frozenset[int]:
    """As `receive`, for parts that had no receipt before. Returns those. If no status will refer to
    a receipt, it is only stored on the row of its part."""
    if not taken:
        return frozenset()
    rows = [(one.attempt.part, one.name) for one in taken]
    moved = frozenset(tx.scalars(_RECEIVE_FIRST, _taken.of(rows)))
    kept = [
        (one.attempt.part, one.name, one.attempt.number)
        for one in taken
        if one.reported and one.attempt.part in moved
    ]
    if kept:
        tx.later(_KEEP, _kept.of(kept))
    return moved


_THIS_ATTEMPT = outbox.c.attempts == sa.bindparam("attempt")
_BELIEVE_ARRIVED = (
    sa.update(outbox)
    .where(IS_PART, UNCERTAIN, _THIS_ATTEMPT)
    .values(**_RECEIVED, confirmed=sa.true())
)


def believe_arrived(tx: Tx, attempt: Attempt, receipt: str) -> bool:
    """uncertain -> sent, on an operator's word. False: it is not uncertain any more."""
    values = {"part_id": attempt.part, "attempt": attempt.number}
    tx.later(_KEEP_OWN, {"part_id": attempt.part})
    return tx.execute(_BELIEVE_ARRIVED, values | {"new_receipt": receipt}).rowcount == 1


_OUTCOME = (
    sa.update(outbox)
    .where(IS_PART, _THIS_ATTEMPT)
    .values(holder=None, error=sa.bindparam("new_error"), code=sa.bindparam("new_code"))
)
_PROOF = _OUTCOME.where(is_in(outbox.c.state, PartState.SENDING, PartState.UNCERTAIN))
_NOT_SENT = _PROOF.values(state=word(PartState.PENDING), not_before=now + WAIT, looks=0)
_REFUSE = _PROOF.values(state=word(PartState.REFUSED), scope=sa.bindparam("new_scope"))
_DOUBT = _OUTCOME.where(SENDING).values(state=word(PartState.UNCERTAIN))


def _record_outcome(
    tx: Tx, move: sa.Update, attempt: Attempt, error: str, code: str, **values: object
) -> bool:
    values |= {"part_id": attempt.part, "attempt": attempt.number}
    return tx.execute(move, values | {"new_error": error, "new_code": code}).rowcount == 1


def not_sent(tx: Tx, attempt: Attempt, wait: float, error: str, code: str) -> bool:
    """sending | uncertain -> pending, due again in `wait` seconds: it is proven not to have left.
    The proof may come late, when somebody else has made the part uncertain already."""
    return _record_outcome(tx, _NOT_SENT, attempt, error, code, wait=wait)


def refuse(tx: Tx, attempt: Attempt, scope: Scope, error: str, code: str) -> bool:
    """sending | uncertain -> refused, for ever."""
    return _record_outcome(tx, _REFUSE, attempt, error, code, new_scope=scope.value)


def doubt(tx: Tx, attempt: Attempt, error: str, code: str = "") -> bool:
    """sending -> uncertain: it may have arrived."""
    return _record_outcome(tx, _DOUBT, attempt, error, code)


_LOOKED = (
    sa.update(outbox)
    .where(IS_PART, UNCERTAIN, _THIS_ATTEMPT, outbox.c.looks == sa.bindparam("known"))
    .values(looks=sa.bindparam("known") + 1)
)
_WAIT_ON = _LOOKED.values(
    looks=sa.bindparam("known") + sa.case((holders.listening(), 1), else_=0), not_before=now + WAIT
)
_NEVER = 1_000
"""More looks, or sends, than there ever are."""
_GIVE_UP_LOOKING = (
    sa.update(outbox).where(IS_PART, UNCERTAIN, _THIS_ATTEMPT).values(looks=_NEVER, resends=_NEVER)
)


def looked(tx: Tx, attempt: Attempt) -> bool:
    """Count a look at the provider's list that found nothing. False: it was counted already."""
    values = {"part_id": attempt.part, "attempt": attempt.number, "known": attempt.looks}
    return tx.execute(_LOOKED, values).rowcount == 1


def wait_on(tx: Tx, attempt: Attempt, seconds: float, lease_seconds: float) -> bool:
    """Wait `seconds` more for a status on an uncertain part. The time that is over only counts if
    some process can receive statuses now: after an outage of ours a platform takes its time to
    deliver them. False: it was counted already."""
    values = {
        "part_id": attempt.part,
        "attempt": attempt.number,
        "known": attempt.looks,
        "wait": seconds,
        "lease_seconds": lease_seconds,
    }
    return tx.execute(_WAIT_ON, values).rowcount == 1


def give_up_looking(tx: Tx, part: int, attempts: int) -> bool:
    """Leave an uncertain part as it is for good, since the provider can't be asked about it: it is
    not looked up any more, nor sent again by itself."""
    return tx.execute(_GIVE_UP_LOOKING, {"part_id": part, "attempt": attempts}).rowcount == 1


_STOP_LOOKING = (
    sa.update(outbox)
    .where(among(outbox.c.id, "ids"), UNCERTAIN)
    .values(looks=_NEVER, resends=_NEVER)
)


def stop_looking(tx: Tx, parts: Sequence[int]) -> None:
    """As `give_up_looking`, for several parts. Their words are about to be deleted, so they could
    not be looked for."""
    tx.execute(_STOP_LOOKING, {"ids": list(parts)})


_COPIES = sa.select(outbox.c.id).where(
    OF_CHAT,
    is_in(outbox.c.kind, PartKind.NOTICE),
    outbox.c.part >= FIRST_OF_EXPORT,
    outbox.c.wire != "",
    ~is_in(outbox.c.state, PartState.PENDING, PartState.SENDING),
)


def blank_copies(tx: Tx, chat: int) -> None:
    """Delete the words of copies of the chat that were sent before, so that only the newest copy is
    kept."""
    ids = tx.scalars(_COPIES, {"chat_id": chat}).all()
    stop_looking(tx, ids)
    blank(tx, ids)


_RESEND_ANY = (
    sa.update(outbox)
    .where(
        IS_PART,
        _THIS_ATTEMPT,
        outbox.c.wire != "",  # Deleted words can't be sent.
        outbox.c.replaced_by.is_(None),  # Another part carries these.
    )
    .values(
        state=word(PartState.PENDING),
        resends=outbox.c.resends + 1,
        looks=0,
        not_before=now,
        scope=None,
    )
)
_RESEND = _RESEND_ANY.where(is_in(outbox.c.state, PartState.UNCERTAIN, PartState.REFUSED)).values(
    standalone=sa.false()
)
_RESEND_STANDALONE = _RESEND_ANY.where(
    is_in(outbox.c.state, PartState.UNCERTAIN, PartState.REFUSED, PartState.DROPPED)
).values(standalone=sa.true())


def resend(tx: Tx, part: int, attempts: int, *, standalone: bool = False) -> bool:
    """uncertain | refused -> pending: the next attempt has a new number. With `standalone` (its run
    has ended) the part is sent by itself, and a dropped one becomes pending as well."""
    move = _RESEND_STANDALONE if standalone else _RESEND
    return tx.execute(move, {"part_id": part, "attempt": attempts}).rowcount == 1


_REWRITE = (
    sa.update(outbox)
    .where(IS_PART, is_in(outbox.c.state, PartState.PENDING, PartState.SENDING))
    .values(text=sa.bindparam("new_text"), wire=sa.bindparam("new_wire"), reply=SAID)
)


def rewrite(tx: Tx, part: int, body: PartBody) -> bool:
    """Replace the words of a part that was not sent yet. Its chat is locked, and the caller is the
    one who would send it."""
    values = {"part_id": part, "new_text": body.text, "new_wire": body.wire}
    return tx.execute(_REWRITE, values).rowcount == 1


_DROP = sa.update(outbox).where(PENDING).values(state=word(PartState.DROPPED))
_SAYS_STILL_WORKING = sa.and_(
    is_in(outbox.c.kind, PartKind.NOTICE),
    outbox.c.part == sa.literal_column(str(Notice.STILL_WORKING.value)),
)
_DROP_PENDING = _DROP.where(OF_RUN, sa.or_(~outbox.c.standalone, _SAYS_STILL_WORKING))
_SET_ADRIFT = sa.update(outbox).where(OF_RUN, SENDING).values(adrift=sa.true())
_SEND_ALONE = (
    sa.update(outbox).where(OF_RUN, PENDING, ~outbox.c.standalone).values(standalone=sa.true())
)
_KEEP_BACK = (
    sa.update(outbox)
    .where(IS_PART, PENDING, STANDALONE)
    .values(
        state=word(PartState.UNCERTAIN),
        standalone=sa.false(),
        error=sa.bindparam("new_error"),
    )
)
_DROP_NOTICE = _DROP.where(
    among(outbox.c.run, "run_ids"),
    is_in(outbox.c.kind, PartKind.NOTICE),
    outbox.c.part == sa.bindparam("number"),
)
_DROP_STANDALONE = _DROP.where(OF_CHAT, STANDALONE)
_DROP_ANSWERS_ALONE = _DROP_STANDALONE.where(ANSWERS)
_DROP_OTHERS = _DROP.where(OF_RUN, outbox.c.id != PART_ID, ANSWERS).values(replaced_by=PART_ID)


_ON_TIME = (
    sa.update(outbox)
    .where(sa.or_(waited(outbox.c.not_before), outbox.c.started_at > now))
    .values(
        not_before=sa.case(
            (waited(outbox.c.not_before), moved(outbox.c.not_before)), else_=outbox.c.not_before
        ),
        started_at=sa.case((outbox.c.started_at > now, now), else_=outbox.c.started_at),
    )
)
_UNFINISHED = is_in(outbox.c.state, PartState.PENDING, PartState.UNCERTAIN, PartState.SENT)
_OF_LIVE_RUNS = sa.select(runs.c.id).where(is_not(runs.c.state, RunState.ENDED))
_RUNS_ON_TIME = _ON_TIME.where(within(outbox.c.run, _OF_LIVE_RUNS), _UNFINISHED)
_OTHERS_ON_TIME = _ON_TIME.where(is_in(outbox.c.watched, Watched.DUE, Watched.UNSURE))
# What was begun keeps its time: a status may name it.
_NO_OLDER = (
    sa.update(outbox)
    .where(
        is_in(outbox.c.watched, Watched.DUE),
        outbox.c.attempts == 0,
        stamped_before(outbox.c.created_at),
    )
    .values(created_at=as_old(outbox.c.created_at))
)


def follow_clock(tx: Tx, step: float) -> None:
    """The database's clock was set by `step` seconds: every part waits as long as it would have,
    and what is still to leave is no older."""
    for move in (_RUNS_ON_TIME, _OTHERS_ON_TIME, _NO_OLDER):
        tx.execute(move, {"step": step})


_MAY_HAVE_LEFT = is_in(outbox.c.state, PartState.PENDING, PartState.SENDING, PartState.UNCERTAIN)
_WAS_PENDING = is_in(outbox.c.state, PartState.PENDING)
_DOUBT_ALL = (
    sa.update(outbox)
    .where(_MAY_HAVE_LEFT)
    .values(
        state=word(PartState.UNCERTAIN),
        holder=None,
        adrift=sa.false(),
        attempts=sa.case((_WAS_PENDING, outbox.c.attempts + 1), else_=outbox.c.attempts),
        looks=_NEVER,
        resends=_NEVER,
        error=sa.bindparam("new_error"),
    )
)
_DOUBT_ALL_OF_RUNS = _DOUBT_ALL.where(within(outbox.c.run, _OF_LIVE_RUNS))
_UNFINISHED_ALONE = is_in(outbox.c.watched, Watched.DUE, Watched.LEAVING, Watched.UNSURE)
_DOUBT_ALL_ALONE = _DOUBT_ALL.where(_UNFINISHED_ALONE)
_DROP_NOTICES = _DROP.where(_UNFINISHED_ALONE, is_in(outbox.c.kind, PartKind.NOTICE))


def doubt_all(tx: Tx, error: str) -> int:
    """pending | sending -> uncertain, for everything that had not left in a database that came from
    a backup: it may have been sent since then, and is not looked for. A pending part is given one
    attempt, so that a status of that attempt is recognised. Notices are dropped, since they are
    outdated. Returns the number of uncertain parts."""
    tx.execute(_DROP_NOTICES)
    doubts = (_DOUBT_ALL_OF_RUNS, _DOUBT_ALL_ALONE)
    return sum(tx.execute(doubt, {"new_error": error}).rowcount for doubt in doubts)


def drop_pending(tx: Tx, run: int) -> int:
    """pending -> dropped, for the parts of a run that has ended, and its notice that it is still
    worked on."""
    return tx.execute(_DROP_PENDING, {"run_id": run}).rowcount


def set_adrift(tx: Tx, run: int) -> None:
    """Note that the run of parts that are being sent has been ended, so that nobody waits for their
    outcome."""
    tx.execute(_SET_ADRIFT, {"run_id": run})


def send_alone(tx: Tx, run: int) -> bool:
    """Let the pending parts of an ended run be sent as standalone ones. False: it has none."""
    return tx.execute(_SEND_ALONE, {"run_id": run}).rowcount > 0


def keep_back(tx: Tx, part: int, error: str) -> bool:
    """pending -> uncertain, for a part of an ended run that was to be sent as a standalone one and
    may not any more: it belongs to its run again, which ended in doubt of it."""
    return tx.execute(_KEEP_BACK, {"part_id": part, "new_error": error}).rowcount == 1


def drop_notice(tx: Tx, run: int, notice: Notice) -> bool:
    """pending -> dropped, for a run's notice that is no longer true."""
    return tx.execute(_DROP_NOTICE, {"run_ids": [run], "number": notice.value}).rowcount == 1


def drop_notice_each(tx: Tx, of: Sequence[int], notice: Notice) -> None:
    """As `drop_notice`, for several runs."""
    if of:
        tx.later(_DROP_NOTICE, {"run_ids": list(of), "number": notice.value})


def drop_standalone(tx: Tx, chat: int) -> int:
    """pending -> dropped, for all standalone parts of a chat: the person wants no more of them."""
    return tx.execute(_DROP_STANDALONE, {"chat_id": chat}).rowcount


def drop_answers_alone(tx: Tx, chat: int) -> int:
    """pending -> dropped, for answers that were to go out by themselves, as somebody had wished or
    since they had not left: the person stopped them."""
    return tx.execute(_DROP_ANSWERS_ALONE, {"chat_id": chat}).rowcount


def drop_others(tx: Tx, run: int, but: int) -> int:
    """pending -> dropped, for the parts of a run whose words the part `but` took over."""
    return tx.execute(_DROP_OTHERS, {"run_id": run, "part_id": but}).rowcount


merge = MoveChat(outbox, outbox.c.chat)
move_run = MoveChat(outbox, outbox.c.run)
page = Page(outbox)
blank = Blank(outbox, outbox.c.id)
blank_of_runs = Blank(outbox, outbox.c.run)

_of_runs = sa.select(outbox.c.id).where(among(outbox.c.run, "ids"))
_DROP_RECEIPTS = sa.delete(receipts).where(among(receipts.c.outbox, "ids"))
_DROP_RECEIPTS_OF_RUNS = sa.delete(receipts).where(within(receipts.c.outbox, _of_runs))


def drop_receipts(tx: Tx, parts: Sequence[int]) -> None:
    """Delete the receipts of these parts; each part keeps the one that it has."""
    tx.execute(_DROP_RECEIPTS, {"ids": list(parts)})


def drop_receipts_of_runs(tx: Tx, runs: Sequence[int]) -> None:
    """Delete the receipts of the parts of these runs."""
    tx.execute(_DROP_RECEIPTS_OF_RUNS, {"ids": list(runs)})
