"""The life of a run, drawn: an SVG time line from top to bottom, with the verdict and its evidence.

Time goes down, a row a moment. The line at the left is the run; beside it stand, as bars, what
overlaps: claims of processes, steps, and parts on their way. Shapes say all that colours say: a bar
is dotted where it is not over, was cut off, or its beginning was not kept, and dashed to a question
mark where nobody knows. The ink is the page's own (`currentColor`), so that a page with a strict
policy may do without the style sheet, which is for a picture in a file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bot.operations.reports.course import told, told_once
from bot.operations.reports.explain import Explained
from bot.operations.reports.phrases import counted, safe, span, when
from storage.views.timeline import Mark, Moment

WIDE, NARROW = 560, 358
"""Units of width: of a page of its own, and of a telephone."""
_EDGE = 14
_LANE, _LANES = 18, 6
"""Width of a lane, and how many there are at most: what is more shares the last."""
_LETTER, _LINE, _SIZE = 8.2, 17, 13
"""Units: a letter, on the wide side of fonts; a line; the size of the font."""
_CLOCK, _DATED = 84, 122
"""Width of the times, without a date and with one."""
_GAP = 30.0
"""Seconds between two moments from which on the time between them is said."""
_ROWS, _FIRST, _LAST, _ALIKE = 60, 15, 25, 4
"""Rows that are drawn at most, of these the first and the last; moments in a row that are alike and
drawn one by one."""
_QUOTED = 8
"""Lines of somebody's words that are drawn."""
_MATTERS = frozenset({Mark.UNCERTAIN, Mark.REFUSED, Mark.DIED, Mark.ENDED, Mark.NOTED})
_OPENS = frozenset({Mark.CLAIMED, Mark.STEP_BEGAN, Mark.STORED, Mark.SENDING})
_CLOSES = frozenset({Mark.DIED, Mark.LET_GO, Mark.FAILED, Mark.ENDED})
_BLUE, _RED, _AMBER, _GREEN = "#2f7fd0", "#d14343", "#b7791f", "#2a9054"
_SIGN_HIGH = 8
"""Units from the point of a sign to its edge."""
_INK = "currentColor"
_CLAIM, _HOLDS = "", ("worker", "agent")
"""The name of a claim's bar, which is no thing's, and who acts under a claim."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """A shape around the point of a moment."""

    path: str
    colour: str = _INK
    solid: bool = False
    thick: float = 1.8


def _disc(radius: float) -> str:
    wide = f"{radius} {radius} 0 1 0"
    return f"M{-radius} 0a{wide} {2 * radius} 0a{wide} {-2 * radius} 0"


_ASKS = "M-2 -1.6C-2 -4.4 2.2 -4.2 2 -1.6C1.9 -.2 0 -.1 0 1.4M0 3.4V3.9"
SIGNS = {
    Mark.MESSAGE: _Sign(_disc(4), solid=True),
    Mark.MADE: _Sign(_disc(4)),
    Mark.CLAIMED: _Sign("M-4.5 -4H4.5L0 4Z", solid=True),
    Mark.STEP_BEGAN: _Sign("M-3 -4.5L4.5 0L-3 4.5Z", _BLUE),
    Mark.STEP_DONE: _Sign("M-3 -4.5L4.5 0L-3 4.5Z", _BLUE, solid=True),
    Mark.STORED: _Sign("M-4 -4H4V4H-4Z"),
    Mark.SENDING: _Sign("M0 5V-5M-4 -1L0 -5L4 -1", _GREEN, thick=2.2),
    Mark.ARRIVED: _Sign("M-5 0L-1.5 4L5 -4.5", _GREEN, thick=2.6),
    Mark.WAITS: _Sign(_disc(6) + "M0 -3.4V0L2.6 1.6", _AMBER),
    Mark.UNCERTAIN: _Sign(_disc(7) + _ASKS, _AMBER),
    Mark.REFUSED: _Sign(_disc(6) + "M-4 4L4 -4", _RED),
    Mark.DROPPED: _Sign("M-5 0H5", thick=2.6),
    Mark.DIED: _Sign("M-5 -5L5 5M-5 5L5 -5", _RED, thick=2.8),
    Mark.LET_GO: _Sign("M-5 2.5H5M-5 -2.5H5"),
    Mark.FAILED: _Sign("M0 -6L6.5 5H-6.5ZM0 -2V1.2M0 3V3.2", _RED),
    Mark.ENDED: _Sign("M-4 -4H4V4H-4Z", solid=True, thick=2.6),
    Mark.NOTED: _Sign("M0 -5L5 0L0 5L-5 0Z", solid=True),
}
"""A sign for each kind of moment; no two have the same shape."""
_SEVERAL = _Sign("M0 -5V-4.9M0 0V.1M0 5V5.1", thick=3)
_STYLE = (
    ".run-picture{color:#1c2733;background:#fff}"
    "@media(prefers-color-scheme:dark){.run-picture{color:#dde5ec;background:#12181f}}"
)
_SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the picture: a moment, several that are folded, or now."""

    at: float
    who: str
    said: str
    mark: Mark | None
    thing: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Bar:
    """Something that lasted, from row to row. `vague`: its beginning was not kept. `open`: it is
    not over, or was cut off. `doubtful`: nobody knows what became of it."""

    name: str
    first: int
    last: int
    colour: str
    vague: bool = False
    open: bool = False
    doubtful: bool = False


