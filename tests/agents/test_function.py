"""AGENT=package.module:function: loading it, running it, refusing it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from bot.agents.function import FunctionAgent, load
from bot.domain.errors import AgentFailed, ConfigurationError, GiveUp, Retry
from bot.domain.reply import Reply
from bot.threads import Threads
from tests.agents.turns import turn

Module = Callable[[str], str]
LAZY = "def __getattr__(name): raise {error}"
PROPERTY = "class Bot:\n  @property\n  def reply(self): {body}\nbot = Bot()"
PARTIAL = "import functools\nasync def think(model, turn): return turn.text"
_numbers = count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Writes a module into the current folder, which is on nobody's path, and names it."""
    monkeypatch.chdir(tmp_path)
    path, known = list(sys.path), set(sys.modules)

    def write(source: str) -> str:
        name = f"my_bot_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        return name

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if name.startswith("my_bot"):
            del sys.modules[name]


def loaded(spec: str) -> FunctionAgent:
    return load(spec, Threads(2))


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("async def reply(turn): return turn.text", "reply"),
        ("def reply(turn): return turn.text", "reply"),
        ("reply = lambda turn: turn.text", "reply"),
        ("async def think(turn): return turn.text\ndef reply(turn): return think(turn)", "reply"),
        ("class Bot:\n  async def __call__(self, turn): return turn.text", "Bot"),
        ("class Bot:\n  async def __call__(self, turn): return turn.text\nbot = Bot()", "bot"),
        ("class Bot:\n  def answer(self, turn): return turn.text\nbot = Bot()", "bot.answer"),
        ("class Bot:\n  @staticmethod\n  async def answer(turn): return turn.text", "Bot.answer"),
        ("async def reply(turn, model='small'): return turn.text", "reply"),
        ("async def reply(*turns): return turns[0].text", "reply"),
        (f"{PARTIAL}\nreply = functools.partial(think, 'small')", "reply"),
    ],
)
async def test_anything_that_takes_the_turn_can_be_the_agent(
    module: Module, source: str, path: str
) -> None:
    assert await loaded(f"{module(source)}:{path}")(turn("hello")) == "hello"


async def test_a_module_of_a_package_in_the_current_folder_is_found(
    module: Module, tmp_path: Path
) -> None:
    package = tmp_path / "my_bot_package"
    package.mkdir()
    (package / "agents.py").write_text("async def reply(turn): return 'found'")
    assert await loaded("my_bot_package.agents:reply")(turn("hello")) == "found"


async def test_a_plain_function_runs_beside_the_loop_and_a_coroutine_on_it(module: Module) -> None:
    source = "import threading\ndef plain(turn): return str(threading.get_ident())\n"
    name = module(source + "async def on_loop(turn): return plain(turn)")
    here = str(threading.get_ident())
    assert await loaded(f"{name}:plain")(turn("")) != here
    assert await loaded(f"{name}:on_loop")(turn("")) == here


@pytest.mark.parametrize("value", [None, "", "text", Reply("text"), Reply(silent=True)])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_reply_a_text_or_nothing_is_an_answer(value: object, is_async: bool) -> None:
    async def on_loop(_: object) -> object:
        return value

    def plain(_: object) -> object:
        return value

    agent = FunctionAgent("m:f", on_loop if is_async else plain, Threads(1))
    assert await agent(turn("")) == value


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def reply(turn): return 3", "int"),
        ("async def reply(turn): return {'text': 'x'}", "dict"),
        ("def reply(turn): return (c for c in 'x')", "a generator: it yields, and must return"),
        (
            "async def think(): return 'x'\nasync def reply(turn): return think()",
            r"a coroutine: an `await` is missing in front of think\(\.\.\.\)",
        ),
        (
            "import asyncio\nasync def reply(turn): return asyncio.sleep(0, 'x')",
            r"a coroutine: an `await` is missing in front of sleep\(",
        ),
        (
            "import asyncio\nasync def reply(turn): return asyncio.Future()",
            "Future, which must be awaited",
        ),
        ("def reply(turn): return reply", "reply itself: it must be called"),
        ("def reply(turn): return Reply", "Reply itself: it must be called"),
        ("def reply(turn): return Reply(3)", "a Reply whose text is int, not a str"),
        ("def reply(turn): return Reply(None)", "a Reply whose text is NoneType, not a str"),
        ("def reply(turn): return Reply('x', 'Yes')", "a Reply whose buttons are str, not a tuple"),
        (
            "def reply(turn): return Reply('x', ('',))",
            "a Reply with str among its buttons, which takes only Button",
        ),
        (
            "def reply(turn): return Reply('x', files=[b'x'])",
            "a Reply with bytes among its files, which takes only FileOut",
        ),
    ],
)
async def test_another_result_is_a_failure_that_says_what_is_allowed(
    module: Module, source: str, complaint: str
) -> None:
    name = module(f"from bot.api import Reply\n{source}")
    allowed = r"\. An agent returns a str, a Reply, or None to say nothing$"
    with pytest.raises(AgentFailed, match=f"^{name}:reply returned {complaint}.*{allowed}"):
        await loaded(f"{name}:reply")(turn("a secret"))


