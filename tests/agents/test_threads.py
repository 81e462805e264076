"""A plain function may block: nobody else notices, and it can be abandoned."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.threads import Threads, wait
from tests.limits import PATIENCE

PROJECT = Path(__file__).parents[2]
NAME = contextvars.ContextVar("NAME", default="")


def raises(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


async def test_a_blocked_function_leaves_the_loop_free() -> None:
    release = threading.Event()
    blocked = asyncio.ensure_future(Threads(2).run(lambda: release.wait(PATIENCE)))
    ran_meanwhile = await asyncio.wait_for(Threads(1).run(lambda: "other"), PATIENCE)
    assert not blocked.done()
    release.set()
    assert (ran_meanwhile, await blocked) == ("other", True)


async def test_no_more_run_at_once_than_allowed() -> None:
    threads = Threads(2)
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=PATIENCE)

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()
        with lock:
            running -= 1

    await asyncio.gather(*(threads.run(call) for _ in range(6)))
    assert most == 2


async def test_the_function_sees_the_callers_context() -> None:
    NAME.set("run 11")
    assert await Threads(1).run(NAME.get) == "run 11"


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (ValueError("no"), ValueError),
        (StopIteration(), RuntimeError),
        (SystemExit(3), RuntimeError),
        (KeyboardInterrupt(), RuntimeError),
        (asyncio.CancelledError(), RuntimeError),
    ],
)
async def test_what_it_raises_is_a_failure_and_never_ends_the_process(
    raised: BaseException, seen: type[Exception]
) -> None:
    threads = Threads(1)
    with pytest.raises(seen):
        await threads.run(raises(raised))
    assert await threads.run(lambda: "and goes on") == "and goes on"


async def test_a_cancelled_call_is_abandoned_and_keeps_its_place_until_it_ends() -> None:
    threads, started, release = Threads(1), threading.Event(), threading.Event()

    def call() -> None:
        started.set()
        release.wait(PATIENCE)

    abandoned = asyncio.ensure_future(threads.run(call))
    await Threads(1).run(lambda: started.wait(PATIENCE))
    abandoned.cancel()
    with pytest.raises(asyncio.CancelledError):
        await abandoned
    following = asyncio.ensure_future(threads.run(release.is_set))
    await Threads(1).run(lambda: None)
    assert not following.done()
    release.set()
    assert await following


async def test_wait_gives_what_await_would() -> None:
    loop = asyncio.get_running_loop()

    async def on_the_loop() -> bool:
        return asyncio.get_running_loop() is loop

    async def fails() -> None:
        raise ValueError("no")

    assert await Threads(1).run(lambda: wait(on_the_loop()))
    with pytest.raises(ValueError, match="no"):
        await Threads(1).run(lambda: wait(fails()))


async def test_an_abandoned_function_learns_it_at_its_wait() -> None:
    waiting, cancelled = asyncio.Event(), asyncio.Event()
    told: list[type[BaseException]] = []
    ended = threading.Event()

    async def endless() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def never_begun() -> None:
        told.append(AssertionError)

    def call() -> None:
        for step in (endless, never_begun):
            try:
                wait(step())
            except concurrent.futures.CancelledError as error:
                told.append(type(error))
        ended.set()

    turn = asyncio.ensure_future(Threads(1).run(call))
    await waiting.wait()
    turn.cancel()
    await asyncio.wait_for(cancelled.wait(), PATIENCE)
    await Threads(1).run(lambda: ended.wait(PATIENCE))
    assert told == [concurrent.futures.CancelledError] * 2


async def nothing() -> None: ...


async def test_wait_on_the_loop_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="write await instead"):
        wait(nothing())


async def test_wait_in_a_thread_of_the_functions_own_says_what_to_do() -> None:
    def call() -> None:
        inherited = contextvars.copy_context()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(inherited.run, lambda: wait(nothing())).result()

    with pytest.raises(RuntimeError, match="only in the thread of a plain function"):
        await Threads(1).run(call)


def test_a_function_that_blocks_for_ever_does_not_hold_up_the_exit() -> None:
    program = """
import asyncio, threading
from bot.threads import Threads
async def main():
    stuck, started = threading.Event(), threading.Event()
    def call():
        started.set()
        stuck.wait()
    task = asyncio.ensure_future(Threads(2).run(call))
    await Threads(1).run(started.wait)
    task.cancel()
asyncio.run(main())
print("left")
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, b"left\n"), run.stderr
