"""The examples in the whole program: killed in their middle, they do nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import cast

import examples.tools
import pytest
from examples.order_tool import shopping

from bot.agents.assistant.tools import load_tools
from bot.agents.function import load
from bot.domain.turn import Agent, safe_to_repeat
from bot.leases.checkpoints import Checkpoint, Reached
from bot.threads import Threads
from tests.agents.assistant.models import ScriptedModel, assistant, call
from tests.agents.http.server import Asked, FakeAgentServer, ok
from tests.fakes.updates import Person
from tests.world import Running, World, dies_at

ADA = 700100201


class Shop:
    """It honours idempotency keys; its couriers come once for each call."""

    def __init__(self) -> None:
        self.orders: dict[str, str] = {}
        self.couriers: list[str] = []
        self._numbers = count(1)

    def __call__(self, asked: Asked) -> bytes:
        if asked.path == "/orders":
            key = asked.headers["idempotency-key"]
            self.orders.setdefault(key, f"A{next(self._numbers)}")
            return ok({"number": self.orders[key]})
        if asked.path == "/couriers":
            self.couriers.append(asked.json["order"])
            return ok({"name": "Grace"})
        return ok([{"name": "Grace"} for order in self.couriers if asked.path.endswith(order)])


@pytest.fixture
async def server() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer(Shop()) as server:
        yield server


def base(server: FakeAgentServer) -> str:
    return server.url.removesuffix("/turn")


async def killed(world: World, agent: Agent, reached: Callable[..., Reached]) -> list[str]:
    """Everything that Ada is told when a first process dies and a second one goes on."""
    victims: list[Running] = []
    first = await world.start(agent=agent, reached=reached(lambda: victims[0]))
    victims.append(first)
    await first.post_update(Person(ADA).text("tea"))
    await asyncio.wait([first._task])
    await world.start(agent=agent)
    await world.settled()
    return world.telegram.texts(ADA)


def at_step(where: Checkpoint, n: int) -> Callable[[Callable[[], Running]], Reached]:
    """Dies at a checkpoint of the turn's n-th step."""

    def make(victim: Callable[[], Running]) -> Reached:
        dying = dies_at(where, victim)
        left = n

        async def reached(checkpoint: Checkpoint) -> None:
            nonlocal left
            left -= checkpoint is where
            if checkpoint is where and left == 0:
                await dying(checkpoint)

        return reached

    return make


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    "where", [Checkpoint.STEP_BEGUN, Checkpoint.STEP_CALLED, Checkpoint.STEP_STORED]
)
async def test_the_order_is_placed_once_wherever_the_process_dies(
    world: World, server: FakeAgentServer, where: Checkpoint, step: int
) -> None:
    shop = server.behaviour
    assert isinstance(shop, Shop)
    (told,) = await killed(world, cast(Agent, shopping(base(server))), at_step(where, step))
    lost = step == 2 and where is Checkpoint.STEP_BEGUN
    assert told.endswith("not sure that a courier is coming." if lost else "Grace brings it.")
    assert len(shop.orders) == 1
    assert shop.couriers == ([] if lost else ["A1"])


async def test_the_tools_of_the_example_order_once(
    world: World, server: FakeAgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples.tools, "SHOP", base(server))
    shop = server.behaviour
    assert isinstance(shop, Shop)
    model = ScriptedModel(
        call("opening_hours", "a", day="sunday"),
        call("order", "b", item="tea", quantity=1),
        call("call_courier", "c", order_number="A1"),
        "Ordered.",
    )
    functions = [tool.function for tool in load_tools("examples.tools")]
    agent = assistant(model, *functions)
    assert await killed(world, agent, at_step(Checkpoint.STEP_CALLED, 4)) == ["Ordered."]
    assert len(shop.orders) == 1
    assert shop.couriers == ["A1"]
    assert model.calls == 4


GRAPH = '''
from bot.api import Turn

CALLS = []

class Graph:
    """The outline of a graph framework: nodes in a row, a state that goes through them."""

    def __init__(self, *nodes):
        self.nodes = nodes

    async def ainvoke(self, state, turn):
        for node in self.nodes:
            state = {**state, **await node(state, turn)}
        return state

async def research(state, turn: Turn):
    async def look_up():
        CALLS.append("research")
        return "tea is hot"
    return {"known": await turn.step("research", look_up, safe_to_repeat=True)}

async def answer(state, turn: Turn):
    async def ask():
        CALLS.append("answer")
        return f"{state['question']}: {state['known']}"
    return {"text": await turn.step("answer", ask, safe_to_repeat=True)}

graph = Graph(research, answer)

async def reply(turn: Turn) -> str:
    return (await graph.ainvoke({"question": turn.text}, turn))["text"]
'''


async def test_a_graph_goes_on_after_the_node_that_was_done(
    world: World, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    (folder / "a_graph_of_mine.py").write_text(GRAPH)
    monkeypatch.syspath_prepend(folder)
    loaded = load("a_graph_of_mine:reply", Threads(1))
    import a_graph_of_mine  # type: ignore[import-not-found]  # noqa: PLC0415 - made just now

    a_graph_of_mine.CALLS.clear()
    told = await killed(world, loaded, at_step(Checkpoint.STEP_STORED, 1))
    assert told == ["tea: tea is hot"]
    assert a_graph_of_mine.CALLS == ["research", "answer"]


async def test_a_shutdown_reaches_the_tool_and_the_turn_goes_on_elsewhere(world: World) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def look(word: str) -> str:
        """Look something up."""
        if begun.is_set():
            return f"{word} it is"
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "never"

    model = ScriptedModel(call("look", word="tea"), "So it is.")
    first = await world.start(agent=assistant(model, safe_to_repeat(look)))
    await first.post_update(Person(ADA).text("tea?"))
    await begun.wait()
    await first.stop(grace=0.1)
    assert cancelled.is_set()
    await world.start(agent=assistant(model, look))
    await world.settled()
    assert world.telegram.texts(ADA) == ["So it is."]
    assert model.calls == 2
    assert await world.rows("SELECT failures, deaths FROM runs") == [(0, 0)]


async def test_the_deadline_reaches_the_tool(world: World) -> None:
    cancelled = asyncio.Event()

    async def look(word: str) -> str:
        """Look something up."""
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return word

    model = ScriptedModel(call("look", word="tea"), "never")
    process = await world.start(agent=assistant(model, look), run_deadline=3.0)
    await process.post_update(Person(ADA).text("tea?"))
    await world.settled()
    assert cancelled.is_set()
    assert await world.rows("SELECT ending, detail FROM runs") == [
        ("apologised", "the deadline passed")
    ]
    assert len(world.telegram.texts(ADA)) == 1
