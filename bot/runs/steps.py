"""Steps of a turn: their results outlive a crash, and are returned instead of done again."""

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
"""Blocking steps of one turn that run at the same time; the others wait."""


class Steps:
    """The steps of one attempt on one run."""

    def __init__(self, ctx: WorkerContext, claim: Claim, handoff: Callable[[], str | None]) -> None:
        self._ctx = ctx
        self._claim = claim
        self._handoff = handoff
        self._threads = Threads(_THREADS)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By the keys of the steps, of which each is at work once at a time."""
        self._begun: set[str] = set()
        """The keys of the steps that this attempt began."""

    async def take(self, step: Step) -> Any:
        """The stored result, or that of the call made now. One key is at work once at a time:
        who asks meanwhile gets the same result. Raises StepInterrupted, StepResultInvalid."""
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
            # Its author says that it did not happen and may be tried again.
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
        """Call on the loop what is written for it; anything else may block, so in a thread."""
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
    """A step that asks for itself would wait for itself until the deadline."""
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
            # Lone surrogates, which no database takes; escaped they pass.
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
    """The step as it was left; None when it begins now. `before` says that this attempt began
    it already: if not, a start under its fence is this very one, whose commit was not heard
    of. Raises StaleLease."""
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
    """Store the result, and why the agent asked for a person: a step that is not done again asks
    for none again."""
    runs.hold(tx, claim)
    if steps.finish(tx, claim.run, key, done):
        runs.progress(tx, claim)
        if handoff is not None:
            runs.hand_over(tx, claim, handoff)
