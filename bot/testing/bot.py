"""A bot in a test: its processes one after the other, their deaths, and the time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bot.agents.function import FunctionAgent, load
from bot.clock import SystemClock
from bot.domain.errors import DatabaseUnavailable, GiveUp, Retry, StaleLease
from bot.domain.message import Inbound
from bot.domain.plugin import Endpoint
from bot.domain.reply import Reply
from bot.domain.run import RunState
from bot.domain.turn import Agent, Turn
from bot.intake.arrival import Arrival
from bot.leases.checkpoints import Checkpoint
from bot.runs.reminders import fire_due
from bot.runs.steps import current_step
from bot.testing.channel import FakeChannel, Fault
from bot.testing.clock import ClockInHand
from bot.testing.deaths import MortalDatabase
from bot.testing.life import Life
from bot.testing.people import Person
from bot.threads import Threads
from bot.wiring import Parts
from bot.wiring.agents import words_of
from bot.wiring.channels import given_settings
from storage.engine.database import Database, DatabaseSettings
from storage.notify import READY
from storage.schema.migrate import upgrade
from storage.views.health.rest import LiveRun, Unfinished, unfinished

if TYPE_CHECKING:
    from bot.testing.model import ScriptedModel

STEP_MOMENTS = (Checkpoint.STEP_BEGUN, Checkpoint.STEP_CALLED, Checkpoint.STEP_STORED)
"""The checkpoints of a step: an agent that makes none never comes there."""
MOMENTS = (
    Checkpoint.MESSAGE_COMMITTED,
    Checkpoint.CLAIMED,
    *STEP_MOMENTS,
    Checkpoint.AGENT_RETURNED,
    Checkpoint.REPLY_STORED,
    Checkpoint.BEFORE_SEND,
    Checkpoint.AFTER_SEND,
    Checkpoint.SETTLED,
)
"""The checkpoints that an answer with a step passes, in order: a test for all of them."""
_FUNCTION = re.compile(r"[\w.]+:[\w.]+")
_OURS = Path(__file__).parents[1]
_LOOK_EVERY = 0.01
_FAR = 1e11
"""Seconds of the epoch; what is due after it waits for an operator."""
_A_LITTLE = 0.01
"""Seconds that a jump goes past the moment that it is for."""


class AgentError(AssertionError):
    """The agent raised what it did not mean to; the cause is its own error, with the traceback."""


@dataclass
class _Trap:
    """A death that waits for its moment. `step` is a name or a pattern; empty for any."""

    checkpoint: Checkpoint
    step: str
    sprung: asyncio.Event = field(default_factory=asyncio.Event)

    def __str__(self) -> str:
        of_step = f" of step {self.step!r}" if self.step else ""
        return f"{self.checkpoint.name}{of_step}"


def _stepless(checkpoint: Checkpoint) -> str:
    """The advice for an agent that takes no step and waits for the moment of one."""
    return ", so leave out STEP_MOMENTS" if checkpoint in STEP_MOMENTS else ""


class Bot:
    """An agent in the whole of Answerback, with people who write to it.

    `agent` is a function or another callable, or what AGENT can name: "llm" (with a scripted
    `model`, if you like), "https://...", "module:function". The database is a file in
    `directory`, or in a temporary one; what an earlier bot left there goes on. `now` is when the
    test begins. `settings` are those of `.env`, by their small names; the environment and `.env`
    are not read, but for the key of a real model. An error of the agent fails the test, unless
    `errors_are_fine`. `patience` is for how many real seconds anything is waited for.
    """

    def __init__(
        self,
        agent: Callable[[Turn], object] | str,
        *,
        model: ScriptedModel | None = None,
        directory: Path | None = None,
        now: datetime | None = None,
        errors_are_fine: bool = False,
        patience: float = 60.0,
        **settings: Any,
    ) -> None:
        self.errors: list[Exception] = []
        """The errors that the agent did not mean to raise, oldest first."""
        self.channel = FakeChannel()
        self.clock = ClockInHand(_offset(now))
        self._agent = agent
        self._model = model
        self._directory = directory
        self._errors_are_fine = errors_are_fine
        self._patience = patience
        self._values = {**_USUAL, **settings}
        if isinstance(agent, str):
            self._values["agent"] = agent
        self._calls: Counter[str] = Counter()
        self._people: dict[str, Person] = {}
        self._undelivered: deque[Inbound] = deque()
        self._life: Life | None = None
        self._begun = asyncio.Event()
        self._trap: _Trap | None = None
        self._shown = 0
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            place = self._directory
            if place is None:
                name = stack.enter_context(TemporaryDirectory(prefix="answerback-test-"))
                place = Path(name)
            file = place / "answerback.db"
            if not file.exists():
                file.write_bytes(await asyncio.to_thread(_migrated))
            self._settings = given_settings(**{"database_url": f"sqlite:///{file}", **self._values})
            beside = DatabaseSettings(self._settings.database_url, pool=1)
            self._beside = Database(beside, self.clock)
            stack.callback(self._beside.close)
            stack.push_async_callback(self.killed)
            await self._begin()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()
        if error is None:
            self._show_errors()

    def person(self, name: str = "Ada", *, language: str = "en") -> Person:
        """The person of this name, in a chat of their own with the bot."""
        if name not in self._people:
            self._people[name] = Person(name, name, language, self)
        return self._people[name]

    @property
    def alive(self) -> bool:
        """Tell whether a process runs."""
        return self._life is not None and not self._life.dead

    async def killed(self) -> None:
        """End the process at this instant, as `kill -9` does."""
        if self._life is not None:
            self._life.fall()
            await self._life.over()

    @asynccontextmanager
    async def killed_at(self, checkpoint: Checkpoint, step: str = "") -> AsyncIterator[None]:
        """Have the process die at this checkpoint (of a step of this name, which may be a pattern
        with `*`), and wait for it at the end of the block. Raises AssertionError when the bot has
        nothing left to do and never came there."""
        if checkpoint is Checkpoint.RELEASED:
            raise ValueError(
                "a process passes RELEASED while it starts, and can't die there in a test"
            )
        trap = self._trap = _Trap(checkpoint, step)
        try:
            yield
            await self.until(
                trap.sprung.is_set, f"the moment {trap}", stepless=_stepless(checkpoint)
            )
            assert self._life is not None
            await self._life.over()
        finally:
            self._trap = None

    def killed_before_step(self, step: str) -> AbstractAsyncContextManager[None]:
        """Die when this step is recorded as begun and its call is not made yet."""
        return self.killed_at(Checkpoint.STEP_BEGUN, step)

    def killed_in_step(self, step: str) -> AbstractAsyncContextManager[None]:
        """Die when this step's call has returned and its result is not stored: the call was made,
        and nobody will know."""
        return self.killed_at(Checkpoint.STEP_CALLED, step)

    def killed_after_step(self, step: str) -> AbstractAsyncContextManager[None]:
        """Die right after this step's result is stored."""
        return self.killed_at(Checkpoint.STEP_STORED, step)

    async def restarted(self) -> None:
        """Start the next process. One that runs hands over first, as at a deploy; if it dies in
        that, none is started."""
        if self._life is not None and not self._life.dead:
            handed_over = await self._guarded(self._life.hand_over())
            await self._life.over()
            if not handed_over:
                return
        await self._begin()

    async def later(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Set every clock forward; reminders that are due by then are due."""
        passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        await self._pass(passed.total_seconds())

    def next_send(self, *faults: Fault) -> None:
        """Have the next sends fail, each in its way."""
        self.channel.faults.extend(faults)

    def calls(self, step: str) -> int:
        """Times that the call of this step was made, in all lives; the name may be a pattern."""
        return sum(n for key, n in self._calls.items() if _fits(key, step))

    @property
    def steps(self) -> Sequence[str]:
        """The names of the steps whose calls were made, in order of the first."""
        return list(self._calls)

    def fresh(self) -> str:
        """A name that no other message has, also of an earlier bot in the same directory."""
        return self.clock.token()

    async def deliver(self, message: Inbound) -> None:
        """Hand a message to the process; without one the platform keeps it for the next."""
        if not await self._taken(message):
            self._undelivered.append(message)

    async def settled(self) -> None:
        """Wait until nothing is left to do: time in which everybody waits is left out."""
        __tracebackhide__ = True  # which has pytest show the author's lines, and none of these
        await self._wait(self._at_rest, "the bot to be at rest")
        if self._life is not None and not self._life.dead:
            await self._life.process.tasks.finish(self._patience)  # such as words over a button

    async def until(self, holds: Callable[[], bool], wanted: str, *, stepless: str = "") -> None:
        """Wait until it holds. Raises AssertionError when nothing is left to do before; it says
        `stepless` where no step was taken."""
        __tracebackhide__ = True

        def held(left: Unfinished) -> bool:
            __tracebackhide__ = True
            if not holds() and self._at_rest(left):
                steps = ", ".join(self.steps) or f"none{stepless}"
                raise AssertionError(f"there was never {wanted}; steps so far: {steps}")
            return holds()

        await self._wait(held, wanted)

    def _at_rest(self, left: Unfinished) -> bool:
        """The rows say so, and no turn has still to notice."""
        busy = self._life is not None and self._life.busy
        return not (left.runs or left.notices or self._undelivered or busy)

    async def _wait(self, over: Callable[[Unfinished], bool], wanted: str) -> None:
        __tracebackhide__ = True
        left = Unfinished((), ())
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    self._show_errors()
                    left = await self._beside.read(unfinished)
                    if over(left):
                        self._show_errors()
                        return
                    if not self.alive:
                        raise AssertionError("no process runs: await bot.restarted()")
                    await self._skip(left)
                    await SystemClock.sleep(self.clock, _LOOK_EVERY)
        except TimeoutError:
            waiting = "; ".join(map(_told, left.runs)) or "no run"
            said = f"waited {self._patience:g} s for {wanted}; under way: {waiting}"
            raise AssertionError(said) from None

    async def _skip(self, left: Unfinished) -> None:
        """Leave out the time for which everybody waits."""
        if any(run.state is RunState.RUNNING for run in left.runs):
            return
        due = [run.not_before for run in left.runs if run.state is RunState.READY]
        ahead = min([*due, *left.notices], default=0.0) - self.clock.wall()
        if 0 < ahead < _FAR:
            await self._pass(ahead + _A_LITTLE)

    async def _pass(self, seconds: float) -> None:
        self.clock.advance(seconds)
        if self._life is not None and not self._life.dead:
            await self._guarded(fire_due(self._life.process.rt))
            # Workers wait by the loop's time: this has them look at the new one.
            self._life.process.rt.wakeups.tell(READY)

    async def _begin(self) -> None:
        parts = Parts(
            agent=self._made(),
            clock=self.clock,
            reached=self._reached,
            open_database=MortalDatabase,
            endpoints=(Endpoint(self.channel),),
            around=self._watched,
        )
        self._begun.clear()
        self._life = await Life.begin(self._settings, parts)
        self._begun.set()
        await self._pass(0.0)
        for _ in range(len(self._undelivered)):
            await self.deliver(self._undelivered.popleft())

    def _made(self) -> Agent | None:
        """The agent of this life; None: the one that the settings name."""
        if self._model is not None:
            from bot.wiring.llm import llm_agent  # noqa: PLC0415 - its packages are an extra

            words = words_of(self._settings)
            return llm_agent(self._settings, words, self.clock, self._model)
        threads = Threads(self._settings.concurrency)
        if isinstance(self._agent, str):
            # A function's author is lent `.env` in production; a test is to be the same anywhere.
            return load(self._agent, threads) if _FUNCTION.fullmatch(self._agent) else None
        name = getattr(self._agent, "__name__", type(self._agent).__name__)
        return FunctionAgent(name, self._agent, threads)

    async def _reached(self, checkpoint: Checkpoint) -> None:
        if checkpoint is not Checkpoint.RELEASED:  # which is passed before it works
            await self._begun.wait()
        trap, life, step = self._trap, self._life, current_step()
        if trap is not None and trap.checkpoint is checkpoint and _fits(step, trap.step):
            self._trap = None
            assert life is not None
            life.fall()
            trap.sprung.set()
            raise asyncio.CancelledError("the process died here")
        if checkpoint is Checkpoint.STEP_BEGUN:
            self._calls[step] += 1

    def _watched(self, agent: Agent) -> Agent:
        async def ask(turn: Turn) -> Reply | str | None:
            try:
                return await agent(turn)
            except (Retry, GiveUp, StaleLease):
                raise
            except Exception as error:
                if self.alive:
                    self.errors.append(error)
                raise

        return ask

    def _show_errors(self) -> None:
        __tracebackhide__ = True
        if self._errors_are_fine or len(self.errors) == self._shown:
            return
        error = self.errors[self._shown]
        self._shown = len(self.errors)
        said = f"the agent raised {type(error).__name__}: {error}"
        raise AgentError(said) from error.with_traceback(_own(error.__traceback__))

    async def _taken(self, message: Inbound) -> bool:
        """Hand it over, again while the database is too slow. False: no process took it."""
        ends = SystemClock.monotonic(self.clock) + self._patience
        while self.alive:
            assert self._life is not None
            process = self._life.process
            [account] = process.endpoints
            arrival = Arrival(account, message.text, "testing")
            try:
                return await self._guarded(process.intake.take(arrival, (message,)))
            except DatabaseUnavailable:
                if SystemClock.monotonic(self.clock) > ends:
                    raise
        return False

    async def _guarded(self, work: Coroutine[Any, Any, object]) -> bool:
        """Let the process do this. False: it died in it."""
        task = asyncio.create_task(work, name="the platform")
        try:
            await asyncio.wait((task,))
        finally:
            task.cancel()
        if task.cancelled():
            return False
        task.result()
        return True


_USUAL = {
    "agent": "echo",
    "database_pool": 4,
    "holder_name": "testing",
    # Nobody may lose a lease because a test sets the clock forward; a restart frees its name.
    "lease_seconds": 1e9,
    "heartbeat_seconds": 60.0,
    "shutdown_grace": 5.0,
}


def _offset(now: datetime | None) -> float:
    return 0.0 if now is None else now.timestamp() - SystemClock().wall()


@cache
def _migrated() -> bytes:
    """An empty database at our schema, made once: a start then finds nothing to do."""
    with TemporaryDirectory(prefix="answerback-test-") as name:
        file = Path(name) / "empty.db"
        upgrade(f"sqlite:///{file}")
        return file.read_bytes()


def _own(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first line on that is the author's; whole when there is none."""
    found = trace
    while found is not None and Path(found.tb_frame.f_code.co_filename).is_relative_to(_OURS):
        found = found.tb_next
    return found or trace


def _fits(key: str, step: str) -> bool:
    return not step or key == step or fnmatchcase(key, step)


def _told(run: LiveRun) -> str:
    """One run for the author of a test."""
    set_aside = f", set aside: {run.set_aside}" if run.set_aside else ""
    said = f"run {run.id} of chat {run.chat} is {run.state}"
    return f"{said} (attempt {run.attempts}, failures {run.failures}{set_aside})"
