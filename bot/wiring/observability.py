"""The metrics and the tracer of a process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.ports import Clock
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from bot.observability.tracing import NoTracer, Tracer
from bot.settings import Settings
from bot.supervisor import Supervisor
from storage.views.health.gauges import read_gauges

_EVERY = 15.0
"""Seconds between two looks at the whole service; each is a handful of bounded questions."""

_log = logging.getLogger("answerback.measures")


async def measure(
    rt: Runtime,
    lease: LeaseKeeper,
    tasks: Supervisor,
    swept_at: Callable[[], float],
    cut_off: Callable[[], int],
) -> None:
    """Export what the parts of this process know, and keep looking at the whole service.
    `swept_at` is the monotonic second of the last recovery pass."""
    rt.db.on_wait = rt.observer.database_wait.observe
    rt.observer.read(
        lease_left=lease.remaining,
        late_renewals=lambda: lease.late_renewals,
        hints_carried=lambda: rt.wakeups.connected or not rt.wakeups.shared,
        sweep_age=lambda: rt.clock.monotonic() - swept_at(),
        troubled_tasks=lambda: len(tasks.troubled),
        cut_off=cut_off,
    )
    await refresh(rt)
    tasks.every("gauges", _EVERY, partial(refresh, rt))


async def refresh(rt: Runtime) -> None:
    """Look at the whole service once; while the database is away the last look stands."""
    try:
        seen = await rt.db.read(read_gauges)
    except DatabaseUnavailable as error:
        _log.debug("gauges not refreshed: %s", error)
        return
    rt.observer.stand(
        {
            "ready": seen.ready,
            "running": seen.running,
            "waiting": seen.waiting,
            "kept": seen.kept,
        },
        {"ready": seen.oldest_ready, "waiting": seen.oldest_waiting},
    )
    rt.observer.uncertain_parts.set(seen.uncertain)
    rt.observer.standalone_parts.set(seen.standalone)
    rt.observer.accounts_down.set(seen.down)
    rt.observer.wanting_person.set(seen.wanting)


def tracer_of(settings: Settings, clock: Clock) -> Tracer:
    """Spans to the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT, or none. Raises ConfigurationError
    when the endpoint is set and OpenTelemetry is not installed."""
    endpoint = settings.otel_exporter_otlp_endpoint
    if not endpoint:
        return NoTracer()
    try:
        from bot.observability.otel import over_http  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but {missing.name} is not installed: install "
            "answerback[otel], or unset the variable"
        ) from missing
    return over_http(endpoint, settings.otlp_headers, settings.otel_service_name, clock.wall)