def draw_run(
    course: Sequence[Moment],
    why: Explained,
    now: float,
    *,
    text: bool = False,
    styled: bool = True,
    wide: int = WIDE,
) -> str:
    """The picture as SVG, `now` being the moment of the look. With `text` it has the words of
    people and agents; without `styled` no style sheet of its own, which a page may not allow.
    `wide` is WIDE or NARROW."""
    moments = list(told_once(course))
    rows = [_row(m, now, text=text) if isinstance(m, Moment) else m for m in _folded(moments)]
    ended = any(m.mark is Mark.ENDED for m in moments)
    if not ended:
        rows.append(_Row(now, "now", f"it has not ended; verdict: {why.verdict}", None))
    bars = _laned(list(_bars(rows)))
    lanes = 1 + max((lane for lane, _ in bars), default=0)
    title = f"run {why.run} {f'ended as {why.verdict}' if ended else 'has not ended'}"
    style = [f"<style>{_STYLE}</style>"] if styled else []
    head, top = _head(title, why.says, wide)
    line, top = _time_line(rows, bars, lanes, now, (top, wide))
    facts, high = _facts(why, top, wide)
    return (
        "\n".join(
            [*_opening(title, rows, why, now, (wide, high)), *style, *head, *line, *facts, "</svg>"]
        )
        + "\n"
    )


def _opening(
    title: str, rows: Sequence[_Row], why: Explained, now: float, size: tuple[int, float]
) -> Iterator[str]:
    wide, high = size
    name = f"run-{why.run}" if wide == WIDE else f"run-{why.run}-narrow"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="run-picture"'
        f' viewBox="0 0 {wide} {high:g}" width="{wide}" height="{high:g}" role="group"'
        f' aria-labelledby="{name}-title" aria-describedby="{name}-desc"'
        f' fill="{_INK}" font-family="{_SANS}" font-size="13">'
    )
    yield f'<title id="{name}-title">{_xml(title)}</title>'
    span_of = f"{counted(len(rows), 'row')}, from {when(rows[0].at, now)}" if rows else "no row"
    yield (
        f'<desc id="{name}-desc">{_xml(why.says)} The time line goes from top to bottom: {span_of}.'
        " A dashed bar and a question mark: nobody knows. A cross: a process died.</desc>"
    )


def _row(m: Moment, now: float, *, text: bool) -> _Row:
    return _Row(m.at, m.who, told(m, now), m.mark, m.thing, m.text if text else "")


