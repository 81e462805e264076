"""AGENT=llm as real processes, on a model server that counts what it is asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.agents.http.server import Asked, FakeAgentServer, ok
from tests.e2e.processes import Ground
from tests.fakes.updates import Person
from tests.limits import until

ADA = 700_100_223
TOOL = """
import pathlib
import time

HERE = pathlib.Path(__file__).parent


def cook(dish: str) -> str:
    \"\"\"Cook a dish.\"\"\"
    with (HERE / "cooked").open("a") as book:
        book.write(f"{dish}\\n")
    while not (HERE / "done").exists():
        time.sleep(0.02)
    return f"{dish} is ready"
"""


def completion(message: dict[str, Any]) -> bytes:
    """A response in OpenAI's form."""
    return ok(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 1_800_000_000,
            "model": "local",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
                    "message": {"role": "assistant", **message},
                }
            ],
            "usage": {"prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75},
        }
    )


def cooking(asked: Asked) -> bytes:
    """Calls the tool first, then says what came of it."""
    told = [m["content"] for m in asked.json["messages"] if m["role"] == "tool"]
    if told:
        return completion({"content": f"I heard: {told[-1]}"})
    function = {"name": "cook", "arguments": json.dumps({"dish": "soup"})}
    called = {"id": "call-1", "type": "function", "function": function}
    return completion({"content": None, "tool_calls": [called]})


@pytest.fixture
async def model() -> AsyncIterator[FakeAgentServer]:
    async with FakeAgentServer(cooking) as server:
        yield server


def assistant(ground: Ground, model: FakeAgentServer) -> dict[str, str]:
    """The settings of the assistant with the one tool."""
    (ground.folder / "kitchen.py").write_text(TOOL)
    return {
        "AGENT": "llm",
        "LLM_MODEL": "local",
        "LLM_BASE_URL": model.url.removesuffix("/turn") + "/v1",
        "TOOLS": "kitchen",
    }


async def test_b80_a_kill_inside_a_tool_is_told_to_the_model_and_costs_no_call_again(
    ground: Ground, model: FakeAgentServer
) -> None:
    settings = assistant(ground, model)
    book = ground.folder / "cooked"
    first = await ground.serve(**settings)
    assert (await first.post_update(Person(ADA).text("cook"))).status_code == 200
    await until(lambda: book.exists() and bool(book.read_text()))
    await first.kill()
    await ground.serve(**settings)
    await ground.world.settled()
    (told,) = ground.world.telegram.texts(ADA)
    assert "may have happened" in told
    assert book.read_text() == "soup\n"
    assert len(model.asked) == 2


async def test_a_hand_over_inside_a_blocking_tool_is_no_failure(
    ground: Ground, model: FakeAgentServer
) -> None:
    settings = assistant(ground, model)
    first = await ground.serve(**settings, SHUTDOWN_GRACE="0.5")
    await first.post_update(Person(ADA).text("cook"))
    await until((ground.folder / "cooked").exists)
    assert await first.stop() == 0
    await ground.serve(**settings)
    await ground.world.settled()
    assert len(ground.world.telegram.texts(ADA)) == 1
    assert await ground.world.rows("SELECT failures, deaths FROM runs") == [(0, 0)]


async def test_the_operator_sees_calls_and_tokens(ground: Ground, model: FakeAgentServer) -> None:
    settings = assistant(ground, model)
    (ground.folder / "done").touch()
    served = await ground.serve(**settings)
    await served.post_update(Person(ADA).text("cook"))
    await ground.world.settled()
    assert ground.world.telegram.texts(ADA) == ["I heard: soup is ready"]
    shown = await ground.spawn("runs", "show", "1", "--json", **settings)
    assert await shown.ended() == 0
    assert json.loads("\n".join(shown.printed))["usage"] == {
        "calls": 2,
        "failed": 0,
        "cut_off": 0,
        "input_tokens": 140,
        "output_tokens": 10,
    }
