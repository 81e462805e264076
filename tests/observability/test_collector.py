"""Spans reach a collector over HTTP; one that is away costs nothing but them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError
from bot.observability.tracing import NoTracer
from bot.settings import Settings
from bot.wiring.observability import tracer_of
from tests.observability.conftest import LogsTo


class Collector(HTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.batches: list[ExportTraceServiceRequest] = []
        super().__init__(("127.0.0.1", 0), _Receive)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Receive(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers["x-key"])
        self.server.batches.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        return


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        serving = threading.Thread(target=collector.serve_forever, args=(0.01,))
        serving.start()
        yield collector
        collector.shutdown()
        serving.join()


def settings(**values: str) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]


def test_spans_are_sent_to_the_endpoint_with_its_headers_and_our_name() -> None:
    with collecting() as collector:
        configured = settings(
            otel_exporter_otlp_endpoint=collector.url,
            otel_exporter_otlp_headers="X-Key=open%20sesame, other=1",
            otel_service_name="ada-bot",
        )
        tracer = tracer_of(configured, SystemClock())
        with tracer.span("run", "story", attempt=1):
            pass
        tracer.close()
    assert collector.paths == ["/v1/traces"]
    assert collector.keys == ["open sesame"]
    [resource] = collector.batches[0].resource_spans
    named = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert named["service.name"] == "ada-bot"
    assert [s.name for scope in resource.scope_spans for s in scope.spans] == ["run"]
    assert "open sesame" in configured.secrets()


def test_a_collector_that_is_away_is_logged_and_left_alone(log: LogsTo) -> None:
    written = log()
    tracer = tracer_of(settings(otel_exporter_otlp_endpoint="http://127.0.0.1:9"), SystemClock())
    with tracer.span("run", "story"):
        pass
    tracer.close()
    assert {line["logger"].partition(".")[0] for line in written.lines} == {"opentelemetry"}


def test_without_an_endpoint_nothing_of_opentelemetry_is_used() -> None:
    assert isinstance(tracer_of(settings(), SystemClock()), NoTracer)


def test_an_endpoint_without_the_extra_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "bot.observability.otel", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    configured = settings(otel_exporter_otlp_endpoint="http://127.0.0.1:4318")
    with pytest.raises(ConfigurationError, match=r"install answerback\[otel\]"):
        tracer_of(configured, SystemClock())
