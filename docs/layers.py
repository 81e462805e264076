"""Draw docs/layers.svg from the imports as they are: `make picture`.

Every package of the product is a box, and so is every room of `bot`. A box stands above all
that it imports. An arrow that follows from others (a room reaches a lower one through a third)
is left out, so that what remains can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

PICTURE = Path(__file__).parent / "layers.svg"
SUBJECTS = {
    "bot.cli": "the operator's commands",
    "bot.main": "start, listen, leave",
    "bot.testing": "agents, killed in tests",
    "bot.wiring": "puts one process together",
    "bot.operations": "what operators ask and do",
    "bot.operator": "their page",
    "bot.http": "the doorway",
    "bot.intake": "a payload becomes rows",
    "bot.runs": "claim, think, steps",
    "bot.delivery": "send, receipts, limits",
    "bot.leases": "who is alive, recovery",
    "bot.agents": "echo, function, HTTP, assistant",
    "bot.observability": "logs, metrics, traces",
    "bot.texts": "every word to a person",
    "bot.domain": "values and decisions, pure",
    "channels": "one plug-in a platform",
    "storage": "SQL, one folder a table",
}
WAY = (
    "bot.cli",
    "bot.main",
    "bot.wiring",
    "bot.http",
    "bot.intake",
    "bot.runs",
    "bot.delivery",
    "bot.leases",
    "storage",
    "bot.domain",
)
_BOX, _HIGH, _APART, _STEP, _MARGIN = 158, 40, 14, 78, 18
_STYLE = (
    "text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#1c2733}"
    ".of{font-size:10px;fill:#5a6b7b}"
    "rect{fill:#eef3f8;stroke:#7c93a8}"
    "line{stroke:#9fb0bf;stroke-width:1.2;marker-end:url(#tip)}"
)
_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path d="M0 0 8 4 0 8z" fill="#9fb0bf"/></marker>'
)

Arrows = Mapping[str, set[str]]


def rooms() -> Arrows:
    """The rooms that each room imports, read from the code."""
    graph = grimp.build_graph("bot", "channels", "storage")
    arrows: dict[str, set[str]] = {}
    for module in graph.modules:
        room = _room(module)
        seen = {_room(name) for name in graph.find_modules_directly_imported_by(module)}
        arrows.setdefault(room, set()).update(seen - {room})
    arrows.pop("bot")
    return arrows


def _room(module: str) -> str:
    top, *inside = module.split(".")
    return f"{top}.{inside[0]}" if top == "bot" and inside else top


def floors(arrows: Arrows) -> Mapping[str, int]:
    """The floor of each room: one above the highest that it imports. Raises ValueError when
    rooms import each other in a circle."""
    found: dict[str, int] = {}
    while len(found) < len(arrows):
        ready = [r for r in arrows if r not in found and arrows[r] <= found.keys()]
        if not ready:
            raise ValueError(f"rooms in a circle: {sorted(arrows.keys() - found.keys())}")
        for room in ready:
            found[room] = 1 + max((found[below] for below in arrows[room]), default=-1)
    return found


def _direct(arrows: Arrows) -> Arrows:
    """The arrows that no chain of other arrows implies."""

    def below(room: str) -> set[str]:
        return arrows[room] | {deep for next_ in arrows[room] for deep in below(next_)}

    return {
        room: seen - {deep for next_ in seen for deep in below(next_)}
        for room, seen in arrows.items()
    }


def draw(arrows: Arrows) -> str:
    """The picture as SVG."""
    floor_of = floors(arrows)
    rows = [
        sorted((room for room, floor in floor_of.items() if floor == level), key=_from_the_left)
        for level in range(max(floor_of.values()), -1, -1)
    ]
    wide = max(len(row) for row in rows) * (_BOX + _APART) - _APART + 2 * _MARGIN
    places: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        for at, room in enumerate(row):
            places[room] = (_MARGIN + at * (_BOX + _APART), _MARGIN + level * _STEP)
    high = len(rows) * _STEP - (_STEP - _HIGH) + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}">',
        f"<style>{_STYLE}</style><defs>{_TIP}</defs>",
        *(
            _arrow(places[room], places[below])
            for room, seen in sorted(_direct(arrows).items())
            for below in sorted(seen)
        ),
        *(_box(room, *places[room]) for room in sorted(places)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _from_the_left(room: str) -> tuple[int, str]:
    """The order within a floor: the way of a message stands on the left, one above the other."""
    return (WAY.index(room) if room in WAY else len(WAY), room)


def _arrow(above: tuple[float, float], below: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = above, below
    half = _BOX / 2
    # An arrow that passes a floor leaves at the side, so that it does not run behind the
    # boxes below.
    start = (x + half, y + _HIGH) if to_y - y <= _STEP else (x + _BOX, y + _HIGH / 2)
    return f'<line x1="{start[0]}" y1="{start[1]}" x2="{to_x + half}" y2="{to_y}"/>'


def _box(room: str, x: float, y: float) -> str:
    middle, subject = x + _BOX / 2, SUBJECTS.get(room, "")
    name = f'<text x="{middle}" y="{y + (18 if subject else 25)}">{escape(room)}</text>'
    of = f'<text class="of" x="{middle}" y="{y + 32}">{escape(subject)}</text>' if subject else ""
    return f'<rect x="{x}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="5"/>{name}{of}'


if __name__ == "__main__":
    PICTURE.write_text(draw(rooms()), encoding="utf-8")
