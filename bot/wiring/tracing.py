"""The tracer that the settings ask for."""

from __future__ import annotations

from bot.domain.errors import ConfigurationError
from bot.domain.ports import Clock
from bot.observability.tracing import NoTracer, Tracer
from bot.settings import Settings


def tracer_of(settings: Settings, clock: Clock) -> Tracer:
    """Spans to the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT, or none. Raises ConfigurationError
    when the endpoint is set and OpenTelemetry is not installed."""
    endpoint = settings.otel_exporter_otlp_endpoint
    if not endpoint:
        return NoTracer()
    try:
        from bot.observability.otel import OtlpSettings, over_http  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but {missing.name} is not installed: install "
            "answerback[otel], or unset the variable"
        ) from missing
    place = OtlpSettings(endpoint, settings.otlp_headers, settings.otel_service_name)
    return over_http(place, clock.wall)
