"""Metrics named by the dashboard, the alerts and the pages are those a process has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.observability.metrics import Observer

ROOT = Path(__file__).parents[2]
_NAME = re.compile(r"answerback_[a-z_]+")


def observer() -> Observer:
    seen = Observer()
    seen.read(
        lease_left=lambda: 1.0,
        late_renewals=lambda: 2,
        hints_carried=lambda: True,
        sweep_age=lambda: 3.0,
        troubled_tasks=lambda: 0,
        cut_off=lambda: 0,
    )
    seen.stand({"ready": 1}, {"ready": 2.0})
    return seen


def families() -> dict[str, str]:
    """Metric names as documentation spells them, and their kinds."""
    found = {}
    for family in observer().registry.collect():
        counter = family.type == "counter"
        found[family.name + ("_total" if counter else "")] = family.type
    return found


def queryable() -> set[str]:
    """Every name that a query can ask for."""
    names = set(families())
    for name, kind in families().items():
        if kind == "histogram":
            names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
    return names


@pytest.mark.parametrize("file", ["deploy/grafana-dashboard.json", "deploy/prometheus-alerts.yml"])
def test_every_metric_that_is_used_exists(file: str) -> None:
    used = set(_NAME.findall((ROOT / file).read_text(encoding="utf-8")))
    assert used
    assert used <= queryable()


def documented() -> dict[str, tuple[str, set[str]]]:
    """(kind, labels) of every metric in the documentation's tables."""
    found = {}
    for line in (ROOT / "docs/metrics.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            name, kind, labels = (cell.strip(" `") for cell in line.split("|")[1:4])
            found[name] = (kind, {label.strip() for label in labels.split(",") if label})
    return found


def test_every_metric_is_documented_with_its_kind() -> None:
    assert {name: kind for name, (kind, _) in documented().items()} == families()


def test_every_label_is_documented_and_takes_few_values() -> None:
    few = {"channel", "outcome", "ending", "direction", "state", "version", "python"}
    for name, (_, labels) in documented().items():
        assert labels <= few, name


def test_names_follow_the_conventions() -> None:
    for name, kind in families().items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"(_ms|_milliseconds|_count|_sum)$", name), name


def test_the_dashboard_has_panels_that_ask_something() -> None:
    board = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        assert panel["title"]
        assert all(target["expr"] for target in panel["targets"])


def test_every_alert_says_what_to_do() -> None:
    text = (ROOT / "deploy/prometheus-alerts.yml").read_text(encoding="utf-8")
    alerts = text.split("- alert: ")[1:]
    assert len(alerts) > 10
    for alert in alerts:
        assert "expr:" in alert
        assert "summary:" in alert
        assert "action:" in alert