def _folded(moments: Sequence[Moment]) -> Iterator[Moment | _Row]:
    """The moments, with what is alike, and what is too much for one picture, in one row each."""
    kept = _one_by_one(moments)
    if len(kept) > _ROWS:
        middle = [at for at in kept[_FIRST:-_LAST] if moments[at].mark in _MATTERS]
        kept = [*kept[:_FIRST], *middle[: _ROWS - _FIRST - _LAST], *kept[-_LAST:]]
    before = -1
    for at in [*kept, len(moments)]:
        if away := moments[before + 1 : at]:
            kinds = ", ".join(dict.fromkeys(_kind(m.mark) for m in away))
            said = f"{counted(len(away), 'more moment')}, until the next: {kinds}"
            yield _Row(away[0].at, "", said, None)
        if at < len(moments):
            yield moments[at]
        before = at


def _one_by_one(moments: Sequence[Moment]) -> list[int]:
    """All but the inner ones of a long row of moments that are alike."""
    alike: list[list[int]] = []
    for at, m in enumerate(moments):
        last = moments[at - 1] if at else None
        if last is not None and (last.mark, last.who) == (m.mark, m.who):
            alike[-1].append(at)
        else:
            alike.append([at])
    shown = [[each[0], each[-1]] if len(each) > _ALIKE else each for each in alike]
    return [at for each in shown for at in each]


def _kind(mark: Mark) -> str:
    return mark.name.lower().replace("_", " ")


def _bars(rows: Sequence[_Row]) -> Iterator[_Bar]:
    """Bars for claims, as far as they are known, then for steps and parts."""
    begun: int | None = None
    edge, last = 0, len(rows) - 1
    for at, row in enumerate(rows):
        if row.mark is Mark.CLAIMED and begun is not None:
            yield _Bar(_CLAIM, begun, at - 1, _INK, vague=True, open=True)
            begun = None
        if row.mark in _OPENS and begun is None and row.who in _HOLDS:
            begun = at
        if row.mark in _CLOSES:
            if begun is not None or row.mark is not Mark.ENDED:
                first = edge if begun is None else begun
                yield _Bar(_CLAIM, first, at, _INK, vague=begun is None)
            begun, edge = None, at
    if begun is not None:
        yield _Bar(_CLAIM, begun, last, _INK, open=True)
    for thing in dict.fromkeys(row.thing for row in rows if row.thing):
        yield _bar_of(thing, rows, last)


def _bar_of(thing: str, rows: Sequence[_Row], last: int) -> _Bar:
    own = [at for at, row in enumerate(rows) if row.thing == thing]
    end = rows[own[-1]].mark
    first = own[0]
    if end is Mark.STEP_BEGAN:
        cut = [at for at in range(first + 1, last + 1) if rows[at].mark in _CLOSES]
        return _Bar(thing, first, min(cut, default=last), _BLUE, open=True)
    if end in (Mark.WAITS, Mark.SENDING, Mark.STORED):
        over = [at for at in range(own[-1], last + 1) if rows[at].mark is Mark.ENDED]
        return _Bar(thing, first, min(over, default=last), _GREEN, open=True)
    if end is Mark.UNCERTAIN:
        return _Bar(thing, first, own[-1], _AMBER, doubtful=True)
    return _Bar(thing, first, own[-1], _BLUE if end is Mark.STEP_DONE else _GREEN)


def _laned(bars: Sequence[_Bar]) -> Sequence[tuple[int, _Bar]]:
    """Each bar with the first lane that is free for as long as it lasts."""
    taken: list[list[_Bar]] = []
    laned = []
    for bar in sorted(bars, key=lambda bar: (bar.first, bar.name != _CLAIM)):
        free = (at for at, lane in enumerate(taken) if all(o.last < bar.first for o in lane))
        lane = next(free, len(taken))
        if lane == _LANES:
            lane = _LANES - 1
        if lane == len(taken):
            taken.append([])
        taken[lane].append(bar)
        laned.append((lane + 1, bar))
    return laned


def _head(title: str, says: str, wide: int) -> tuple[list[str], float]:
    top = 30.0
    drawn = [_text(_EDGE, top, title, size=17, bold=True)]
    for line in _wrapped(says, (wide - 2 * _EDGE) / _LETTER):
        top += _LINE
        drawn.append(_text(_EDGE, top + 4, line))
    return drawn, top + 22


