"""The built-in assistant in the whole program: the cost of crashes, and the words to people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from pydantic_ai.exceptions import ModelAuthenticationError, ModelHTTPError, ModelRateLimitError

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint, Reached
from bot.texts import Text
from storage.views import usage
from storage.views.usage import Usage
from tests.agents.assistant.models import WORDS, ScriptedModel, assistant, call, results
from tests.fakes.updates import Person
from tests.kit.conversation import PATIENT
from tests.limits import until
from tests.world import Running, World, dies_at

ADA = 700100223


class Kitchen:
    """A tool with an outside effect, and how often it was used."""

    def __init__(self) -> None:
        self.cooked: list[str] = []

    async def cook(self, dish: str) -> str:
        """Cook a dish."""
        self.cooked.append(dish)
        return f"{dish} is ready"


def five_steps() -> ScriptedModel:
    """Four tools, one after the other, and an answer: five model calls, nine steps."""
    return ScriptedModel(*(call("cook", f"c{n}", dish=f"dish {n}") for n in range(4)), "All done.")


def dies_at_nth(where: Checkpoint, n: int, victim: Callable[[], Running]) -> Reached:
    """Dies when the checkpoint is reached for the n-th time."""
    dying = dies_at(where, victim)
    seen = 0

    async def reached(checkpoint: Checkpoint) -> None:
        nonlocal seen
        seen += checkpoint is where
        if checkpoint is where and seen == n:
            await dying(checkpoint)

    return reached


async def killed_once(
    world: World, model: ScriptedModel, kitchen: Kitchen, where: Checkpoint, n: int = 1
) -> None:
    """A turn whose first process dies at the n-th `where`, and is finished by a second."""
    victims: list[Running] = []
    agent = assistant(model, kitchen.cook)
    first = await world.start(agent=agent, reached=dies_at_nth(where, n, lambda: victims[0]))
    victims.append(first)
    await first.post_update(Person(ADA).text("cook"))
    await asyncio.wait([first._task])
    await world.start(agent=assistant(model, kitchen.cook))
    await world.settled()


async def spent(world: World) -> Usage:
    (run,) = await world.rows("SELECT id FROM runs ORDER BY id LIMIT 1")
    process = world.running[-1].process
    return await process.rt.db.read(usage.of_run, run[0])


async def test_a_turn_with_tools_is_answered_and_its_cost_is_kept(world: World) -> None:
    model, kitchen = five_steps(), Kitchen()
    process = await world.start(agent=assistant(model, kitchen.cook))
    await process.post_update(Person(ADA).text("cook"))
    await world.settled()
    assert world.telegram.texts(ADA) == ["All done."]
    cost = await spent(world)
    assert (cost.calls, cost.failed, cost.cut_off) == (5, 0, 0)
    assert cost.input_tokens > 0
    assert cost.output_tokens > 0


@pytest.mark.parametrize("where", [Checkpoint.REPLY_STORED, Checkpoint.AGENT_RETURNED])
async def test_a_kill_after_the_last_step_costs_no_further_call(
    world: World, where: Checkpoint
) -> None:
    model, kitchen = five_steps(), Kitchen()
    await killed_once(world, model, kitchen, where)
    assert len(world.telegram.texts(ADA)) == 1
    assert await world.rows("SELECT coalesce(reply, text) FROM outbox WHERE kind = 'reply'") == [
        ("All done.",)
    ]
    assert model.calls == 5
    assert len(kitchen.cooked) == 4


@pytest.mark.parametrize("n", [1, 4, 5, 8, 9])
async def test_a_kill_after_k_of_n_steps_costs_only_the_unfinished_ones(
    world: World, n: int
) -> None:
    model, kitchen = five_steps(), Kitchen()
    await killed_once(world, model, kitchen, Checkpoint.STEP_STORED, n)
    assert world.telegram.texts(ADA) == ["All done."]
    assert model.calls == 5
    assert kitchen.cooked == [f"dish {n}" for n in range(4)]
    assert (await spent(world)).cut_off == 0


async def test_a_call_that_was_cut_off_is_counted_as_spent_again(world: World) -> None:
    model, kitchen = ScriptedModel("one", "two"), Kitchen()
    await killed_once(world, model, kitchen, Checkpoint.STEP_CALLED)
    assert world.telegram.texts(ADA) == ["two"]
    cost = await spent(world)
    assert (cost.calls, cost.failed, cost.cut_off) == (2, 0, 1)


@pytest.mark.parametrize("where", [Checkpoint.STEP_BEGUN, Checkpoint.STEP_CALLED])
async def test_b80_a_kill_inside_a_tool_leaves_one_reply_and_a_chat_that_goes_on(
    world: World, where: Checkpoint
) -> None:
    kitchen = Kitchen()
    model = ScriptedModel(call("cook", dish="soup"), "I am not sure.", "Hello!")
    victims: list[Running] = []
    agent = assistant(model, kitchen.cook)
    first = await world.start(agent=agent, reached=dies_at_nth(where, 2, lambda: victims[0]))
    victims.append(first)
    ada = Person(ADA)
    await first.post_update(ada.text("cook"))
    await asyncio.wait([first._task])
    second = await world.start(agent=assistant(model, kitchen.cook))
    await world.settled()
    await second.post_update(ada.text("hello?"))
    await world.settled()
    assert world.telegram.texts(ADA) == ["I am not sure.", "Hello!"]
    assert len(kitchen.cooked) <= 1
    (told,) = results(model.asked[1])
    assert "may have happened" in told
    assert model.heard() == ["cook", "I am not sure.", "hello?"]


async def test_b95_after_the_person_s_stop_no_model_call_begins(world: World) -> None:
    cooking, go_on = asyncio.Event(), asyncio.Event()

    async def cook(dish: str) -> str:
        """Cook a dish."""
        cooking.set()
        await go_on.wait()
        return dish

    model = ScriptedModel(call("cook", dish="soup"), "never", "Hello!")
    process = await world.start(agent=assistant(model, cook))
    ada = Person(ADA)
    await process.post_update(ada.text("cook"))
    await cooking.wait()
    await process.post_update(ada.text("/stop"))
    go_on.set()
    await world.settled()
    assert model.calls == 1
    assert "never" not in world.telegram.texts(ADA)
    assert await world.rows("SELECT ending FROM runs") == [("withdrawn",)]


def busy() -> ScriptedModel:
    """429 three times, then 529 and 503, then an answer."""
    limited = ModelHTTPError.for_category(
        ModelRateLimitError, status_code=429, model_name="m", headers={"retry-after": "4"}
    )
    down = ModelHTTPError(529, "m"), ModelHTTPError(503, "m")
    return ScriptedModel(limited, limited, limited, *down, "there")


async def test_b76_eight_chats_wait_for_a_busy_model_and_all_are_answered(world: World) -> None:
    models: dict[str, ScriptedModel] = {}

    async def agent(turn: Turn) -> str:
        model = models.setdefault(turn.chat.address, busy())
        return await assistant(model, clock=world.clock)(turn)

    process = await world.start(agent=agent, **PATIENT)
    for n in range(8):
        await process.post_update(Person(ADA + n).text("hi"))
    waits: list[list[float]] = []
    for attempt in range(1, 6):
        rows = await world.until(
            "SELECT not_before - claimed_at, detail FROM runs WHERE state = 'ready' "
            f"AND attempts = {attempt}",
            lambda rows: len(rows) == 8,
        )
        assert all("is not available" in detail for _, detail in rows)
        waits.append([wait for wait, _ in rows])
        world.advance(90)
    await world.settled()
    assert all(world.telegram.texts(ADA + n) == ["there"] for n in range(8))
    assert [model.calls for model in models.values()] == [6] * 8
    assert all(wait >= 4 for asked in waits[:3] for wait in asked)
    assert len(set(waits[0])) == 8
    assert min(waits[4]) > max(waits[0])


async def test_a_refused_key_is_said_once_and_shown_to_the_operator(world: World) -> None:
    error = ModelHTTPError.for_category(
        ModelAuthenticationError, status_code=401, model_name="m", body="a secret"
    )
    model = ScriptedModel(error)
    process = await world.start(agent=assistant(model))
    await process.post_update(Person(ADA).text("hi"))
    await world.settled()
    assert world.telegram.texts(ADA) == [WORDS.say(Text.UNAVAILABLE)]
    assert model.calls == 1
    (row,) = await world.rows("SELECT ending, detail FROM runs")
    assert row[0] == "apologised"
    assert "401" in row[1]
    assert "secret" not in row[1]


async def test_b07_a_model_that_never_answers_does_not_slow_the_doors(world: World) -> None:
    asked = 0

    async def hang() -> None:
        nonlocal asked
        asked += 1
        await asyncio.get_running_loop().create_future()

    process = await world.start(agent=assistant(ScriptedModel("x", before=hang)))
    for n in range(11):
        # A door that waited for a model would never come back.
        response = await process.post_update(Person(ADA + n).text("hi"))
        assert response.status_code == 200
    await until(lambda: asked > 0)
    assert await world.rows("SELECT count(*) FROM runs WHERE state = 'ended'") == [(0,)]
    assert await world.rows("SELECT count(*) FROM inbound") == [(11,)]
