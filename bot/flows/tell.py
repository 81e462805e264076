"""What flows tell an operator while they work: lines and spans, by names of ours alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bot.domain.delivery import Outcome, Sent
from bot.domain.message import Edited, Event, Inbound
from bot.flows.intake import Arrival, Recorded
from bot.flows.runtime import Runtime
from bot.observe.context import about
from bot.observe.traces import Span, story_of_request
from storage.outbox import Part

_log = logging.getLogger("answerback.sends")
_log_intake = logging.getLogger("answerback.intake")


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


@contextmanager
def taking(rt: Runtime, arrival: Arrival, event: Event) -> Iterator[Callable[[Recorded], None]]:
    """Around the commit of one event: lines in it name the request. The body calls what it
    gets with what the event became; from then on lines name the run too."""
    names, began = rt.names(arrival.account), rt.clock.monotonic()
    request = _request_of(event)

    def became(recorded: Recorded) -> None:
        run, seconds = recorded.run, rt.clock.monotonic() - began
        facts = names if run is None else {**rt.names(run.account, run.chat), "run": run.id}
        with about(**facts):
            _log_intake.debug("recorded: %s", recorded.became.value)
        account = rt.channels[arrival.account].account
        request_story = story_of_request(account, request or arrival.digest)
        story = request_story if run is None else rt.story(run.account, run.id)
        rt.tracer.first(arrival.via, story, seconds, became=recorded.became.value, **facts)

    with about(request_id=request, **names):
        yield became


def _request_of(event: Event) -> str | None:
    """The request id of the message that an event is about, if it is about one."""
    if isinstance(event, Edited):
        return event.message.request_id
    return event.request_id if isinstance(event, Inbound) else None
