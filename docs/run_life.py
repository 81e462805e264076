"""Draw docs/run-life.svg, a run from its message to its ending: `make picture`.

The moves are those of the diagram in `storage/runs/__init__.py`, which a test holds against the
code, and the endings those of `bot/domain/ending.py`. A state is a line from top to bottom, a row
of the diagram an arrow from the state that is left to the one that is entered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

from bot.domain.ending import Ending
from bot.domain.run import RunState
from storage import runs

PICTURE = Path(__file__).parent / "run-life.svg"
MESSAGE = "(message)"
SUBJECTS = {
    MESSAGE: "recorded",
    "waiting": "behind another run",
    "ready": "head of its chat",
    "running": "held by a process",
    "ended": "moves no more",
}
_ROW = re.compile(r"^ {4}(\S.*?) +-> (\S.*?)  +(\S.*)$")
_MORE = re.compile(r"^ {20,}(\S.*)$")
_LEFT, _APART, _BOX, _HIGH = 78, 142, 122, 40
_MOVES, _WIDE = 730, 1010
_STEP, _LINE, _LETTERS = 34, 15, 40
_FIELDS = (112, 290)
"""Columns of the reaction to an ending and of its sentence."""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c2733}.of{font-size:10px;fill:#5a6b7b}"
    ".middle{text-anchor:middle}.name{font-weight:600}.code{font-family:ui-monospace,monospace;"
    "font-size:11px}.box{fill:#eef3f8;stroke:#7c93a8}.life{stroke:#c9d6e2;stroke-dasharray:3 4}"
    ".move{stroke:#2f6f9f;stroke-width:1.6;marker-end:url(#tip)}.from{fill:#2f6f9f}"
    ".rule{stroke:#dde5ec}"
)
_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path d="M0 0 8 4 0 8z" fill="#2f6f9f"/></marker>'
)


@dataclass(frozen=True)
class Row:
    """A row of the diagram: from each of these states to each of those by one of these moves."""

    left: tuple[str, ...]
    entered: tuple[str, ...]
    moves: tuple[str, ...]


def diagram(text: str) -> Sequence[Row]:
    """The rows of a diagram as it stands in a docstring."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        if found := _ROW.match(line):
            rows.append(list(found.groups()))
        elif rows and (more := _MORE.match(line)):
            rows[-1][2] += f" {more[1]}"
        elif rows:
            break
    return [Row(_listed(a, "|"), _listed(b, "|"), _listed(moves, ",")) for a, b, moves in rows]


def _listed(text: str, apart: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(apart) if name.strip())


def draw(rows: Sequence[Row], endings: Iterable[Ending]) -> str:
    """The picture as SVG."""
    top = 2 * _HIGH
    body: list[str] = []
    for row in rows:
        labels = wrap(", ".join(row.moves), _LETTERS)
        high = max(_STEP, _LINE * len(labels) + 14)
        body.append(_arrows(row, top + high / 2))
        first = top + high / 2 + 4 - _LINE * (len(labels) - 1) / 2
        body += [
            f'<text class="code" x="{_MOVES}" y="{first + _LINE * n:g}">{escape(label)}</text>'
            for n, label in enumerate(labels)
        ]
        top += high
    below = top + 24
    lives = [
        f'<line class="life" x1="{x}" y1="{_HIGH + 18}" x2="{x}" y2="{top}"/>'
        for x in map(_x, SUBJECTS)
    ]
    table, end = _endings(list(endings), below)
    size = f'width="{_WIDE}" height="{end:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {end:g}" {size}>',
        f"<style>{_STYLE}</style><defs>{_TIP}</defs>",
        f'<rect {size} rx="8" fill="#fff"/>',
        *lives,
        *(_head(name, subject, _x(name)) for name, subject in SUBJECTS.items()),
        f'<text class="of" x="{_MOVES}" y="42">moves, each one guarded statement</text>',
        *body,
        *table,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(state: str) -> int:
    return _LEFT + list(SUBJECTS).index(state) * _APART


def _head(name: str, subject: str, x: int) -> str:
    return (
        f'<rect class="box" x="{x - _BOX // 2}" y="18" width="{_BOX}" height="{_HIGH}" rx="5"/>'
        f'<text class="middle name" x="{x}" y="35">{escape(name)}</text>'
        f'<text class="of middle" x="{x}" y="50">{escape(subject)}</text>'
    )


def _arrows(row: Row, y: float) -> str:
    """From the outermost state that is left to each that is entered, with a dot on each left."""
    drawn = []
    entered = [_x(state) for state in row.entered]
    left = [_x(state) for state in row.left]
    for to in entered:
        begin = min(left) if min(left) < to else max(left)
        drawn.append(f'<line class="move" x1="{begin}" y1="{y:g}" x2="{to}" y2="{y:g}"/>')
    drawn += [f'<circle class="from" cx="{x}" cy="{y:g}" r="3.5"/>' for x in left]
    return "".join(drawn)


def _endings(endings: Sequence[Ending], top: float) -> tuple[Sequence[str], float]:
    """A line for each ending: its name, what follows, its meaning."""
    x = 18
    lines = [
        f'<line class="rule" x1="{x}" y1="{top - 18:g}" x2="{_WIDE - x}" y2="{top - 18:g}"/>',
        f'<text class="of" x="{x}" y="{top:g}">ended as</text>',
        f'<text class="of" x="{x + _FIELDS[0]}" y="{top:g}">what follows</text>',
        f'<text class="of" x="{x + _FIELDS[1]}" y="{top:g}">its meaning</text>',
    ]
    for at, ending in enumerate(endings, 1):
        y = top + 20 * at
        rule = ending.rule
        lines += [
            f'<text class="name" x="{x}" y="{y:g}">{escape(ending.value)}</text>',
            f'<text x="{x + _FIELDS[0]}" y="{y:g}">{escape(rule.reaction.value)}</text>',
            f'<text x="{x + _FIELDS[1]}" y="{y:g}">{escape(rule.says)}</text>',
        ]
    return lines, top + 20 * len(endings) + 18


def drawn() -> str:
    """The picture of the code as it is."""
    return draw(diagram(runs.__doc__ or ""), Ending)


if __name__ == "__main__":
    assert set(SUBJECTS) == {MESSAGE, *RunState}
    PICTURE.write_text(drawn(), encoding="utf-8")
