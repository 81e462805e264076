"""Figures as a person reads them: lines while it is measured, and the table at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.job import quantile

Figures = dict[str, Any]
Row = tuple[str, str, str, str]


def milliseconds(values: Sequence[float]) -> str:
    """Median, 99th percentile and largest of seconds."""
    p50, p99, most = quantile(list(values), 0.5), quantile(list(values), 0.99), max(values)
    return f"p50 {p50 * 1000:6.1f} ms   p99 {p99 * 1000:6.1f} ms   max {most * 1000:6.1f} ms"


def show(what: str, figure: str) -> None:
    """Print one line of figures, at once."""
    print(f"{what:<58} {figure}", flush=True)


def progress(line: str) -> None:
    """Tell whoever waits what was measured last."""
    print(f"  {line}", file=sys.stderr, flush=True)


def table(figures: Figures) -> None:
    """Print every figure beside the floor, and beside what it must be."""
    rows = [("", "Answerback", "floor", "must be"), *_rows(figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    print(f"{figures['command']}: {figures['machine']}")
    for name, *cells, must in rows:
        ours, floor = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        print(f"{name:<{widths[0]}}  {ours}  {floor}  {must}".rstrip())


_KINDS = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


def _rows(figures: Figures) -> Iterator[Row]:
    for kind, ours in figures.get("pipeline", {}).items():
        yield from _pipeline(_KINDS[kind], ours)
    for kind, ours in figures.get("agents_200ms", {}).items():
        floor = ours["floor_figures"]
        name = f"{_KINDS[kind]}, agents of 200 ms, 200 at once: messages a second"
        yield name, f"{ours['rate']:.0f}", f"{floor['rate']:.0f}", _share(ours, "0.9")
    for kind, ours in figures.get("latency", {}).items():
        floor = ours["floor_figures"]
        for name, key in (("taken", "taken"), ("answered", "answered")):
            what = f"{_KINDS[kind]}, 50 messages a second: {name}, p50 / p99 ms"
            yield what, _spread(ours, key), _spread(floor, key), ""


def _pipeline(kind: str, ours: Figures) -> Iterator[Row]:
    floor, limits = ours["floor_figures"], kind == "PostgreSQL"
    must = "at least 0.35" if limits else ""
    yield f"{kind}: messages a second", f"{ours['rate']:.0f}", f"{floor['rate']:.0f}", ""
    yield f"{kind}: share of the floor", f"{ours['ratio']:.2f}", "1.00", must
    for key, name, most, digits in (
        ("cpu_ms", "ms of CPU a message, all processes", "at most 2", 2),
        ("commits", "commits a message", "at most 1.5", 2),
        ("wal_bytes", "bytes of log a message", "at most 3000", 0),
        ("round_trips", "round trips a message", "at most 16", 1),
    ):
        cells = [f"{figure[key]:.{digits}f}" for figure in (ours, floor)]
        yield f"{kind}: {name}", cells[0], cells[1], most if limits else ""
    yield f"{kind}: taken, p50 / p99 ms", _spread(ours, "taken"), _spread(floor, "taken"), ""


def _share(ours: Figures, least: str) -> str:
    return f"at least {least} of the floor; {ours['ratio']:.2f}"


def _spread(figures: Figures, what: str) -> str:
    return f"{figures[f'{what}_p50_ms']:.0f} / {figures[f'{what}_p99_ms']:.0f}"
