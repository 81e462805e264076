"""Lines and spans around one call to a provider, by names of ours alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from bot.domain.delivery import Outcome, Sent
from bot.leases.runtime import Runtime
from bot.observability.context import about
from bot.observability.tracing import Span
from storage.outbox import Part

_log = logging.getLogger("answerback.sends")


@contextmanager
def sending(rt: Runtime, part: Part) -> Iterator[Span]:
    """Around one call to a provider: lines in it name the part, and it is a span of its run."""
    names = rt.names(part.account, part.chat)
    story = "" if part.run is None else rt.story(part.account, part.run)
    facts = {"kind": part.kind.value, "number": part.number, "attempt": part.attempts, **names}
    with (
        about(run=part.run, part=part.id, **names),
        rt.tracer.span("send", story, part=part.id, **facts) as span,
    ):
        yield span


def told(span: Span, outcome: Outcome) -> None:
    """What the provider said, by its code: its words may quote the message."""
    code = "" if isinstance(outcome, Sent) else outcome.code
    name = type(outcome).__name__
    span.tell(outcome=name, code=code)
    level = logging.DEBUG if isinstance(outcome, Sent) else logging.INFO
    _log.log(level, "the provider said: %s%s", name, f" ({code})" if code else "")
