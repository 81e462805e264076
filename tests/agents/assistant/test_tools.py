"""Loading tools: their forms, the model's view of them, and errors that help."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from bot.agents.assistant.builtin_tools import builtin_functions
from bot.agents.assistant.tools import Function, load_tools, make_tool, unique
from bot.agents.assistant.web_page import WebReader
from bot.domain.errors import ConfigurationError
from bot.domain.turn import Turn
from tests.agents.assistant.models import ScriptedModel, assistant, call, results
from tests.agents.turns import turn

GOOD = '''
from __future__ import annotations
import asyncio
from typing import Literal
from bot.api import Turn, safe_to_repeat

def helper_of_another_module(x: int) -> int: ...
helper_of_another_module.__module__ = "elsewhere"

@safe_to_repeat
def look_up(word: str, language: Literal["en", "de"] = "en") -> str:
    """Look a word up.

    Args:
        word: The word.
        language: Its language.
    """
    return f"{word} in {language}"

async def order(item: str, turn: Turn, idempotency_key: str) -> dict[str, str]:
    """Order something."""
    return {"item": item, "key": idempotency_key}

def _private() -> None: ...
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for tool modules, from which they are imported."""
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("mytools"):
            del sys.modules[name]


def test_public_functions_of_the_module_are_its_tools(folder: Path) -> None:
    (folder / "mytools_good.py").write_text(GOOD)
    look_up, order = load_tools("mytools_good")
    assert (look_up.name, look_up.safe, look_up.given) == ("look_up", True, frozenset())
    assert [p.name for p in look_up.parameters] == ["word", "language"]
    assert (order.name, order.safe) == ("order", False)
    assert order.given == {"turn", "idempotency_key"}
    assert [p.name for p in order.parameters] == ["item"]


def test_all_names_what_is_offered(folder: Path) -> None:
    (folder / "mytools_some.py").write_text(
        "__all__ = ['order']\n" + GOOD.replace("from __future__ import annotations", "")
    )
    assert [tool.name for tool in load_tools("mytools_some")] == ["order"]


async def test_the_model_sees_the_schema_without_what_is_ours(folder: Path) -> None:
    (folder / "mytools_shown.py").write_text(GOOD)
    seen: list[AgentInfo] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        return ModelResponse(parts=[TextPart("ok")])

    functions = [tool.function for tool in load_tools("mytools_shown")]
    await assistant(FunctionModel(answer), *functions)(turn("hi"))
    look_up, order = sorted(seen[0].function_tools, key=lambda tool: tool.name)
    assert set(order.parameters_json_schema["properties"]) == {"item"}
    properties = look_up.parameters_json_schema["properties"]
    assert properties["language"]["enum"] == ["en", "de"]
    assert properties["word"]["description"] == "The word."
    assert look_up.parameters_json_schema["required"] == ["word"]
    assert look_up.description is not None
    assert "Look a word up." in look_up.description


async def test_a_plain_function_is_a_tool_too(folder: Path) -> None:
    (folder / "mytools_plain.py").write_text(GOOD)
    functions = [tool.function for tool in load_tools("mytools_plain")]
    model = ScriptedModel(call("look_up", word="tea"), "ok")
    await assistant(model, *functions)(turn("hi"))
    assert results(model.asked[-1]) == ["tea in en"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1", "defines no public function"),
        ("def f(a: int) -> int: return a", "f has no docstring"),
        ('def f(a) -> int:\n    """F."""', "parameter 'a' has no type hint"),
        ('def f(*a: int) -> int:\n    """F."""', "parameter 'a' has no name for a model"),
        ('def f(a: "Nope") -> int:\n    """F."""', "the type hints of f"),
        ("__all__ = ['g']", "has no 'g', which __all__ names"),
        ("import nowhere_to_be_found", "'nowhere_to_be_found', which is not installed"),
        ("1/0", "ZeroDivisionError"),
        ('def f(a: "((") -> int:\n    """F."""', "the type hints of f: Forward reference must"),
        (
            'import sys\ndef f(a: "sys.nope") -> int:\n    """F."""',
            "the type hints of f: module 'sys' has no attribute 'nope'",
        ),
        ("def __getattr__(name): 1/0", "failed: ZeroDivisionError: division by zero (mytools_"),
        ("def __getattr__(name): 1/0\n__all__ = ['g']", "; mend it, or name another in TOOLS"),
        ("__all__ = [5]", "failed: TypeError: attribute name must be string"),
    ],
)
def test_what_is_wrong_with_a_module_is_said(folder: Path, source: str, said: str) -> None:
    name = f"mytools_{abs(hash(source))}"
    (folder / f"{name}.py").write_text(source)
    with pytest.raises(ConfigurationError, match="TOOLS=") as wrong:
        load_tools(name)
    assert said in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_type_that_no_model_can_be_told_of_is_said_when_the_assistant_is_made(
    folder: Path,
) -> None:
    (folder / "mytools_odd.py").write_text('class Odd: ...\ndef f(a: Odd) -> int:\n    """F."""\n')
    [tool] = load_tools("mytools_odd")
    with pytest.raises(ConfigurationError, match=r"^TOOLS: describing f to a model failed"):
        tool.as_pydantic()


def test_a_missing_module_is_said() -> None:
    with pytest.raises(ConfigurationError, match="TOOLS=mytools_none: there is no module"):
        load_tools("mytools_none")


def test_two_tools_of_one_name_are_refused() -> None:
    async def web_fetch(url: str, turn: Turn) -> str:
        """Mine."""
        return url

    tools = [make_tool(f) for f in (*builtin_functions(WebReader()), web_fetch)]
    with pytest.raises(ConfigurationError, match="two tools are called 'web_fetch'"):
        unique(tools)


def test_no_tool_of_ours_takes_the_name_of_a_chat_a_person_or_a_run() -> None:
    """Whatever a person's words talk a model into, what it can call is its own turn's."""
    tools = [make_tool(f) for f in builtin_functions(WebReader(), people=True)]
    asked_for = {tool.name: {p.name for p in tool.parameters} for tool in tools}
    assert asked_for == {
        "remind_me": {"when", "text", "zone"},
        "list_reminders": set(),
        "cancel_reminder": {"number"},
        "web_fetch": {"url"},
        "hand_over": {"reason"},
    }


def test_no_tools_are_fine() -> None:
    assert load_tools("") == []


async def test_the_assistant_asks_for_a_person_only_where_there_is_one() -> None:
    alone, staffed = (
        {function.__name__: function for function in builtin_functions(WebReader(), people=people)}
        for people in (False, True)
    )
    assert "hand_over" not in alone
    model = ScriptedModel(call("hand_over", reason="wants a refund"), "I pass it on.")
    asked = turn("refund!")
    assert await assistant(model, staffed["hand_over"])(asked) == "I pass it on."
    assert asked.handoffs == ["wants a refund"]
    assert "promise nothing" in results(model.asked[-1])[0]


async def leaves() -> str:
    """Leave."""
    sys.exit("usage: order ITEM")


def leaves_in_a_thread() -> str:
    """Leave."""
    sys.exit("usage: order ITEM")


@pytest.mark.parametrize("tool", [leaves, leaves_in_a_thread])
async def test_an_exit_within_a_tool_is_only_its_failure(tool: Function) -> None:
    model = ScriptedModel(call(tool.__name__), "It did not work.")
    assert await assistant(model, tool)(turn("hi")) == "It did not work."
    [told] = results(model.asked[-1])
    assert told.startswith("The tool failed (SystemExit).")
