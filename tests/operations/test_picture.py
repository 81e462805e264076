"""The life of a run as a picture: always readable, open about what nobody knows, and short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from bot.operations.reports.explain import Explained
from bot.operations.reports.phrases import safe
from bot.operations.reports.picture import SIGNS, draw_run
from storage.views.timeline import Mark, Moment

NOW = 1_800_003_600.0
WHY = Explained(12, "uncertain", "it ended as uncertain", [("state", "ended")], "")
_SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script><a href="javascript:x">\x1b[2J\u202e\ufffe&amp;]]>'


def read(course: Sequence[Moment], why: Explained = WHY, *, text: bool = False) -> ET.Element:
    return ET.fromstring(draw_run(course, why, NOW, text=text))


def words(picture: ET.Element) -> str:
    return "\n".join("".join(line.itertext()) for line in picture.iter(f"{_SVG}text"))


def moment(after: float, what: str, mark: Mark, thing: str = "", who: str = "worker") -> Moment:
    return Moment(NOW - 600 + after, who, what, mark=mark, thing=thing)


_TEXTS = st.text(max_size=60) | st.just(HOSTILE)
_MOMENTS = st.builds(
    Moment,
    at=st.floats(0, 4e9),
    who=st.sampled_from(["worker", "agent", "outbox", "run", HOSTILE]),
    what=_TEXTS,
    detail=_TEXTS,
    text=_TEXTS,
    due=st.none() | st.floats(0, 4e9),
    mark=st.sampled_from(Mark),
    thing=st.sampled_from(["", "part 1", "part 2", "step a", "step b"]),
)


@given(st.lists(_MOMENTS, max_size=90), _TEXTS)
def test_any_course_makes_a_picture_in_which_words_stay_words(
    course: list[Moment], said: str
) -> None:
    why = Explained(12, said, said, [(said, said)], said)
    picture = read(sorted(course, key=lambda m: m.at), why, text=True)
    names = {element.tag.removeprefix(_SVG) for element in picture.iter()}
    assert names <= {"svg", "title", "desc", "style", "text", "tspan", "path"}
    attributes = {name for element in picture.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in attributes)
    shown = words(picture) + "".join(picture.itertext())
    assert shown.replace("\n", "") == safe(shown.replace("\n", ""))


def test_words_of_people_are_in_it_only_when_they_are_asked_for() -> None:
    said = replace(moment(0, "message recorded", Mark.MESSAGE), text="my secret is 42")
    assert "secret" not in draw_run([said], WHY, NOW)
    assert "my secret is 42" in words(read([said], text=True))


def test_what_nobody_knows_has_a_line_and_a_sign_of_its_own() -> None:
    assert set(SIGNS) == set(Mark)
    shapes = [(sign.path, sign.solid) for sign in SIGNS.values()]
    assert len(set(shapes)) == len(shapes)

    def dashed(end: Mark) -> bool:
        course = [moment(0, "sending", Mark.SENDING, "part 1"), moment(9, "is", end, "part 1")]
        return 'stroke-dasharray="5 4"' in draw_run(course, WHY, NOW)

    assert dashed(Mark.UNCERTAIN)
    assert not dashed(Mark.ARRIVED)


def test_what_overlaps_stands_side_by_side() -> None:
    course = [
        moment(0, "run made", Mark.MADE, who="intake"),
        moment(1, "reply 1 sending", Mark.SENDING, "part 1"),
        moment(2, "released", Mark.DIED),
        moment(3, "last claimed", Mark.CLAIMED),
        moment(4, "reply 1 is sent", Mark.ARRIVED, "part 1"),
        moment(5, "ended answered", Mark.ENDED),
    ]
    bars = re.findall(r'd="M(\d+) (\d+)V(\d+)"', draw_run(course, WHY, NOW))
    lives = [(int(x), int(first), int(last)) for x, first, last in bars]
    assert len(lives) == 4, "the run, two claims and a part"
    for x, first, last in lives:
        others = [o for o in lives if o[0] == x and o != (x, first, last)]
        assert all(o[1] > last or o[2] < first for o in others)


def test_a_long_run_is_folded_and_its_deaths_are_not() -> None:
    failures = [moment(n, f"failed {n}", Mark.FAILED) for n in range(100)]
    steps = [
        moment(100 + n, f"step {n}", (Mark.STEP_BEGAN, Mark.STEP_DONE)[n % 2], f"step {n // 2}")
        for n in range(200)
    ]
    died = moment(200.5, "released", Mark.DIED, who="worker-7")
    course = sorted([*failures, *steps, died], key=lambda m: m.at)
    picture = read(course)
    told = words(picture)
    assert "98 more moments" in told
    assert "worker-7: released" in told
    assert "step 199" in told
    assert float(picture.attrib["height"]) < 3200
