"""Traces over OpenTelemetry. Loaded only where an endpoint is configured (extra `otel`)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags

from bot.observability.context import Fact, about
from bot.observability.tracing import Span

_EXPORT_WITHIN = 5.0
_CLOSE_WITHIN = 2.0
"""Seconds. A collector that can't be reached must not hold up a process that shuts down."""


@dataclass(frozen=True, slots=True)
class _Ids:
    trace: int
    span: int


class OtelTracer:
    """`Tracer` that hands its spans to `processor`."""

    listens = True

    def __init__(self, processor: SpanProcessor, service: str, wall: Callable[[], float]) -> None:
        self._wall = wall
        resource = Resource.create({"service.name": service})
        self._provider = TracerProvider(
            resource=resource, id_generator=_GivenIds(), shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("answerback")

    @contextmanager
    def span(self, name: str, story: str = "", **facts: Fact) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name,
            context=self._where(story),
            attributes=_attributes(facts),
            # Both would record the exception's message.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            trace_id = f"{span.get_span_context().trace_id:032x}"
            try:
                with about(trace_id=trace_id):
                    yield _Open(span)
            except BaseException as error:
                kind = type(error).__qualname__
                span.set_attribute("error.type", kind)
                span.set_status(Status(StatusCode.ERROR, kind))
                raise

    def first(self, name: str, story: str, seconds: float, **facts: Fact) -> None:
        end = self._wall()
        given = _given.set(_ids_of(story))
        try:
            span = self._tracer.start_span(
                name,
                context=Context(),
                attributes=_attributes(facts),
                start_time=_nanoseconds(end - seconds),
            )
        finally:
            _given.reset(given)
        span.end(end_time=_nanoseconds(end))

    def close(self) -> None:
        closing = threading.Thread(target=self._provider.shutdown, daemon=True, name="spans")
        closing.start()
        closing.join(_CLOSE_WITHIN)

    def _where(self, story: str) -> Context | None:
        """The context in which a span of this story begins. None stands for the open span's: it is
        of the same story, or the span has no story of its own."""
        if not story:
            return None
        ids = _ids_of(story)
        if trace.get_current_span().get_span_context().trace_id == ids.trace:
            return None
        # The decision follows from the trace's id alone, so every process makes the same one.
        decision = self._provider.sampler.should_sample(Context(), ids.trace, "").decision
        sampled = decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        first = SpanContext(ids.trace, ids.span, is_remote=True, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(first), Context())


def over_http(
    endpoint: str, headers: Mapping[str, str], service: str, wall: Callable[[], float]
) -> OtelTracer:
    """A tracer that sends its spans to a collector. `endpoint` is the base address, as in
    OTEL_EXPORTER_OTLP_ENDPOINT. OpenTelemetry's SDK itself reads its other variables (sampler,
    batches)."""
    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces",
        headers=dict(headers) or None,
        timeout=_EXPORT_WITHIN,
    )
    return OtelTracer(BatchSpanProcessor(exporter), service, wall)


@dataclass(frozen=True, slots=True)
class _Open:
    """A `Span` that wraps OpenTelemetry's."""

    span: trace.Span

    def tell(self, **facts: Fact) -> None:
        self.span.set_attributes(_attributes(facts))


_given: ContextVar[_Ids | None] = ContextVar("given_ids", default=None)


class _GivenIds(RandomIdGenerator):
    """Random ids, except for the first span of a story, whose ids follow from the story."""

    def generate_trace_id(self) -> int:
        given = _given.get()
        return super().generate_trace_id() if given is None else given.trace

    def generate_span_id(self) -> int:
        given = _given.get()
        return super().generate_span_id() if given is None else given.span


def _ids_of(story: str) -> _Ids:
    digest = hashlib.sha256(story.encode()).digest()
    # Zero is not a valid id.
    return _Ids(int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1)


def _attributes(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {f"answerback.{key}": value for key, value in facts.items()}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
