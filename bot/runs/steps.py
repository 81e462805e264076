"""Steps of a turn: a result is stored, outlives a crash, and is returned instead of being computed
again."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from bot.delivery.context import WorkerContext
from bot.domain.errors import Retry, StepInterrupted, StepResultInvalid
from bot.domain.message import clean
from bot.domain.run import Claim
from bot.domain.steps import Call, Step
from bot.leases.checkpoints import Checkpoint
from bot.threads import Threads
from storage import runs, steps
from storage.statements.tx import Tx
from storage.steps import Done, StoredStep

MAX_RESULT = 256 * 1024
"""Bytes of JSON that a step may return."""
_LONGEST_KEY = 200
_THREADS = 16
"""Blocking steps of one turn that may run at the same time; the others wait."""


class Steps:
    """The steps of one attempt on one run."""

    def __init__(self, ctx: WorkerContext, claim: Claim, handoff: Callable[[], str | None]) -> None:
        self._ctx = ctx
        self._claim = claim
        self._handoff = handoff
        self._threads = Threads(_THREADS)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One lock for each key, so that a step is not done twice at the same time."""
        self._begun: set[str] = set()
        """The keys of the steps that this attempt began."""

    async def take(self, step: Step) -> Any:
        """The stored result of the step, or that of calling it now. Whoever asks for the same key
        meanwhile waits for the same result. Raises StepInterrupted, StepResultInvalid."""
        if not step.key or len(step.key) > _LONGEST_KEY or clean(step.key) != step.key:
            raise StepResultInvalid(f"a step's key has 1 to {_LONGEST_KEY} characters of text")
        with _inside(step.key):
            async with self._locks[step.key]:
                return await self._once(step)

    async def _once(self, step: Step) -> Any:
        ctx, key = self._ctx, step.key
        found = await ctx.persist(_begin, self._claim, step, before=key in self._begun)
        self._begun.add(key)
        if found is not None and found.result is not None:
            return json.loads(found.result)
        if found is not None and not (found.safe and step.safe):
            raise StepInterrupted(key)
        await ctx.rt.reached(Checkpoint.STEP_BEGUN)
        try:
            with ctx.rt.tracer.span("step", paid=step.cost is not None):
                value = await self._call(step.call)
        except Retry:
            # Raising Retry, its author says that nothing happened, and it may be tried again.
            await ctx.persist(_move, self._claim, key, steps.take_back)
            raise
        except Exception:
            if step.cost is not None:
                await ctx.persist(_move, self._claim, key, steps.failed)
            raise
        await ctx.rt.reached(Checkpoint.STEP_CALLED)
        result = _as_json(key, value)
        done = Done(result)
        if step.cost is not None:
            cost = step.cost(json.loads(result))
            done = Done(result, cost.input_tokens, cost.output_tokens)
        await ctx.persist(_finish, self._claim, key, done, self._handoff())
        for direction, tokens in (("input", done.input_tokens), ("output", done.output_tokens)):
            ctx.rt.observer.agent_tokens.labels(direction).inc(tokens or 0)
        await ctx.rt.reached(Checkpoint.STEP_STORED)
        return json.loads(done.result)

    async def _call(self, call: Call) -> Any:
        """Call a coroutine function on the loop; anything else may block, and gets a thread."""
        is_async = inspect.iscoroutinefunction
        on_loop = is_async(call) or is_async(type(call).__call__)
        try:
            value = call() if on_loop else await self._threads.run(call)
            return await value if inspect.isawaitable(value) else value
        except SystemExit as error:
            # In a task of the agent's own it would end the process.
            raise RuntimeError("the step ended with SystemExit") from error


_OPEN: ContextVar[tuple[str, ...]] = ContextVar("open_steps", default=())


def current_step() -> str:
    """The key of the innermost step that is under way here; empty outside of all."""
    return next(reversed(_OPEN.get()), "")


@contextlib.contextmanager
def _inside(key: str) -> Iterator[None]:
    """Refuse a step that asks for its own result: it would wait for itself until the deadline."""
    outer = _OPEN.get()
    if key in outer:
        raise StepResultInvalid(f"step {key!r} asks for its own result")
    token = _OPEN.set((*outer, key))
    try:
        yield
    finally:
        _OPEN.reset(token)


def _as_json(key: str, value: object) -> str:
    try:
        result = json.dumps(value, ensure_ascii=False, allow_nan=False)
        try:
            result.encode()
        except UnicodeEncodeError:
            # Lone surrogates, which no database accepts; escaped, they pass.
            result = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise StepResultInvalid(
            f"step {key!r} returned {type(value).__name__}, which is not JSON: {error}"
        ) from error
    size = len(result.encode())
    if size > MAX_RESULT:
        raise StepResultInvalid(
            f"step {key!r} returned {size} bytes of JSON; the bound is {MAX_RESULT}: "
            "return a reference to it instead"
        )
    return result


def _begin(tx: Tx, claim: Claim, step: Step, *, before: bool) -> StoredStep | None:
    """The step as an earlier call left it; None if it begins now. Raises StaleLease.

    `before`: this attempt has begun it already. If it has not, a start under its own fence is that
    of this very call, whose commit was not heard of.
    """
    runs.hold(tx, claim)
    found = steps.find(tx, claim.run, step.key)
    if found is not None and found.result is None and found.fence == claim.fence and not before:
        return None
    if found is None:
        paid = step.cost is not None
        steps.begin(tx, claim.run, step.key, claim.fence, safe=step.safe, paid=paid)
    elif found.result is None and found.safe and step.safe:
        steps.begin_again(tx, claim.run, step.key, claim.fence)
    return found


def _move(tx: Tx, claim: Claim, key: str, move: Callable[[Tx, int, str], object]) -> None:
    runs.hold(tx, claim)
    move(tx, claim.run, key)


def _finish(tx: Tx, claim: Claim, key: str, done: Done, handoff: str | None) -> None:
    """Store the result, and with it why the agent asked for a person: a step that is not done again
    would not ask again."""
    runs.hold(tx, claim)
    if steps.finish(tx, claim.run, key, done):
        runs.progress(tx, claim)
        if handoff is not None:
            runs.hand_over(tx, claim, handoff)
