"""Die at every checkpoint, on every database and platform, and begin anew.

What the person sees and what the rows say in the end must be what they would have been
without the death. The one exception is the part that was marked as being sent when the
process died, where the provider can't tell: it may be missing, is never sent again by
itself, and its run says so.
"""

from __future__ import annotations

import pickle
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.leases.checkpoints import Checkpoint
from bot.texts import Text, Words
from tests.crash.play import FIRST, Line, Played, Plot, play, plot_of
from tests.crash.stages import STAGES
from tests.world import World, open_world


@dataclass(frozen=True, slots=True)
class Case:
    """One death."""

    death: Checkpoint
    channel: str
    parts: int

    @property
    def plot(self) -> Plot:
        return plot_of(self.death)

    @property
    def doubtful(self) -> frozenset[int]:
        """The number of parts that may be on their way at that moment that nobody can ask about."""
        if self.channel in _TELL or self.death not in MARKED:
            return frozenset({0})
        if self.channel in _REPORT and self.death in _DID_ARRIVE:
            return frozenset({0})
        # The pace may keep the next part back: then it was not marked yet.
        return frozenset({0, 1} if self.death is Checkpoint.PART_RECORDED else {1})

    def __str__(self) -> str:
        return f"{self.death.name.lower()}-{self.channel}-{self.parts}"


MARKED = frozenset(
    {
        Checkpoint.REPLY_STORED,
        Checkpoint.BEFORE_SEND,
        Checkpoint.AFTER_SEND,
        Checkpoint.PART_RECORDED,
        Checkpoint.APOLOGY_STORED,
        Checkpoint.STANDALONE_BEFORE_SEND,
        Checkpoint.STANDALONE_AFTER_SEND,
    }
)
"""The checkpoints at which a part is marked as being sent."""
_DID_ARRIVE = frozenset({Checkpoint.AFTER_SEND, Checkpoint.STANDALONE_AFTER_SEND})
_TELL = ("whatsapp", "file", "web")
"""The channels whose provider can be asked what arrived."""
_REPORT = ("whatsapp_cloud",)
"""The channels whose provider tells of whatever arrived, and can't be asked about what did not."""
_FURTHER = (
    Checkpoint.MESSAGE_COMMITTED,
    Checkpoint.CLAIMED,
    Checkpoint.BEFORE_SEND,
    Checkpoint.AFTER_SEND,
    Checkpoint.PART_RECORDED,
    Checkpoint.STANDALONE_AFTER_SEND,
)
"""The deaths of a channel that only the tests have: what it has of its own goes through them."""
_NOTES = frozenset(
    Words.load().say(text, word="resend")
    for text in (Text.UNCERTAIN_ASK, Text.UNCERTAIN_ASK_BUTTON)
)


def _bare(text: str) -> str:
    """The words of a part without the choices under them, which people may see as buttons."""
    return text.partition("\n\n1. ")[0]


def _cases() -> Iterator[Case]:
    for death in Checkpoint:
        for channel in STAGES:
            for parts in (1, 3):
                case = Case(death, channel, parts)
                if _comes_by(case):
                    yield case


def _comes_by(case: Case) -> bool:
    """A terminal cuts nothing into parts, a notice has one, and nothing is left after one."""
    if case.channel == "file" and case.death not in _FURTHER:
        return False
    if case.death is Checkpoint.PART_RECORDED:
        return case.parts == 3 and case.channel != "console"
    single = case.channel in ("console", "file") or case.plot is Plot.NOTICE
    return case.parts == 1 or not single


Undisturbed = Callable[[Case], Awaitable[Played]]


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder for stories that one worker of a run has told and all read."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "stories"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def undisturbed(sqlite_template: Path, tmp_path: Path, stories: Path) -> Undisturbed:
    """The same story without a death. It ends alike on both databases: one tells it."""

    async def tell(case: Case) -> Played:
        told = stories / f"{case.channel}-{case.parts}-{case.plot.name.lower()}"
        if not told.exists():
            shutil.copyfile(sqlite_template, tmp_path / "undisturbed.db")
            async with open_world(f"sqlite:///{tmp_path}/undisturbed.db") as world:
                stage = STAGES[case.channel](world)
                played = await play(world, stage, case.parts, case.plot, None)
            # Another worker may be telling it, too: whoever reads must find it whole.
            telling = tmp_path / "telling"
            telling.write_bytes(pickle.dumps(played))
            telling.replace(told)
        found: Played = pickle.loads(told.read_bytes())
        return found

    return tell