async def test_a_builder_is_told_once_that_none_says_nothing(
    module: Module, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "answerback.builders")
    agent = loaded(f"{module('def reply(turn): turn.text')}:reply")
    for _ in range(2):
        assert await agent(turn("hello")) is None
    [line] = caplog.messages
    assert "returned None, so nothing is said; return a str to answer" in line


@pytest.mark.parametrize("keyword", ["def", "async def"])
@pytest.mark.parametrize(
    ("raised", "error"),
    [
        ("Retry(after=4)", Retry),
        ("GiveUp('Sorry')", GiveUp),
        ("ValueError('x')", ValueError),
        ("SystemExit(1)", RuntimeError),
        ("KeyboardInterrupt", RuntimeError),
        ("GeneratorExit", RuntimeError),
        ("type('Odd', (BaseException,), {})", RuntimeError),
    ],
)
async def test_errors_pass_and_an_exit_is_only_a_failure(
    module: Module, keyword: str, raised: str, error: type[Exception]
) -> None:
    source = f"from bot.api import *\n{keyword} reply(turn): raise {raised}"
    with pytest.raises(error):
        await loaded(f"{module(source)}:reply")(turn(""))


async def test_cancelling_the_turn_reaches_a_coroutine(module: Module) -> None:
    name = module(
        "import asyncio\nbegun, told = asyncio.Event(), []\n"
        "async def reply(turn):\n"
        "  begun.set()\n"
        "  try: await asyncio.Event().wait()\n"
        "  finally: told.append('cancelled')\n"
    )
    running = asyncio.ensure_future(loaded(f"{name}:reply")(turn("")))
    await sys.modules[name].begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sys.modules[name].told == ["cancelled"]


async def test_a_coroutine_that_cancels_itself_is_only_a_failure(module: Module) -> None:
    name = module("import asyncio\nasync def reply(turn): raise asyncio.CancelledError")
    with pytest.raises(AgentFailed, match="cancelled itself"):
        await loaded(f"{name}:reply")(turn(""))


