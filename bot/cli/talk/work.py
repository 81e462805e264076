"""Showing the work on the terminal's runs while it goes on, step by step, from their rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.cli.talk.terminal import PROMPT, Terminal
from bot.domain.errors import DatabaseUnavailable
from bot.operations.reports.phrases import span
from bot.wiring import Process, asked, at_work
from storage.notify import READY
from storage.views.progress import Progress, TakenStep

_LOOK_EVERY = 0.5
_AT_ONCE = 1.0
"""Seconds of work below which it gets no line."""
_SHORT = 40
"""The most characters of a step's result that is shown; a longer one is left out."""
_PATIENCE = 1.0
"""Seconds that an answer waits until its question has been looked up."""


@dataclass(frozen=True, slots=True)
class WorkLine:
    """A line about one step, or with an empty `name` about the whole run. `over`: it changes no
    more."""

    name: str
    text: str
    over: bool


def work_lines(seen: Progress) -> Sequence[WorkLine]:
    """The lines that show the progress of a run."""
    if seen.steps:
        return [_step_line(seen, number, step) for number, step in enumerate(seen.steps, 1)]
    took = seen.now - (seen.now if seen.claimed_at is None else seen.claimed_at)
    if took < _AT_ONCE:
        return []
    doing = "worked on it for" if seen.replied else "at work,"
    return [WorkLine("", f"  {doing} {span(took)}", seen.replied)]


def _step_line(seen: Progress, number: int, step: TakenStep) -> WorkLine:
    name = f"  step {number}, {step.key}:"
    claimed_at = seen.claimed_at or 0.0
    if step.done_at is None and step.begun == 1 and step.started_at < claimed_at:
        return WorkLine(step.key, f"{name} cut off, and not done again so far", over=False)
    if step.done_at is None:
        doing = "at work again" if step.begun > 1 else "at work"
        since = max(step.started_at, claimed_at)
        return WorkLine(step.key, f"{name} {doing}, {span(seen.now - since)}", over=False)
    result = json.loads(step.result or "null")
    shown = f" ({result})" if isinstance(result, str) and 0 < len(result) <= _SHORT else ""
    if step.done_at < claimed_at:
        return WorkLine(step.key, f"{name} done before, not done again{shown}", over=True)
    took = span(step.done_at - max(step.started_at, claimed_at))
    return WorkLine(step.key, f"{name} done in {took}{shown}", over=True)


class WorkFollower:
    """Shows at the terminal the work on its lines, and each answer below its question.

    `conversation` is the prefix of the numbers of lines that were typed here. Any other line was
    typed before this start, or in another terminal: it is shown again before its answer.
    """

    def __init__(self, process: Process, terminal: Terminal, conversation: str) -> None:
        self._process = process
        self._terminal = terminal
        self._conversation = conversation
        self._questioned: set[int] = set()
        self._over: set[tuple[int, int, str]] = set()
        self._showing = asyncio.Lock()

    async def follow(self) -> None:
        """Show new progress whenever there is any, until cancelled."""
        while True:
            with suppress(DatabaseUnavailable, OSError):
                async with self._showing:
                    if (seen := await at_work(self._process)) is not None:
                        self._show(seen)
            await self._process.rt.wakeups.wait(READY, _LOOK_EVERY)

    async def answer(self, text: str, number: str) -> None:
        """Show the answer to the line with this number. Raises OSError."""
        async with self._showing:
            with suppress(DatabaseUnavailable, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    if number and (seen := await asked(self._process, number)) is not None:
                        self._show(seen)
            self._terminal.answer(text)

    def _show(self, seen: Progress) -> None:
        self._question(seen)
        for line in work_lines(seen):
            name = (seen.run, seen.attempts, line.name)
            if name in self._over:
                continue
            if line.over:
                self._over.add(name)
                self._terminal.tell(line.text)
            else:
                self._terminal.show(f"{seen.run} {line.name}", line.text)

    def _question(self, seen: Progress) -> None:
        if seen.run in self._questioned:
            return
        self._questioned.add(seen.run)
        for message in seen.messages:
            if not message.provider_id.startswith(f"{self._conversation}-"):
                ago = span(seen.now - message.received_at)
                self._terminal.tell(f"{PROMPT}{message.text} (asked {ago} ago)")
