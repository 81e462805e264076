"""The JSON that commands print. Keys may be added; none is taken away or changes meaning."""

from __future__ import annotations

from bot.cli.wording import moment
from bot.domain.findings import Finding
from bot.operations.actions import Acted
from bot.operations.status import TurnAnswer
from bot.operations.stuck import Stuck
from storage.holders import HolderRow
from storage.views.chats import ChatLine
from storage.views.parts import DeadLetter, PartLine
from storage.views.runs import RunLine
from storage.views.timeline import Moment

Shape = dict[str, object]


def run_shape(run: RunLine) -> Shape:
    """A run."""
    return {
        "id": run.id,
        "request_id": run.request_id,
        "requests": list(run.requests),
        "channel": run.channel.value,
        "chat": run.chat,
        "address": run.address,
        "topic": run.topic,
        "state": run.state.value,
        "ending": None if run.ending is None else run.ending.value,
        "cause": None if run.cause is None else run.cause.value,
        "detail": run.detail,
        "set_aside": run.set_aside,
        "attempts": run.attempts,
        "failures": run.failures,
        "deaths": run.deaths,
        "holder": run.holder or None,
        "holder_alive": run.holder_alive,
        "age_s": round(run.age, 3),
        "created_at": moment(run.created_at),
        "ended_at": None if run.ended_at is None else moment(run.ended_at),
    }


def part_shape(part: PartLine, *, text: bool) -> Shape:
    """A part of the outbox."""
    shape: Shape = {
        "id": part.id,
        "run": part.run,
        "chat": part.chat,
        "channel": part.channel.value,
        "address": part.address,
        "kind": part.kind.value,
        "part": part.part,
        "state": part.state.value,
        "receipt": part.receipt,
        "attempts": part.attempts,
        "error": part.error,
        "code": part.code,
        "provider_status": part.provider_status,
        "since_s": round(part.since, 3),
    }
    return {**shape, "text": part.text} if text else shape


def chat_shape(chat: ChatLine) -> Shape:
    """A chat. Times are null where they do not apply."""
    return {
        "id": chat.id,
        "channel": chat.channel.value,
        "address": chat.address,
        "topic": chat.topic,
        "kind": chat.kind,
        "name": chat.name,
        "language": chat.language,
        "last_inbound_at": _time(chat.last_inbound_at),
        "paused_until": _pause(chat.paused_until),
        "unreachable_since": _time(chat.unreachable_since),
        "unreachable_reason": chat.unreachable_reason,
        "opted_out_at": _time(chat.opted_out_at),
        "live_runs": chat.live,
    }


_FOR_EVER = 1e11
"""A pause beyond this many epoch seconds has no end of its own."""


def _time(epoch: float | None) -> str | None:
    return None if epoch is None else moment(epoch)


def _pause(until: float | None) -> str | None:
    if until is None:
        return None
    return "resumed" if until >= _FOR_EVER else moment(until)


def moment_shape(happened: Moment, *, text: bool) -> Shape:
    """Something on a run's time line."""
    shape: Shape = {
        "at": moment(happened.at),
        "who": happened.who,
        "what": happened.what,
        "detail": happened.detail,
    }
    return {**shape, "text": happened.text} if text else shape


def stuck_shape(stuck: Stuck) -> Shape:
    """Something that stands still."""
    return {
        "kind": stuck.kind.value,
        "id": stuck.id,
        "since_s": round(stuck.since, 3),
        "why": stuck.why,
        "act": stuck.act,
    }


def status_shape(answer: TurnAnswer) -> Shape:
    """What became of a message."""
    return {
        "request_id": answer.request_id,
        "status": answer.status.value,
        "queued": answer.queued,
        "ending": None if answer.ending is None else answer.ending.value,
        "answer": answer.answer,
        "text": answer.text,
    }


def acted_shape(acted: Acted) -> Shape:
    """What became of an act."""
    return {"subject": acted.subject, "result": acted.result.value, "said": acted.said}


def finding_shape(finding: Finding) -> Shape:
    """A line of an examination."""
    return {
        "name": finding.name,
        "level": finding.level.value,
        "says": finding.says,
        "fix": finding.fix,
    }


def letter_shape(letter: DeadLetter, *, text: bool) -> Shape:
    """A payload that could not be read."""
    shape: Shape = {
        "id": letter.id,
        "channel": letter.channel.value,
        "age_s": round(letter.age, 3),
        "error": letter.error,
        "bytes": letter.size,
    }
    return {**shape, "body": letter.body} if text else shape


def holder_shape(holder: HolderRow) -> Shape:
    """A process that works, or did."""
    return {
        "id": holder.id,
        "name": holder.name,
        "host": holder.host,
        "pid": holder.pid,
        "role": holder.role,
        "lease_age_s": round(holder.lease_age, 3),
        "draining": holder.draining,
        "alive": not holder.gone,
    }
