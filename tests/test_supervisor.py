"""Background tasks go on after errors, and who does not is named."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bot.domain.errors import DatabaseUnavailable
from bot.supervisor import Supervisor, beside
from tests.clocks import ShiftedClock
from tests.kit.agents import Echo
from tests.limits import PATIENCE, until
from tests.world import World

ROOT = Path(__file__).parents[1]
OWNERS = {
    "bot/supervisor.py": "the owner of all that has no other",
    "bot/main.py": "the HTTP server, until it is closed",
    "bot/runs/worker.py": "turns by their run, so that a stop finds them",
    "bot/runs/typing.py": "signs of work by their run, ended with its turn",
    "storage/engine/lane.py": "a list under way, on which its members wait",
    "bot/delivery/inflight.py": "calls to providers, which outlive their turns",
    "bot/agents/function.py": "an agent's own code, which may ignore its cancellation",
    "channels/web/stream.py": "the wait for a client to go, ended with its stream",
    "bot/operator/live.py": "the same, of an operator's page",
    "bot/testing/bot.py": "a delivery of the fake platform, waited for at once",
    "bot/testing/life.py": "a process in a builder's test, until its death or its hand-over",
    "bot/cli/talk/chat.py": "the terminal's talk and its stop, ended together",
}


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture
async def tasks(clock: ShiftedClock) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(clock)
    yield supervisor
    await supervisor.stop()


async def going_on(clock: ShiftedClock, holds: Callable[[], bool]) -> None:
    """Let time pass until it holds."""

    def seen() -> bool:
        clock.advance(40.0)
        return holds()

    await until(seen)


async def test_a_step_that_fails_is_tried_again_and_its_trouble_passes(
    clock: ShiftedClock, tasks: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [ValueError("once"), KeyError("twice"), TypeError("and again")]
    troubled: list[dict[str, str]] = []
    steps = 0

    async def step() -> float:
        nonlocal steps
        steps += 1
        troubled.append(dict(tasks.troubled))
        if errors:
            raise errors.pop(0)
        return 1.0

    tasks.repeat("work", step, usual=1.0)
    await going_on(clock, lambda: steps > 4)
    assert troubled[:3] == [{}, {}, {}]
    assert troubled[3] == {"work": "failed 3 times in a row, with TypeError"}
    assert troubled[4] == {}
    assert "work: failed 1 times in a row, with ValueError" in caplog.text


async def test_a_database_that_is_away_is_no_trouble(
    clock: ShiftedClock, tasks: Supervisor
) -> None:
    tries = 0

    async def step() -> float:
        nonlocal tries
        tries += 1
        raise DatabaseUnavailable("away")

    tasks.repeat("work", step, usual=1.0)
    await going_on(clock, lambda: tries > 10)
    assert tasks.troubled == {}


async def test_errors_are_backed_off_but_a_vital_task_keeps_its_pace(
    clock: ShiftedClock, tasks: Supervisor
) -> None:
    tries = {"vital": 0, "other": 0}

    def failing(name: str) -> Callable[[], asyncio.Future[None]]:
        def work() -> asyncio.Future[None]:
            tries[name] += 1
            raise RuntimeError(name)

        return work

    tasks.every("vital", 1.0, failing("vital"), vital=True)
    tasks.every("other", 1.0, failing("other"))
    await until(lambda: min(tries.values()) > 0)
    for _ in range(60):
        clock.advance(1.0)
        for _ in range(3):
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.0)
    assert tries["vital"] > 40
    assert 3 < tries["other"] < 15


async def test_a_wall_clock_that_is_set_in_the_middle_of_a_task_does_not_put_off_the_next(
    clock: ShiftedClock, tasks: Supervisor
) -> None:
    steps = 0

    async def work() -> None:
        nonlocal steps
        steps += 1
        clock.wall_is_wrong_by -= 3600.0

    tasks.every("vital", 1.0, work, vital=True)
    for wanted in range(1, 4):
        clock.advance(1.0)
        await until(lambda: steps == wanted)  # noqa: B023 - asked within this turn of the loop


async def test_a_task_that_is_over_is_named_and_one_that_is_done_is_not(tasks: Supervisor) -> None:
    async def gone() -> float:
        raise asyncio.CancelledError("by something of its own")

    async def done() -> None:
        return None

    tasks.repeat("gone", gone, usual=1.0)
    tasks.repeat("done", done, usual=1.0)
    await asyncio.wait(tasks.tasks.values(), timeout=PATIENCE)
    await until(lambda: bool(tasks.troubled))
    assert tasks.troubled == {"gone": "is over"}


async def test_a_hint_ends_a_pause(tasks: Supervisor) -> None:
    hint, stepped = asyncio.Event(), asyncio.Semaphore(0)

    async def step() -> float:
        stepped.release()
        return 3600.0

    tasks.repeat("work", step, usual=1.0, hint=hint)
    async with asyncio.timeout(PATIENCE):
        for _ in range(3):
            await stepped.acquire()
            hint.set()


async def test_what_runs_beside_ends_with_the_body_and_keeps_its_errors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began = asyncio.Event()

    async def broken() -> None:
        began.set()
        raise ValueError("decoration")

    async with beside("showing", broken()):
        await began.wait()
    async with beside("waiting", asyncio.Event().wait()) as task:
        assert not task.done()
    assert task.cancelled()
    assert "the showing task broke" in caplog.text


async def test_readiness_names_the_tasks_of_a_process_that_keep_failing(world: World) -> None:
    running = await world.start(agent=Echo())
    [well] = [c for c in await running.process.readiness() if c.name == "tasks"]
    assert well.well

    async def broken() -> float:
        raise ValueError("some defect")

    running.process.tasks.repeat("backfill of another", broken, usual=1.0)

    def troubled() -> bool:
        world.clock.advance(0.5)
        return bool(running.process.tasks.troubled)

    await until(troubled)
    [check] = [c for c in await running.process.readiness() if c.name == "tasks"]
    assert not check.well
    assert check.says.startswith("backfill of another failed ")


def test_no_task_is_without_an_owner() -> None:
    """`asyncio.create_task` stands where something keeps the task until its end; elsewhere
    tasks are a `TaskGroup`'s or the supervisor's."""
    found = {
        str(file.relative_to(ROOT))
        for folder in ("bot", "channels", "storage")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and (
            node.attr == "ensure_future"
            or (
                node.attr == "create_task"
                and isinstance(node.value, ast.Name)
                and node.value.id in ("asyncio", "loop")
            )
        )
    }
    assert found <= set(OWNERS), "give it to the supervisor, or say here who owns it"
