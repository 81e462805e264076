"""One trace a run, whichever process works on it; nothing of a person in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from bot.observability.otel import OtelTracer
from bot.observability.tracing import NoTracer, story_of
from tests.fakes.updates import Person
from tests.kit.conversation import PATIENT
from tests.limits import until
from tests.observability.conftest import LogsTo
from tests.world import Running, World, dies_at

TEXT = "secret-text-XYZ call +49 151 12345678"
ADA = 700100201


class Spans:
    """The spans that a tracer made, and that tracer."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtelTracer(SimpleSpanProcessor(self._exporter), "test", lambda: 1000.0)

    def named(self, name: str) -> Sequence[ReadableSpan]:
        return [s for s in self._exporter.get_finished_spans() if s.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span

    @property
    def of_runs(self) -> Sequence[ReadableSpan]:
        return [s for s in self._exporter.get_finished_spans() if s.name != "sweep"]


def context_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.parent is not None
    return span.parent.trace_id, span.parent.span_id


async def answer(turn: Turn) -> str:
    await turn.step("look", lambda: turn.text)
    return f"you said: {turn.text}"


async def test_a_run_is_one_trace_from_the_webhook_to_the_send(world: World) -> None:
    spans = Spans()
    process = await world.start(agent=answer, tracer=spans.tracer)
    await process.post_update(Person(ADA).text(TEXT))
    await world.settled()
    await process.stop()
    webhook, run = spans.one("webhook"), spans.one("run")
    assert webhook.parent is None
    assert parent_of(run) == context_of(webhook)
    assert parent_of(spans.one("step")) == context_of(run)
    assert parent_of(spans.one("send")) == context_of(run)
    sent = spans.one("send").attributes or {}
    assert (sent["answerback.outcome"], sent["answerback.channel"]) == ("Sent", "telegram")


async def test_a_run_that_is_taken_over_goes_on_in_the_same_trace(world: World) -> None:
    spans = [Spans(), Spans()]
    first: list[Running] = []
    dies = dies_at(Checkpoint.AGENT_RETURNED, lambda: first[0])
    first.append(await world.start(agent=answer, tracer=spans[0].tracer, reached=dies, **PATIENT))
    await first[0].post_update(Person(ADA).text(TEXT))
    await asyncio.gather(first[0]._task, return_exceptions=True)
    await world.start(agent=answer, tracer=spans[1].tracer, **PATIENT)
    await world.settled()
    await until(lambda: spans[1].named("run"))  # A span ends after its row.
    one, two = spans[0].one("run"), spans[1].one("run")
    assert context_of(one)[0] == context_of(two)[0]
    assert parent_of(one) == parent_of(two) == context_of(spans[0].one("webhook"))
    assert [(s.attributes or {})["answerback.attempt"] for s in (one, two)] == [1, 2]


async def test_no_span_holds_a_persons_words_or_numbers(world: World) -> None:
    async def fail(turn: Turn) -> str:
        def broken() -> str:
            raise LookupError(f"nothing known of {turn.text!r}")

        return str(await turn.step(f"look up {turn.text}", broken))

    spans = Spans()
    process = await world.start(agent=fail, max_failures=1, tracer=spans.tracer)
    await process.post_update(Person(ADA).text(TEXT))
    await world.settled()
    await process.stop()
    everything = "".join(span.to_json() for span in spans.of_runs)
    assert "LookupError" in everything
    for forbidden in ("secret-text", "12345678", str(ADA), "Ada"):
        assert forbidden not in everything


async def test_lines_name_the_trace_that_they_belong_to(world: World, log: LogsTo) -> None:
    written, spans = log(), Spans()
    process = await world.start(agent=answer, tracer=spans.tracer)
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    await process.stop()  # The line is written after the commit that the world waits for.
    line = written.about("the run ended")
    assert line["trace_id"] == f"{context_of(spans.one('run'))[0]:032x}"


async def test_a_sweep_is_a_trace_of_its_own(world: World) -> None:
    spans = Spans()
    process = await world.start(agent=answer, tracer=spans.tracer)
    await process.process.sweep()
    assert {s.parent for s in spans.named("sweep")} == {None}
    assert len({context_of(s)[0] for s in spans.named("sweep")}) == len(spans.named("sweep")) >= 2


def test_what_is_sampled_is_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    web, worker = Spans(), Spans()
    stories = [story_of("bot", run) for run in range(100)]
    for story in stories:
        web.tracer.first("webhook", story, 0.1)
        with worker.tracer.span("run", story):
            pass
    traces = [{context_of(s)[0] for s in spans.of_runs} for spans in (web, worker)]
    assert traces[0] == traces[1]
    assert 20 < len(traces[0]) < 80


@pytest.mark.parametrize("make", [NoTracer, lambda: Spans().tracer], ids=["none", "otel"])
def test_an_exception_passes_a_span_unchanged(make: Callable[[], Any]) -> None:
    error = ValueError("secret-text-XYZ")
    with pytest.raises(ValueError, match="secret") as caught, make().span("run", "story"):
        raise error
    assert caught.value is error
