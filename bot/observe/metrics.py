"""The process's metrics. No label grows with chats, and none holds what a person wrote."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from bot.domain.ending import Ending

_FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_SLOW = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0, 90.0, 300.0, 900.0)


class Observer:
    """Counts what happens. Each process (and each test) has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.webhook_seconds = Histogram(
            "answerback_webhook_seconds",
            "Time from a webhook's arrival to its commit.",
            ("channel",),
            buckets=_FAST,
            registry=self.registry,
        )
        self.inbound = Counter(
            "answerback_inbound_total",
            "Deliveries by what became of them.",
            ("channel", "outcome"),
            registry=self.registry,
        )
        self.endings = Counter(
            "answerback_runs_ended_total",
            "Runs that ended, by ending.",
            ("ending",),
            registry=self.registry,
        )
        for ending in Ending:
            self.endings.labels(ending.value)
        self.sends = Counter(
            "answerback_sends_total",
            "Calls to a provider that send, by what they told us.",
            ("channel", "outcome"),
            registry=self.registry,
        )
        self.agent_seconds = Histogram(
            "answerback_agent_seconds",
            "Time an agent took for one attempt.",
            ("outcome",),
            buckets=_SLOW,
            registry=self.registry,
        )
        self.takeovers = Counter(
            "answerback_takeovers_total",
            "Runs released from a dead holder.",
            registry=self.registry,
        )
        self.double_receipts = Counter(
            "answerback_double_receipts_total",
            "Parts for which a second receipt appeared: the person has them twice.",
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "answerback_runs_in_flight",
            "Runs that this process works on.",
            registry=self.registry,
        )
