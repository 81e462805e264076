"""Steps of a turn: done once, whatever cuts the turn off."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.domain.errors import DatabaseUnavailable, Retry, StepInterrupted, StepResultInvalid
from bot.domain.turn import Agent, Turn
from bot.leases.checkpoints import Checkpoint
from bot.runs.steps import MAX_RESULT
from bot.threads import Threads, wait
from tests.fakes.updates import Person
from tests.kit.conversation import PATIENT
from tests.kit.passing import settle
from tests.limits import PATIENCE
from tests.world import Running, World, dies_at

ADA = 700100201


async def answer(world: World, agent: Agent, text: str = "go") -> list[str]:
    """Everything that Ada is told by an agent that nothing disturbs."""
    process = await world.start(agent=agent)
    await process.post_update(Person(ADA).text(text))
    await world.settled()
    return world.telegram.texts(ADA)


async def answer_after_death(
    world: World, agent: Agent, where: Checkpoint, second: Agent | None = None
) -> list[str]:
    """Everything that Ada is told when the first process dies at a checkpoint and a second one
    starts.
    """
    victims: list[Running] = []
    first = await world.start(agent=agent, reached=dies_at(where, lambda: victims[0]))
    victims.append(first)
    await first.post_update(Person(ADA).text("go"))
    await asyncio.wait([first._task])
    await world.start(agent=second or agent)
    await world.settled()
    return world.telegram.texts(ADA)


class Counted:
    """An agent of one step that counts how often the step's call was made."""

    def __init__(self, *, safe: bool) -> None:
        self.safe = safe
        self.keys: list[str] = []

    async def __call__(self, turn: Turn) -> str:
        async def call() -> str:
            self.keys.append(turn.idempotency_key("pay"))
            return f"paid {len(self.keys)}"

        try:
            return str(await turn.step("pay", call, safe_to_repeat=self.safe))
        except StepInterrupted:
            return "it may have happened"


@pytest.mark.parametrize(
    ("where", "safe", "said", "calls"),
    [
        (Checkpoint.STEP_BEGUN, True, "paid 1", 1),
        (Checkpoint.STEP_BEGUN, False, "it may have happened", 0),
        (Checkpoint.STEP_CALLED, True, "paid 2", 2),
        (Checkpoint.STEP_CALLED, False, "it may have happened", 1),
        (Checkpoint.STEP_STORED, True, "paid 1", 1),
        (Checkpoint.STEP_STORED, False, "paid 1", 1),
        (Checkpoint.AGENT_RETURNED, False, "paid 1", 1),
    ],
)
async def test_a_death_around_a_step(
    world: World, where: Checkpoint, safe: bool, said: str, calls: int
) -> None:
    agent = Counted(safe=safe)
    assert await answer_after_death(world, agent, where) == [said]
    assert len(agent.keys) == calls
    assert len(set(agent.keys)) <= 1


@pytest.mark.alternating(1)
async def test_the_same_step_asked_for_twice_at_once_is_done_once(world: World) -> None:
    calls: list[int] = []

    async def agent(turn: Turn) -> str:
        async def call() -> int:
            calls.append(1)
            return len(calls)

        return str(await asyncio.gather(*(turn.step("one", call) for _ in range(10))))

    assert await answer(world, agent) == [str([1] * 10)]
    assert calls == [1]


@pytest.mark.alternating(0)
async def test_many_steps_at_once_in_one_turn(world: World) -> None:
    async def agent(turn: Turn) -> str:
        async def call(n: int) -> int:
            return n * n

        async def one(n: int) -> int:
            return int(await turn.step(f"square-{n}", lambda: call(n)))

        return str(sum(await asyncio.gather(*(one(n) for n in range(60)))))

    assert await answer(world, agent) == [str(sum(n * n for n in range(60)))]
    assert await world.rows("SELECT count(*) FROM steps WHERE state = 'done'") == [(60,)]


@pytest.mark.alternating(0)
async def test_a_blocking_step_leaves_the_loop_free(world: World) -> None:
    free = threading.Event()

    async def agent(turn: Turn) -> str:
        asyncio.get_running_loop().call_later(0.01, free.set)
        return "free" if await turn.step("block", lambda: free.wait(PATIENCE)) else "blocked"

    assert await answer(world, agent) == ["free"]


@pytest.mark.alternating(0)
async def test_a_plain_function_agent_may_have_blocking_steps(world: World) -> None:
    def reply(turn: Turn) -> str:
        names = [wait(turn.step(f"s{n}", lambda: threading.current_thread().name)) for n in "ab"]
        return ",".join(names)

    threads = Threads(1)

    async def agent(turn: Turn) -> str:
        return await threads.run(lambda: reply(turn))

    assert await answer(world, agent) == ["agent,agent"]


