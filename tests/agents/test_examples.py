"""The examples do what they say, run as a reader would run them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
from examples.order_tool import shopping

import bot.api
from bot.agents.function import load
from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.agents.http.conformance import check
from bot.clock import SystemClock
from bot.domain.errors import GiveUp, Retry
from bot.domain.findings import Level
from bot.domain.message import Attachment, InboundKind
from bot.domain.reply import Button, Reply
from bot.threads import Threads
from tests.agents.http.server import Asked, FakeAgentServer, ok, response
from tests.agents.turns import FakeFile, FakeTurn, message, turn
from tests.limits import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"
CLOCK = SystemClock()


class Crash(BaseException):
    """The process is gone at this instant."""


async def test_the_functions_of_the_smallest_example_answer() -> None:
    reply = load("examples.echo_function:reply", Threads(1))
    choose = load("examples.echo_function:choose", Threads(1))
    measure = load("examples.echo_function:measure", Threads(1))
    assert await reply(turn("hello")) == "You said: hello"
    offer = Reply("Tea or coffee?", buttons=(Button("Tea", "tea"), Button("Coffee", "coffee")))
    assert await choose(turn("hello")) == offer
    assert callable(load("examples.echo_function:slowly", Threads(1)))
    assert await choose(turn("Thanks ")) is None
    pressed = FakeTurn((message("Tea", InboundKind.BUTTON, button="tea"),))
    assert await choose(pressed) == Reply("You chose tea.")
    file = FakeFile(Attachment("photo", "ref"), b"1234")
    photo = message("cat", InboundKind.PHOTO, attachments=(file, file))
    assert await measure(FakeTurn((photo,))) == "3 characters, 8 bytes of files"


@pytest.fixture
def address() -> Iterator[str]:
    """The example server, as a process of its own on a free port."""
    command = [sys.executable, str(EXAMPLES / "http_agent.py"), "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.kill()


async def test_the_example_server_answers_and_passes_the_check(address: str) -> None:
    config = HttpAgentConfig(address, secret="change-me", timeout=PATIENCE)
    agent = HttpAgent(config, CLOCK)
    assert await agent(turn("hello")) == Reply("You said: hello")
    await agent.close()
    trials = await check(config, CLOCK)
    assert {trial.level for trial in trials} == {Level.OK}, trials


def test_the_example_server_is_about_as_short_as_promised() -> None:
    tree = ast.parse((EXAMPLES / "http_agent.py").read_text())
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert len(lines) <= 40


@pytest.fixture
async def shop() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer() as shop:
        yield shop


class Counter:
    """A shop that honours the key, and couriers who come once for each call."""

    def __init__(self) -> None:
        self.orders: dict[str, str] = {}
        self.couriers: list[str] = []
        self._numbers = count(1)

    def __call__(self, asked: Asked) -> bytes:
        if asked.path == "/orders":
            key = asked.headers["idempotency-key"]
            if key not in self.orders:
                self.orders[key] = f"A{next(self._numbers)}"
            return ok({"number": self.orders[key]})
        if asked.path == "/couriers":
            self.couriers.append(asked.json["order"])
            return ok({"name": "Grace"})
        return ok([{"name": "Grace"} for order in self.couriers if asked.path.endswith(order)])


def base(shop: FakeAgentServer) -> str:
    return shop.url.removesuffix("/turn")


async def test_the_order_is_placed_once_and_answered(shop: FakeAgentServer) -> None:
    shop.behaviour = counter = Counter()
    asked = turn("tea")
    said = await shopping(base(shop))(asked)
    assert said == "I ordered tea (number A1). Grace brings it."
    assert await shopping(base(shop))(asked.again()) == said
    assert (len(counter.orders), counter.couriers) == (1, ["A1"])


@pytest.mark.parametrize("path", ["/orders", "/couriers"])
@pytest.mark.parametrize("arrived", [True, False])
async def test_a_crash_in_the_middle_of_an_effect_never_doubles_it(
    shop: FakeAgentServer, path: str, arrived: bool
) -> None:
    shop.behaviour = counter = Counter()
    first = turn("tea")

    async def step(key: str, call: object, *, safe_to_repeat: bool = False) -> object:
        if f"/{key}s" != path:
            return await FakeTurn.step(first, key, call, safe_to_repeat=safe_to_repeat)  # type: ignore[arg-type]
        first.begun.add(key)
        if arrived:
            await call()  # type: ignore[operator]
        raise Crash

    dying = _WithStep(first, step)
    with pytest.raises(Crash):
        await shopping(base(shop))(dying)  # type: ignore[arg-type]
    said = await shopping(base(shop))(first.again())
    assert len(counter.orders) == 1
    assert len(counter.couriers) <= 1
    came = arrived or path == "/orders"
    assert said.endswith("Grace brings it." if came else "I'm not sure that a courier is coming.")


class _WithStep:
    """A turn with another `step`."""

    def __init__(self, inner: FakeTurn, step: object) -> None:
        self._inner = inner
        self.step = step

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


async def test_a_busy_shop_is_asked_again_and_an_empty_one_told_to_the_person(
    shop: FakeAgentServer,
) -> None:
    shop.behaviour = response(503)
    with pytest.raises(Retry) as again:
        await shopping(base(shop))(turn("tea"))
    assert again.value.after == 30
    shop.behaviour = response(409)
    with pytest.raises(GiveUp, match="The shop has no tea"):
        await shopping(base(shop))(turn("tea"))


def test_the_recipe_for_graphs_is_python_and_imports_what_there_is() -> None:
    recipe = (EXAMPLES / "graph_framework.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", recipe, re.DOTALL)
    imported = [
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "bot.api"
        for alias in node.names
    ]
    assert imported
    assert set(imported) <= set(bot.api.__all__)
