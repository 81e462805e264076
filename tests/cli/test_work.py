"""Work on a turn as the terminal tells it, before and after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from bot.agents.demo import PAY, SHARES, WRITE, DemoAgent
from bot.cli.talk.work import WorkFollower, work_lines
from bot.domain.run import RunState
from bot.domain.turn import Turn
from bot.supervisor import beside
from bot.texts import Words
from bot.wiring import typed
from storage.views.progress import Progress, TakenStep
from tests.limits import until
from tests.world import World

SECONDS = 20.0


class Paper:
    """A terminal that keeps everything, a line each."""

    lasting = True

    def __init__(self) -> None:
        self.told: list[str] = []
        self.shown: list[str] = []

    def welcome(self, runs: Sequence[str], hints: Sequence[str]) -> None:
        """Nobody is welcomed."""

    def entered(self) -> None:
        """Nobody types."""

    def left(self) -> None:
        """Nobody was there."""

    def disturbed(self) -> None:
        """Paper stays as it is."""

    def answer(self, text: str) -> None:
        self.told.append(f"bot> {text}")

    def tell(self, text: str) -> None:
        self.told.append(text)

    def show(self, name: str, text: str) -> None:
        self.shown.append(text)


async def echo(turn: Turn) -> str:
    return f"re: {turn.text}"


def seen(*steps: TakenStep, replied: bool = False, claimed_at: float = 100.0) -> Progress:
    state = RunState.RUNNING
    return Progress(1, state, None, 2, claimed_at, replied, (), steps, 0, now=112.0)


@pytest.mark.parametrize(
    ("progress", "lines"),
    [
        (seen(claimed_at=111.5), []),
        (seen(), ["  at work, 12 s"]),
        (seen(replied=True), ["  worked on it for 12 s"]),
        (
            seen(TakenStep("pay", 1, '"R-1"', 101.0, 103.0), TakenStep("w", 1, None, 103.0, None)),
            ["  step 1, pay: done in 2 s (R-1)", "  step 2, w: at work, 9 s"],
        ),
        (
            seen(TakenStep("pay", 1, '"R-1"', 11.0, 13.0), TakenStep("w", 2, None, 13.0, None)),
            [
                "  step 1, pay: done before, not done again (R-1)",
                "  step 2, w: at work again, 12 s",
            ],
        ),
        (
            seen(
                TakenStep("a", 1, '{"n": 1}', 101.0, 102.0), TakenStep("b", 2, "null", 9.0, 105.0)
            ),
            ["  step 1, a: done in 1 s", "  step 2, b: done in 5 s"],
        ),
        (
            seen(TakenStep("pay", 1, None, 11.0, None)),
            ["  step 1, pay: cut off, and not done again so far"],
        ),
        (
            seen(TakenStep("a", 1, f'"{"x" * 41}"', 101.0, 102.0)),
            ["  step 1, a: done in 1 s"],
        ),
    ],
)
def test_a_run_is_told_step_by_step(progress: Progress, lines: list[str]) -> None:
    assert [line.text for line in work_lines(progress)] == lines


def has(lines: list[str], count: int) -> bool:
    return len(lines) == count


async def paper_shows(paper: Paper, what: str) -> None:
    await until(lambda: any(what in text for text in paper.shown))


@pytest.mark.alternating(0)
async def test_killed_behind_the_payment_the_next_terminal_shows_question_and_receipt(
    world: World,
) -> None:
    agent = DemoAgent(Words.load(), world.clock, SECONDS)
    before, after = Paper(), Paper()
    first = await world.start(agent=agent, terminal=lambda _text: None)
    async with beside("follow", WorkFollower(first.process, before, "old").follow()):
        await typed(first.process, "a pizza", "old-1")
        for done, step in enumerate(("read", "pay")):
            await paper_shows(before, f", {step}: at work")
            world.advance(SECONDS * SHARES[step])
            await until(partial(has, before.told, done + 1))
        await paper_shows(before, f", {WRITE}: at work")
    receipt = before.told[1].partition("(")[2].rstrip(")")
    await first.die()
    answers: list[str] = []
    second = await world.start(agent=agent, terminal=answers.append)
    follower = WorkFollower(second.process, after, "new")
    async with beside("follow", follower.follow()):
        await paper_shows(after, f", {WRITE}: at work again")
        world.advance(SECONDS * SHARES[WRITE])
        await until(lambda: bool(answers))
        await follower.answer(answers[0], "old-1")
    assert after.told[0].startswith("you> a pizza (asked ")
    assert after.told[2] == f"  step 2, {PAY}: done before, not done again ({receipt})"
    assert after.told[3].startswith(f"  step 3, {WRITE}: done in ")
    assert after.told[4].startswith("bot> ")
    assert receipt in after.told[4]
    assert len(after.told) == 5


async def test_a_late_answer_stands_below_its_question_and_ones_own_does_not(world: World) -> None:
    answers: list[str] = []
    running = await world.start(agent=echo, terminal=answers.append)
    for count, number in enumerate(("old-1", "new-1"), 1):
        await typed(running.process, f"line {number}", number)
        await until(partial(has, answers, count))
    paper = Paper()
    follower = WorkFollower(running.process, paper, "new")
    await follower.answer("late", "old-1")
    await follower.answer("in time", "new-1")
    await follower.answer("of nobody", "")
    question, *others = paper.told
    assert question.startswith("you> line old-1 (asked ")
    assert others == ["bot> late", "bot> in time", "bot> of nobody"]


async def test_an_answer_is_shown_although_the_database_is_away(world: World) -> None:
    running = await world.start(agent=echo, terminal=lambda _text: None)
    paper = Paper()
    running.away(away=True)
    await WorkFollower(running.process, paper, "new").answer("late", "old-1")
    assert paper.told == ["bot> late"]
