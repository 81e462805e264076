"""Numbers that other parts keep for themselves, read when somebody scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True)
class Readings:
    """What is asked for: seconds left of the lease, renewals that came late so far, whether
    hints reach Redis (true also where none is configured), seconds since the last sweep,
    background tasks that are over or keep failing."""

    lease_left: Callable[[], float]
    late_renewals: Callable[[], int]
    hints_carried: Callable[[], bool]
    sweep_age: Callable[[], float]
    troubled_tasks: Callable[[], int]


class _Reader(Collector):
    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        asked = self._readings
        yield GaugeMetricFamily(
            "answerback_lease_left_seconds",
            "Seconds for which this process may still act without a renewal.",
            asked.lease_left(),
        )
        late = CounterMetricFamily(
            "answerback_lease_renewals_late",
            "Heartbeats that did not reach the database in time.",
        )
        late.add_metric([], asked.late_renewals())
        yield late
        yield GaugeMetricFamily(
            "answerback_hints_carried",
            "1 while wake-ups reach the other processes, 0 while Redis is away.",
            float(asked.hints_carried()),
        )
        yield GaugeMetricFamily(
            "answerback_sweep_age_seconds",
            "Seconds since this process last looked for dead ones.",
            asked.sweep_age(),
        )
        yield GaugeMetricFamily(
            "answerback_tasks_troubled",
            "Background tasks of this process that are over or keep failing.",
            asked.troubled_tasks(),
        )


def readings_of(readings: Readings) -> Collector:
    """The collector that exports these readings."""
    return _Reader(readings)