def _time_line(
    rows: Sequence[_Row],
    bars: Sequence[tuple[int, _Bar]],
    lanes: int,
    now: float,
    place: tuple[float, int],
) -> tuple[list[str], float]:
    """The rows, with the bars behind their marks, from a top on and so wide."""
    top, wide = place
    dated = any(when(row.at, now)[2:3] != ":" for row in rows)
    left = _EDGE + (_DATED if dated else _CLOCK) + 12
    words = left + lanes * _LANE + 4
    places: list[float] = []
    texts: list[str] = []
    before: _Row | None = None
    stamp = ""
    for row in rows:
        if before is not None and row.at - before.at >= _GAP:
            texts.append(_text(words, top + 13, f"{span(row.at - before.at)} later", faint=True))
            top += _LINE + 5
        drawn, high, stamp = _drawn_row(row, now, (words, top, wide), stamp)
        places.append(top + 11)
        texts += drawn
        top += high
        before = row
    graph = list(_graph(rows, bars, places, left, words))
    return [*graph, *texts], top + 6


def _drawn_row(
    row: _Row, now: float, place: tuple[float, float, int], stamp: str
) -> tuple[list[str], float, str]:
    """A row's time (`stamp` is that above, said once), author and words; its height; its time."""
    words, top, wide = place
    room = (wide - _EDGE - words) / _LETTER
    time = when(row.at, now)
    drawn, high = [], 0.0
    if time != stamp:
        clock, _, ago = time.partition(" (")
        drawn.append(_text(_EDGE, top + 15, clock, size=12))
        if row.at != now:
            drawn.append(_text(_EDGE, top + 28, ago.rstrip(")"), size=10.5, faint=True))
        high = 34.0
    who = safe(row.who)
    lines = _wrapped(f"{row.who}: {row.said}" if row.who else row.said, room)
    for at, line in enumerate(lines):
        named = len(who) if at == 0 and who and line.startswith(f"{who}:") else 0
        drawn.append(_text(words, top + 15 + at * _LINE, line, named=named, faint=not row.who))
    quoted = [piece for part in row.text.split("\n") for piece in _wrapped(part, room - 3)]
    if not row.text:
        quoted = []
    elif len(quoted) > _QUOTED:
        quoted = [*quoted[:_QUOTED], "…"]
    below = top + 15 + len(lines) * _LINE
    if quoted:
        bar_high = len(quoted) * _LINE
        drawn.append(_shape(f"M{words + 1:g} {below - 12:g}v{bar_high}", 2, 0.4))
    drawn += [_text(words + 10, below + at * _LINE, q) for at, q in enumerate(quoted)]
    return drawn, max(high, (len(lines) + len(quoted)) * _LINE + 6.0), time


def _graph(
    rows: Sequence[_Row],
    bars: Sequence[tuple[int, _Bar]],
    places: Sequence[float],
    left: float,
    words: float,
) -> Iterator[str]:
    if places:
        yield _shape(f"M{left} {places[0]:g}V{places[-1]:g}", 1.5, 0.45)
    lane_of: dict[int, int] = {}
    for lane, bar in bars:
        yield from _drawn_bar(bar, left + lane * _LANE, places[bar.first], places[bar.last])
        lane_of |= dict.fromkeys(_on(bar, rows), lane)
    for at, row in enumerate(rows):
        x, y = left + lane_of.get(at, 0) * _LANE, places[at]
        if words - x > _LANE + 4:
            yield _shape(f"M{x + 9:g} {y:g}H{words - 6:g}", 1, 0.25, dashes="1 3")
        yield _glyph(row.mark, x, y)


def _on(bar: _Bar, rows: Sequence[_Row]) -> Iterator[int]:
    """The rows whose signs stand on this bar."""
    for at in range(bar.first, bar.last + 1):
        row = rows[at]
        if bar.name != _CLAIM:
            on = row.thing == bar.name
        elif row.mark in _CLOSES:
            on = at == bar.last and row.mark is not Mark.ENDED
        else:
            on = not row.thing and row.who in _HOLDS
        if on:
            yield at


