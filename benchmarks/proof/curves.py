"""The picture of a soak: each curve on a scale of its own, from nothing up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDE, _HIGH, _COLUMNS = 460, 150, 2
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c2733}.small{font-size:10px;fill:#5a6b7b}"
    ".end{text-anchor:end}line{stroke:#dde5ec}polyline{fill:none;stroke:#2f6f9f;stroke-width:1.8}"
)


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over minutes."""

    name: str
    points: Sequence[tuple[float, float]]


def drawn(curves: Sequence[Curve]) -> str:
    """An SVG of all of them."""
    high = _HIGH * ((len(curves) + _COLUMNS - 1) // _COLUMNS)
    size = f'width="{_WIDE * _COLUMNS}" height="{high}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDE * _COLUMNS} {high}">',
        f'<style>{_STYLE}</style>\n<rect {size} fill="#fff"/>',
    ]
    for number, curve in enumerate(curves):
        place = (number % _COLUMNS * _WIDE, number // _COLUMNS * _HIGH)
        lines.append(f'<g transform="translate({place[0]} {place[1]})">{_panel(curve)}</g>')
    return "\n".join([*lines, "</svg>\n"])


def _panel(curve: Curve) -> str:
    most = max((value for _, value in curve.points), default=1.0) * 1.1 or 1.0
    last = max((at for at, _ in curve.points), default=1.0) or 1.0
    left, right, top, bottom = 50, _WIDE - 20, 30, _HIGH - 25

    def spot(at: float, value: float) -> str:
        x = left + (right - left) * at / last
        return f"{x:.1f},{bottom - (bottom - top) * value / most:.1f}"

    points = " ".join(spot(at, value) for at, value in curve.points)
    return "\n".join(
        [
            f'<text x="{left}" y="18">{escape(curve.name)}</text>',
            f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
            f'<line x1="{left}" y1="{top}" x2="{right}" y2="{top}"/>',
            f'<text class="small end" x="{left - 6}" y="{bottom + 4}">0</text>',
            f'<text class="small end" x="{left - 6}" y="{top + 4}">{most:.0f}</text>',
            f'<text class="small end" x="{right}" y="{bottom + 16}">{last:.0f} minutes</text>',
            f'<polyline points="{points}"/>',
        ]
    )