async def test_a_coroutine_that_ignores_its_cancellation_is_left_alone(
    module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.agents.function.PATIENCE", 0.01)
    name = module(
        "import asyncio\nbegun, end, told = asyncio.Event(), asyncio.Event(), []\n"
        "async def reply(turn):\n"
        "  begun.set()\n"
        "  while not end.is_set():\n"
        "    try: await end.wait()\n"
        "    except asyncio.CancelledError: told.append('cancelled')\n"
        "  raise ValueError('nobody hears this')\n"
    )
    running = asyncio.ensure_future(loaded(f"{name}:reply")(turn("")))
    await sys.modules[name].begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sys.modules[name].told == ["cancelled"]
    sys.modules[name].end.set()


@pytest.mark.parametrize(
    ("source", "path", "complaint"),
    [
        ("def replay(turn): ...", "reply", r"has no function 'reply'; did you mean replay\?"),
        ("def think(turn): ...", "reply", r"my_bot_\d+\.py has no function 'reply'; it has think"),
        ("", "reply", r"it has none"),
        ("class Bot: ...", "Bot.answer", r"has no function 'answer'"),
        ("reply = 'hello'", "reply", r"reply is a str, not a function"),
        ("def reply(): ...", "reply", r"must take one argument, the turn, but its .* is \(\)"),
        ("def reply(turn, model): ...", "reply", r"signature is \(turn, model\)"),
        ("def reply(*, turn): ...", "reply", r"must take one argument"),
        ("async def reply(turn): yield 1", "reply", r"it yields; return the whole text"),
        ("def reply(turn): yield 1", "reply", r"it yields; return the whole text"),
        ("class Bot:\n  def __init__(self, x): ...", "Bot", r"making a Bot without arguments"),
        ("class Bot: ...", "Bot", r"Bot is a Bot, not a function"),
        ("import no_such_package", "reply", r"imports 'no_such_package', which is not installed"),
        ("1 / 0", "reply", r"failed: ZeroDivisionError: division by zero \(my_bot_\d+\.py:1 <mod"),
        ("def reply(turn:", "reply", r"failed: SyntaxError: .*my_bot_\d+\.py, line 1\)"),
        ("raise SystemExit(2)", "reply", r"failed: SystemExit: 2"),
        ("raise ModuleNotFoundError", "reply", r"failed: ModuleNotFoundError \(my_bot_"),
        (
            "class Odd(Exception):\n  def __str__(self): 1 / 0\nraise Odd",
            "reply",
            r"importing my_bot_\d+ failed: Odd \(my_bot_\d+\.py:3 <module>\); mend it",
        ),
        (
            LAZY.format(error="RuntimeError('two\\nlines')"),
            "reply",
            r"loading reply failed: RuntimeError: two lines \(my_bot_\d+\.py:1 __getattr__\); mend",
        ),
        (LAZY.format(error="SystemExit(3)"), "reply", r"loading reply failed: SystemExit: 3"),
        (LAZY.format(error="AttributeError(name)"), "reply", r"has no function 'reply'; it has no"),
        (
            PROPERTY.format(body="1 / 0"),
            "bot.reply",
            r"loading bot\.reply failed: ZeroDivisionError: .* \(my_bot_\d+\.py:3 Bot\.reply\)",
        ),
        (
            PROPERTY.format(body="return self.model"),
            "bot.reply",
            r"has no attribute 'model' \(my_b",
        ),
        (PROPERTY.format(body="1 / 0"), "bot.replay", r"has no function 'replay'; it has none"),
        (
            "class Odd:\n  def __repr__(self): 1 / 0\ndef reply(a, b, c=Odd()): ...",
            "reply",
            r"loading reply failed: ZeroDivisionError",
        ),
    ],
)
def test_what_can_not_be_an_agent_is_refused_with_the_reason(
    module: Module, source: str, path: str, complaint: str
) -> None:
    name = module(source)
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        loaded(f"{name}:{path}")
    assert str(caught.value).startswith(f"AGENT={name}:{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("my_bot", r"write package\.module:function, for example AGENT=my_bot:reply"),
        ("my_bot:", r"write package\.module:function"),
        (":reply", r"write package\.module:function"),
        ("src/my_bot.py:reply", r"not its file, for example my_bot:reply"),
        (".my_bot:reply", r"'\.my_bot' is not a module name"),
        ("my-bot:reply", r"'my-bot' is not a module name"),
        ("no_such_bot:reply", r"no module 'no_such_bot' in the current folder \(/.*\), on PYTHON"),
        ("json.no_such:reply", r"there is no module 'json\.no_such'"),
        ("time:reply", r"time has no function 'reply'; it has asctime"),
        ("bot:reply", r"that name is Answerback's own: rename your module"),
        ("json:dump", r"must take one argument"),
    ],
)
def test_a_setting_that_names_no_function_says_how_to_write_it(
    module: Module, spec: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        loaded(spec)


def test_an_interrupt_while_an_agent_is_loaded_is_the_operators(module: Module) -> None:
    with pytest.raises(KeyboardInterrupt):
        loaded(f"{module('raise KeyboardInterrupt')}:reply")
    with pytest.raises(KeyboardInterrupt):
        loaded(f"{module(LAZY.format(error='KeyboardInterrupt'))}:reply")


def test_a_folder_of_the_operators_never_hides_a_package_of_ours(
    module: Module, tmp_path: Path
) -> None:
    (tmp_path / "storage.py").write_text("raise AssertionError('not this one')")
    module_name = module("import storage\ndef reply(turn): return storage.__file__")
    loaded(f"{module_name}:reply")
    assert str(tmp_path) not in str(sys.modules["storage"].__file__)
