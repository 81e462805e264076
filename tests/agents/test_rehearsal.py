"""`answerback agent check` tells of an agent in this process all that turns would meet."""

from __future__ import annotations

import pytest

from bot.agents.http.conformance import Trial
from bot.agents.rehearsal import rehearse
from bot.clock import SystemClock
from bot.domain.errors import GiveUp, Retry
from bot.domain.findings import Level
from bot.domain.reply import Reply
from bot.domain.turn import Agent, Turn

CLOCK = SystemClock()


async def rehearsed(agent: Agent) -> dict[str, Trial]:
    return {trial.name: trial for trial in await rehearse(agent, CLOCK, 60.0)}


async def test_an_agent_that_answers_everything_passes_and_its_steps_are_done_once() -> None:
    done: list[str] = []

    async def agent(turn: Turn) -> Reply:
        for message in turn.messages:
            for file in message.attachments:
                assert await file.read()
        stored = await turn.step("look", lambda: done.append(turn.request_id))
        return Reply(f"{turn.text} {stored}")

    report = await rehearsed(agent)
    assert {trial.level for trial in report.values()} == {Level.OK}, report
    assert len(done) == len(set(done)), "the turn that was cut found its step"
    assert report["the same turn again, after a cut"].detail.endswith("characters")


async def test_an_exception_is_told_with_its_words_and_place() -> None:
    async def agent(turn: Turn) -> str:
        raise LookupError(f"nothing known of {turn.text}")

    [trial] = (await rehearsed(agent)).values()
    assert trial.level is Level.PROBLEM
    said = "LookupError: nothing known of Hello, who are you? (tests/agents/test_rehearsal.py:"
    assert trial.detail.startswith(said)


async def test_a_step_that_was_not_awaited_is_a_problem() -> None:
    async def agent(turn: Turn) -> str:
        return f"{turn.step('look', lambda: 1)}"

    [trial] = (await rehearsed(agent)).values()
    assert (trial.level, trial.detail[:29]) == (Level.PROBLEM, "1 step(s) were never awaited ")


async def test_what_only_some_messages_break_is_named_by_them() -> None:
    async def agent(turn: Turn) -> str | None:
        if turn.messages[0].attachments:
            raise Retry(5)
        if turn.messages[0].button:
            raise GiveUp("no")
        if len(turn.messages) > 1:
            await turn.step("odd", object)
        return "well" if turn.text.strip() else None

    report = await rehearsed(agent)
    assert report["a photo with a caption"].detail == "asked to be tried again (5 s)"
    assert report["a pressed button"].detail == "gave up"
    several = report["two messages in one turn, with history"]
    assert (several.level, several.detail[:17]) == (Level.PROBLEM, "StepResultInvalid")
    assert report["a blank message"].detail == "stayed silent"


@pytest.mark.parametrize("reminder", ["add", "waiting"])
async def test_reminders_are_refused_and_none_waits(reminder: str) -> None:
    async def agent(turn: Turn) -> str:
        if reminder == "waiting":
            return f"{len(await turn.reminders.waiting())} at {turn.reminders.now()}"
        await turn.reminders.add("in 20 minutes", "tea", key="tea")
        return "kept"

    first = (await rehearsed(agent))["a plain text"]
    assert (first.level is Level.OK) is (reminder == "waiting")
