"""The picture of docs/benchmarks.md: shares of the floor, latency beside it, cost against size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from benchmarks.report import KINDS, Figures

_WIDE, _HIGH = 960, 250
_LEFT = 250
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c2733}.title{font-weight:600;font-size:14px}"
    ".small{font-size:10px;fill:#5a6b7b}.end{text-anchor:end}.middle{text-anchor:middle}"
    ".floor{fill:#c9d6e2}.ours{fill:#2f6f9f}line{stroke:#dde5ec}"
    "polyline{fill:none;stroke-width:1.8}"
)
_LINES = {
    "intake": "#2f6f9f",
    "reply": "#c0563b",
    "claim": "#4b8b3b",
    "settle": "#8a5fa8",
    "look: history": "#3a9c9c",
    "look: sweep": "#b58900",
    "look: gauges": "#7a7a7a",
    "look: repair": "#d08aa8",
}
_BAR = 16


def plot(figures: Figures) -> str:
    """An SVG of whatever was measured."""
    drawn = (_throughput(figures), _latency(figures), *_costs(figures.get("flat", {})))
    panels = [panel for panel in drawn if panel]
    tops = [10 + sum(high for high, _ in panels[:n]) for n in range(len(panels) + 1)]
    size = f'width="{_WIDE}" height="{tops[-1]}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {tops[-1]}" {size}>',
        f'<style>{_STYLE}</style>\n<rect {size} fill="#fff"/>',
    ]
    for top, (_, body) in zip(tops, panels, strict=False):
        lines.append(f'<g transform="translate(0 {top})">{body}</g>')
    return "\n".join([*lines, "</svg>\n"])


Panel = tuple[int, str]


def _throughput(figures: Figures) -> Panel | None:
    """Bars of a rate beside the floor's, each pair on a scale of its own."""
    bars = []
    for part, name in (("pipeline", "no agent time"), ("agents_200ms", "agents of 200 ms")):
        for kind, ours in figures.get(part, {}).items():
            most = max(ours["rate"], ours["floor"])
            bars.append((f"{KINDS[kind]}, {name}", [(ours["rate"], most), (ours["floor"], most)]))
    return _bars("Messages a second (dark) and the floor's (light)", bars, "{:,.0f}")


def _latency(figures: Figures) -> Panel | None:
    bars = []
    for kind, ours in figures.get("latency", {}).items():
        for what in ("taken", "answered"):
            for rank in ("p50", "p99"):
                key = f"{what}_{rank}_ms"
                bars.append(
                    (f"{KINDS[kind]}, {what}, {rank}", [ours[key], ours["floor_figures"][key]])
                )
    most = max((value for _, pair in bars for value in pair), default=1.0)
    scaled = [(name, [(value, most) for value in pair]) for name, pair in bars]
    return _bars("Milliseconds at 50 messages a second, and the floor's", scaled, "{:.1f}")


def _bars(
    title: str, bars: Sequence[tuple[str, Sequence[tuple[float, float]]]], form: str
) -> Panel | None:
    if not bars:
        return None
    room = _WIDE - _LEFT - 90
    body = [_text(10, 16, title, "title")]
    for number, (name, values) in enumerate(bars):
        top = 30 + number * 2.5 * _BAR
        body.append(_text(_LEFT - 10, top + _BAR + 4, name, "end"))
        for place, (value, most) in enumerate(values):
            y, width = top + place * _BAR, room * value / most
            look, size = "floor" if place else "ours", f'width="{width:.1f}" height="{_BAR - 2}"'
            body.append(f'<rect class="{look}" x="{_LEFT}" y="{y}" {size}/>')
            body.append(_text(_LEFT + width + 6, y + 12, form.format(value), "small"))
    return round(50 + len(bars) * 2.5 * _BAR), "\n".join(body)


def _costs(found: Figures) -> Iterator[Panel]:
    for kind, title in KINDS.items():
        if kind in found:
            yield _curves(f"{title}: milliseconds against size", found[kind], found["sizes"])


def _curves(title: str, found: Figures, sizes: Sequence[str]) -> Panel:
    """Lines over the sizes, on a scale of powers of ten."""
    shown = {name: found[name]["ms"] for name in _LINES if name in found}
    colours = [_LINES[name] for name in shown]
    lowest = math.floor(math.log10(max(0.01, min(min(ms) for ms in shown.values()))))
    highest = math.ceil(math.log10(max(max(ms) for ms in shown.values())))
    right, bottom = _WIDE - 140, _HIGH - 60
    step = (right - 60) / max(1, len(sizes) - 1)

    def y(ms: float) -> float:
        share = (math.log10(max(0.01, ms)) - lowest) / max(1, highest - lowest)
        return bottom - share * (bottom - 30)

    body = [_text(10, 16, title, "title")]
    for power in range(lowest, highest + 1):
        at = y(10**power)
        body.append(f'<line x1="60" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>')
        body.append(_text(52, at + 4, f"{10.0**power:g}", "small end"))
    for number, size in enumerate(sizes):
        for line, words in enumerate(size.split(", ")):
            at = bottom + 16 + 12 * line
            body.append(_text(60 + number * step, at, words, "small middle"))
    for costs, colour in zip(shown.values(), colours, strict=True):
        points = " ".join(f"{60 + n * step:.1f},{y(ms):.1f}" for n, ms in enumerate(costs))
        body.append(f'<polyline points="{points}" stroke="{colour}"/>')
    for place, (name, colour) in enumerate(zip(shown, colours, strict=True)):
        at = 40 + place * 18
        body.append(f'<rect x="{right + 14}" y="{at - 9}" width="10" height="10" fill="{colour}"/>')
        body.append(_text(right + 30, at, name.removeprefix("look: ")))
    return _HIGH, "\n".join(body)


def _text(x: float, y: float, text: str, look: str = "") -> str:
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
