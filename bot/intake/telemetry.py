"""Lines and spans around the commit of one event, by names of ours alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bot.domain.message import Edited, Event, Inbound
from bot.intake.record import Arrival, Recorded
from bot.leases.runtime import Runtime
from bot.observability.context import about
from bot.observability.tracing import story_of_request

_log = logging.getLogger("answerback.intake")


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
            _log.debug("recorded: %s", recorded.became.value)
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