@pytest.mark.alternating(0)
async def test_a_cancelled_turn_does_not_wait_for_a_blocking_step(world: World) -> None:
    begun, release = threading.Event(), threading.Event()

    def block() -> bool:
        begun.set()
        return release.wait(PATIENCE)

    async def agent(turn: Turn) -> str:
        return str(await turn.step("block", block))

    process = await world.start(agent=agent)
    ada = Person(ADA)
    await process.post_update(ada.text("go"))
    await asyncio.to_thread(begun.wait, PATIENCE)
    await process.post_update(ada.text("/stop"))
    await world.settled()
    release.set()
    assert await world.rows("SELECT ending FROM runs") == [("withdrawn",)]


async def bad(call: Callable[[], Awaitable[Any] | Any], turn: Turn) -> str:
    try:
        await turn.step("bad", call)
    except StepResultInvalid as error:
        return str(error)
    return "it was taken"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (object(), "'bad' returned object, which is not JSON"),
        (float("nan"), "'bad' returned float, which is not JSON"),
        ("x" * MAX_RESULT, "return a reference to it instead"),
    ],
)
async def test_a_result_that_can_not_be_kept_is_a_clear_error(
    world: World, result: object, said: str
) -> None:
    async def agent(turn: Turn) -> str:
        return await bad(lambda: result, turn)

    (told,) = await answer(world, agent)
    assert said in told


@pytest.mark.alternating(0)
async def test_a_step_that_asks_for_itself_is_an_error_and_no_endless_wait(world: World) -> None:
    async def agent(turn: Turn) -> str:
        async def again() -> Any:
            return await turn.step("bad", again)

        return await bad(again, turn)

    (told,) = await answer(world, agent)
    assert "asks for its own result" in told


async def test_any_text_survives_as_a_result(world: World) -> None:
    odd = "a\x00b \ud800 \u200b é 😀"

    async def agent(turn: Turn) -> str:
        first = await turn.step("odd", lambda: odd)
        again = await turn.step("odd", lambda: "other")
        return "kept" if first == again == odd else repr((first, again))

    assert await answer(world, agent) == ["kept"]


async def test_a_stored_step_is_progress(world: World) -> None:
    """Failures before a step do not count together with failures after it."""
    tries: list[int] = []

    async def agent(turn: Turn) -> str:
        tries.append(1)
        if len(tries) in (2, 4):
            await turn.step(f"s{len(tries)}", lambda: 1)
        if len(tries) < 6:
            raise OSError
        return "done"

    process = await world.start(agent=agent, **PATIENT)
    await process.post_update(Person(ADA).text("go"))
    await settle(world)
    assert world.telegram.texts(ADA) == ["done"]


@pytest.mark.alternating(0)
async def test_a_step_that_asks_for_a_retry_is_begun_again(world: World) -> None:
    tries: list[int] = []

    async def agent(turn: Turn) -> str:
        async def call() -> str:
            tries.append(1)
            if len(tries) == 1:
                raise Retry(after=0.01)
            return "done"

        return str(await turn.step("pay", call))

    assert await answer(world, agent) == ["done"]


@pytest.mark.alternating(1)
async def test_b95_after_a_stop_no_step_begins(world: World) -> None:
    reached, go_on, called = asyncio.Event(), asyncio.Event(), []

    async def agent(turn: Turn) -> str:
        await turn.step("one", lambda: 1)
        reached.set()
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            await turn.step("two", lambda: called.append(2))
            raise
        return "never"

    process = await world.start(agent=agent)
    ada = Person(ADA)
    await process.post_update(ada.text("go"))
    await reached.wait()
    await process.post_update(ada.text("/stop"))
    await world.settled()
    assert called == []
    assert await world.rows("SELECT key, state FROM steps") == [("one", "done")]


@pytest.mark.parametrize("safe", [True, False])
async def test_a_start_whose_commit_was_not_heard_of_is_no_interruption(
    world: World, safe: bool
) -> None:
    agent = Counted(safe=safe)
    process = await world.start(agent=agent)
    db = process.process.rt.db
    write, lost = db.write, []

    async def deaf(move: Any, *args: Any, **kwargs: Any) -> Any:
        done = await write(move, *args, **kwargs)
        if move.__name__ in ("_begin", "_finish") and move.__name__ not in lost:
            lost.append(move.__name__)
            raise DatabaseUnavailable("the answer got lost")
        return done

    db.write = deaf  # type: ignore[method-assign]
    await process.post_update(Person(ADA).text("go"))
    await world.settled()
    assert world.telegram.texts(ADA) == ["paid 1"]
    assert lost == ["_begin", "_finish"]
    assert await world.rows("SELECT begun, state FROM steps") == [(1, "done")]


@pytest.mark.alternating(0)
async def test_an_exit_within_steps_at_once_is_only_a_failure(world: World) -> None:
    async def leaves() -> str:
        sys.exit("usage: order ITEM")

    async def agent(turn: Turn) -> str:
        return str(await asyncio.gather(turn.step("one", leaves), turn.step("two", leaves)))

    process = await world.start(agent=agent, max_failures=1)
    await process.post_update(Person(ADA).text("go"))
    await world.settled()
    assert await world.rows("SELECT ending FROM runs") == [("apologised",)]
