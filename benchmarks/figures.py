"""Figures as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(values: Sequence[float]) -> str:
    """Median, 99th percentile and largest of seconds."""
    p50, p99, most = quantile(values, 0.5), quantile(values, 0.99), max(values)
    return f"p50 {p50 * 1000:6.1f} ms   p99 {p99 * 1000:6.1f} ms   max {most * 1000:6.1f} ms"


def show(what: str, figure: str) -> None:
    """Print one line of the table, at once."""
    print(f"{what:<58} {figure}", flush=True)