def _drawn_bar(bar: _Bar, x: float, first: float, last: float) -> Iterator[str]:
    claim = bar.name == _CLAIM
    wide, strength = (8, 0.28) if claim else (3, 0.9)
    dashes = "5 4" if bar.doubtful else "2 4" if bar.vague or bar.open else ""
    if not claim and not bar.open:
        last -= _SIGN_HIGH
    if last <= first:
        return
    yield _shape(f"M{x:g} {first:g}V{last:g}", wide, strength, bar.colour, dashes)


def _glyph(mark: Mark | None, x: float, y: float) -> str:
    """The sign of a moment, or of several that are folded, or of now."""
    sign = _SEVERAL if mark is None else SIGNS[mark]
    solid = sign.colour if sign.solid else "none"
    return (
        f'<path transform="translate({x:g} {y:g})" d="{sign.path}" fill="{solid}"'
        f' stroke="{sign.colour}" stroke-width="{sign.thick:g}" stroke-linecap="round"/>'
    )


def _facts(why: Explained, top: float, wide: int) -> tuple[list[str], float]:
    """The evidence as a table, and the command that helps."""
    top += 8
    drawn = [
        _shape(f"M{_EDGE} {top:g}H{wide - _EDGE}", 1, 0.25),
        _text(_EDGE, top + 22, "evidence", bold=True),
    ]
    top += 24
    names_wide = 186 if wide == WIDE else 120
    values = _EDGE + names_wide
    for name, value in [("verdict", why.verdict), *why.evidence]:
        names = _wrapped(name, (names_wide - 2) / _LETTER)
        lines = _wrapped(value, (wide - _EDGE - values) / _LETTER)
        drawn += [_text(_EDGE, top + _LINE * at, n, faint=True) for at, n in enumerate(names, 1)]
        drawn += [_text(values, top + _LINE * at, n) for at, n in enumerate(lines, 1)]
        top += _LINE * max(len(names), len(lines))
    if why.act and not why.act.startswith(f"answerback runs show {why.run}"):
        act, _, does = why.act.partition("  # ")
        top += 26
        drawn.append(_text(_EDGE, top, "next", bold=True))
        for line in _wrapped(act, (wide - 2 * _EDGE - 46) / _LETTER):
            drawn.append(_text(_EDGE + 46, top, line, mono=True))
            top += _LINE
        for line in _wrapped(does, (wide - 2 * _EDGE - 46) / _LETTER) if does else ():
            drawn.append(_text(_EDGE + 46, top, line, faint=True))
            top += _LINE
        top -= _LINE
    return drawn, top + 20


def _text(
    x: float,
    y: float,
    said: str,
    *,
    size: float = _SIZE,
    bold: bool = False,
    faint: bool = False,
    mono: bool = False,
    named: int = 0,
) -> str:
    """A line of text; its first `named` characters are somebody's name. It is safe already."""
    looks = f' font-size="{size:g}"' if size != _SIZE else ""
    looks += ' font-weight="600"' if bold else ""
    looks += ' opacity="0.72"' if faint else ""
    looks += f' font-family="{_MONO}" font-size="12"' if mono else ""
    shown = _xml(said)
    if named:
        shown = f'<tspan font-weight="600">{_xml(said[:named])}</tspan>{_xml(said[named:])}'
    return f'<text x="{x:g}" y="{y:g}"{looks}>{shown}</text>'


def _shape(path: str, wide: float, strength: float, colour: str = _INK, dashes: str = "") -> str:
    """A line."""
    broken = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{wide:g}"'
        f' stroke-opacity="{strength:g}"{broken}/>'
    )


def _xml(said: str) -> str:
    """The text as XML may have it: it stays text, and nothing in it moves anything."""
    return escape(safe(said).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd"))


def _wrapped(said: str, columns: float) -> list[str]:
    """The text, made safe, in lines of so many columns: broken between words, where they fit."""
    lines: list[str] = []
    line = ""
    for word in safe(said).split(" "):
        longer = f"{line} {word}" if line else word
        if _columns(longer) <= columns:
            line = longer
            continue
        if line:
            lines.append(line)
        line = ""
        for character in word:
            if _columns(line + character) > columns:
                lines.append(line)
                line = ""
            line += character
    return [*lines, line]


def _columns(text: str) -> int:
    """Its width in letters: those of Chinese and emoji take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