def _sampled(case: Case) -> bool:
    """Tell whether a case is no deep one: of an answer in one part and one in three, each platform
    has the one at one checkpoint and the other at the next."""
    other = replace(case, parts=4 - case.parts)
    turn = list(Checkpoint).index(case.death) + list(STAGES).index(case.channel)
    return not _comes_by(other) or case.parts == (1, 3)[turn % 2]


def _sample() -> Iterator[tuple[Case, int]]:
    """Numbers that deal each checkpoint's cases to both databases, and each platform's too: every
    third to PostgreSQL, where a story costs three times as much."""
    for first, death in enumerate(Checkpoint):
        cases = (case for case in _cases() if case.death is death and _sampled(case))
        for number, case in enumerate(cases, first):
            yield case, int(number % 3 == 0)


def test_the_sample_comes_by_every_checkpoint_on_each_platform_and_on_both_databases() -> None:
    sample = list(_sample())
    for deaths_or_channels, dealt in (
        (Checkpoint, {(case.death, database) for case, database in sample}),
        (STAGES, {(case.channel, database) for case, database in sample}),
    ):
        assert dealt == {(one, database) for one in deaths_or_channels for database in (0, 1)}
    assert {(c.death, c.channel) for c, _ in sample} == {(c.death, c.channel) for c in _cases()}
    assert {(c.channel, c.parts) for c, _ in sample} == {(c.channel, c.parts) for c in _cases()}


@pytest.mark.parametrize(
    "case",
    [
        *(
            pytest.param(case, marks=pytest.mark.alternating(number), id=str(case))
            for case, number in _sample()
        ),
        *(
            pytest.param(case, marks=pytest.mark.deep, id=str(case))
            for case in _cases()
            if not _sampled(case)
        ),
    ],
)
async def test_after_a_death_everything_ends_as_if_nobody_had_died(
    world: World, case: Case, undisturbed: Undisturbed
) -> None:
    stage = STAGES[case.channel](world)
    played = await play(world, stage, case.parts, case.plot, case.death)
    expected = await undisturbed(case)
    assert played.reached, f"no process came by {case.death.name}"
    _same_rows(case, played, expected)
    _same_sight(case, played, expected)
    _same_work(case, played, expected)


def _same_rows(case: Case, played: Played, expected: Played) -> None:
    """Invariants 2, 6, 8 and 10: one row for each message, each run and each part."""
    rows = [line for line in played.parts if _bare(line.text) not in _NOTES]
    doubted = [line for line in rows if line.state == "uncertain"]
    assert len(doubted) in case.doubtful
    assert all(line.receipts == (line.state == "arrived") for line in rows)
    assert sorted(replace(_cleared(line), receipts=1) for line in rows) == expected.parts
    ending = "uncertain" if doubted and case.plot is Plot.ANSWER else ""
    told = [(text, ending if ending and text == FIRST else end) for text, end in expected.runs]
    assert played.runs == told
    assert len(played.parts) - len(rows) == (1 if ending else 0), "one note for an uncertain end"


def _cleared(line: Line) -> Line:
    return replace(line, state="arrived") if line.state == "uncertain" else line


def _same_sight(case: Case, played: Played, expected: Played) -> None:
    """Invariants 6 and 9: each part once and in order, save for the one that was on its way."""
    doubted = [_bare(line.text) for line in played.parts if line.state == "uncertain"]
    missing = [] if case.death in _DID_ARRIVE else doubted
    shown = [text for text in played.shown if text not in _NOTES]
    assert Counter(shown) == Counter(expected.shown) - Counter(missing)
    answers = [text for text in expected.shown if text.startswith("answer")]
    assert [text for text in shown if text in answers] == [t for t in answers if t not in missing]


def _same_work(case: Case, played: Played, expected: Played) -> None:
    """Invariant 5: what is stored is never made again, neither a reply nor a step."""
    again = 0 if played.stored else 1
    assert played.calls[FIRST] <= played.calls_then[FIRST] + max(
        again, expected.calls[FIRST] - played.calls_then[FIRST]
    )
    if played.stored or case.death is Checkpoint.APOLOGY_STORED:
        assert played.calls == expected.calls
    repeated = 1 if case.death is Checkpoint.STEP_CALLED else 0
    assert played.looked_up == expected.looked_up + repeated
