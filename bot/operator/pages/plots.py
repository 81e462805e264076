"""Small plots of the last hours, as SVG in the page's own ink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from markupsafe import Markup, escape

from bot.operations.reports.phrases import counted, span
from storage.views.health.hours import SPANS, Span

SPAN = 900.0
"""Seconds that one bar stands for. All bars together are six hours."""
_WIDE, _HIGH, _FOOT = 480, 96, 16
_BAR, _GAP = _WIDE / SPANS, 3


def endings(spans: Sequence[Span]) -> Markup:
    """A plot of the number of runs that ended; the number of those that ended badly is drawn in
    front of it."""
    most = max((s.ended for s in spans), default=0.0)
    bars = list(_bars(spans, most, [("bar", s.ended, s.badly) for s in spans]))
    about = "about " if any(s.estimated for s in spans) else ""
    total, badly = round(sum(s.ended for s in spans)), round(sum(s.badly for s in spans))
    says = f"{about}{counted(total, 'run')} ended in six hours, {badly} of them badly"
    return _plot("endings", says, f"{round(most)}", spans, bars)


def waits(spans: Sequence[Span]) -> Markup:
    """A plot of the median time from a message to the end of its run."""
    waited = [s.waited or 0.0 for s in spans]
    most = max(waited, default=0.0)
    bars = list(_bars(spans, most, [("bar", each, 0.0) for each in waited]))
    says = f"from a message to the end of its run, at the median: at most {span(most)}"
    return _plot("waits", says, span(most), spans, bars)


def _bars(
    spans: Sequence[Span], most: float, drawn: Sequence[tuple[str, float, float]]
) -> Iterator[Markup]:
    room = _HIGH - _FOOT - 14
    for number, (one, (kind, whole, badly)) in enumerate(zip(spans, drawn, strict=True)):
        if not whole or not most:
            continue
        x, high = number * _BAR + _GAP / 2, max(1.5, room * whole / most)
        title = Markup("<title>{} UTC: {} ended, {} badly{}</title>").format(
            _clock(one.begins),
            f"{'about ' if one.estimated else ''}{round(one.ended)}",
            round(one.badly),
            "" if one.waited is None else f", {span(one.waited)} at the median",
        )
        yield _rect(kind, x, high, title)
        if badly:
            yield _rect("bad", x, max(2.5, high * badly / whole), Markup(""))


def _rect(kind: str, x: float, high: float, title: Markup) -> Markup:
    y = _HIGH - _FOOT - high
    return Markup(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">{}</rect>'
    ).format(kind, x, y, _BAR - _GAP, high, title)


def _plot(name: str, says: str, most: str, spans: Sequence[Span], bars: Sequence[Markup]) -> Markup:
    marks = [
        Markup('<text x="{:.1f}" y="{}">{}</text>').format(
            number * _BAR, _HIGH - 3, _clock(one.begins)
        )
        for number, one in enumerate(spans)
        if number % (SPANS // 4) == 0
    ]
    whole = Markup("").join([*bars, *marks])
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}" id="plot-{}">'
        '<line x1="0" x2="{}" y1="{}" y2="{}"/><text x="0" y="10">{}</text>{}</svg>'
        "<figcaption>{}</figcaption>"
    ).format(
        _WIDE, _HIGH, says, name, _WIDE, _HIGH - _FOOT, _HIGH - _FOOT, most, whole, escape(says)
    )


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M}"
