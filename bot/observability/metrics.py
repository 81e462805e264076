"""The process's metrics. No label's values grow with chats, and none holds a person's words.

docs/metrics.md says what each metric is for; a test compares it with this module.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from bot.domain.ending import Ending
from bot.lazy_imports import lazy_imports
from bot.version import our_version

with lazy_imports(__name__):
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.core import CounterMetricFamily, Metric

_FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_SLOW = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0, 90.0, 300.0, 900.0)
_LONG = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 45.0, 120.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)


@dataclass(frozen=True, slots=True)
class _LateRenewals:
    read: Callable[[], int]

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "answerback_lease_renewals_late",
            "Heartbeats that did not reach the database in time.",
            self.read(),
        )


class Observer:
    """Counts what happens. Each process (and each test) has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        build = gauge(
            "answerback_build_info",
            "1, of the program with this version on this Python.",
            ["version", "python"],
        )
        build.labels(our_version(), platform.python_version()).set(1)
        histogram = partial(Histogram, registry=self.registry)
        self.webhook_seconds = histogram(
            "answerback_webhook_seconds",
            "Seconds from a webhook's arrival to its commit.",
            ["channel"],
            buckets=_FAST,
        )
        self.inbound = counter(
            "answerback_inbound", "Deliveries by what became of them.", ["channel", "outcome"]
        )
        self.database_wait = histogram(
            "answerback_database_wait_seconds",
            "Seconds that a transaction waited for a connection or for its turn to write.",
            buckets=(0.001, *_FAST),
        )

        self.agent_seconds = histogram(
            "answerback_agent_seconds",
            "Seconds an agent took for one attempt.",
            ["outcome"],
            buckets=_SLOW,
        )
        self.agent_tokens = counter(
            "answerback_agent_tokens", "Tokens that agents' steps said they used.", ["direction"]
        )
        self.run_seconds = histogram(
            "answerback_run_seconds",
            "Seconds from a run's first message to its end.",
            ["ending"],
            buckets=_LONG,
        )
        self.handoffs = counter("answerback_handoffs", "Turns whose agent asked for a person.")
        self.endings = counter("answerback_runs_ended", "Runs that ended, by ending.", ["ending"])
        for ending in Ending:
            self.endings.labels(ending.value)
        self.takeovers = counter("answerback_takeovers", "Runs released from a dead holder.")
        self.in_flight = gauge(
            "answerback_runs_in_flight", "Runs that this process has at their agents."
        )

        self.sends = counter(
            "answerback_sends",
            "Calls to a provider that send, by what they told us.",
            ["channel", "outcome"],
        )
        self.limit_wait = histogram(
            "answerback_rate_limit_wait_seconds",
            "Waits that a provider named when it refused a send for its rate limit.",
            ["channel"],
            buckets=_LONG,
        )
        self.double_receipts = counter(
            "answerback_double_receipts",
            "Parts for which a second receipt appeared: the person has them twice.",
        )
        self.followers_cut = counter(
            "answerback_followers_cut", "Followers that were ended because they did not keep up."
        )
        self.followers = gauge("answerback_followers", "Clients that follow a chat here.")

        # These are of the whole service: read from the database every few seconds.
        self.runs = gauge(
            "answerback_runs", "Runs of the whole service by state, counted to 10000.", ["state"]
        )
        self.oldest = gauge(
            "answerback_oldest_run_seconds",
            "Seconds for which the oldest due or waiting run of the service waits.",
            ["state"],
        )
        self.uncertain_parts = gauge(
            "answerback_uncertain_parts", "Messages that may or may not have arrived."
        )
        self.standalone_parts = gauge(
            "answerback_standalone_parts", "Notices, operators' words and re-sends that wait."
        )
        self.wanting_person = gauge(
            "answerback_chats_wanting_person", "Chats that want a person, counted to 200."
        )
        self.accounts_down = gauge(
            "answerback_accounts_down", "Accounts that their platform lets send nothing."
        )

    def read(
        self,
        *,
        lease_left: Callable[[], float],
        late_renewals: Callable[[], int],
        hints_carried: Callable[[], bool],
        sweep_age: Callable[[], float],
        troubled_tasks: Callable[[], int],
        cut_off: Callable[[], int],
    ) -> None:
        """Export numbers that other parts keep; they are read at each scrape. Where no Redis is
        configured, hints count as carried."""
        gauge = partial(Gauge, registry=self.registry)
        self.registry.register(_LateRenewals(late_renewals))
        gauge(
            "answerback_lease_left_seconds",
            "Seconds for which this process may still act without a renewal.",
        ).set_function(lease_left)
        gauge(
            "answerback_hints_carried",
            "1 while wake-ups reach the other processes, 0 while Redis is away.",
        ).set_function(hints_carried)
        gauge(
            "answerback_sweep_age_seconds", "Seconds since this process last looked for dead ones."
        ).set_function(sweep_age)
        gauge(
            "answerback_tasks_troubled",
            "Background tasks of this process that are over or keep failing.",
        ).set_function(troubled_tasks)
        gauge(
            "answerback_accounts_cut_off",
            "Accounts of which no message reaches this process any more.",
        ).set_function(cut_off)

    def stand(self, counts: Mapping[str, int], ages: Mapping[str, float]) -> None:
        """Set the gauges of the whole service: its runs by state, and the age of the oldest in
        seconds."""
        for state, count in counts.items():
            self.runs.labels(state).set(count)
        for state, age in ages.items():
            self.oldest.labels(state).set(age)
