"""Trying an agent in this process with every kind of turn: `answerback agent check`."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.agents.http.conformance import SLOW_SECONDS, Probe, Trial, described, kinds
from bot.domain.errors import GiveUp, ReminderRefused, Retry, StepResultInvalid
from bot.domain.findings import Level
from bot.domain.ports import Clock
from bot.domain.reminders import Reminder, Reminders
from bot.domain.reply import Reply
from bot.domain.steps import Forgotten, Step, TakesSteps
from bot.domain.turn import Agent
from bot.observability.faults import Fault
from bot.observability.quoting import Spoken
from bot.threads import Threads

_builders = logging.getLogger("answerback.builders")


async def rehearse(agent: Agent, clock: Clock, seconds: float) -> list[Trial]:
    """Try an agent in this process; each turn may take `seconds`. Its steps are really done."""
    plain = InProcess.fresh(clock, seconds)
    trials = [await _ask(agent, clock, "a plain text", plain)]
    if trials[0].level is Level.PROBLEM:
        return trials
    for name, probe in kinds(clock, seconds):
        trials.append(await _ask(agent, clock, name, InProcess.of(probe)))
    again = replace(plain, attempt=2, interrupted=True, handoffs=[])
    trials.append(await _ask(agent, clock, "the same turn again, after a cut", again))
    slowest = max(trial.seconds or 0.0 for trial in trials)
    level = Level.OK if slowest < SLOW_SECONDS else Level.WARNING
    return [*trials, Trial("time", level, f"the slowest answer took {slowest:.1f} s", slowest)]


async def _ask(agent: Agent, clock: Clock, name: str, probe: InProcess) -> Trial:
    began = clock.monotonic()
    level = Level.PROBLEM
    limit = asyncio.timeout(probe.deadline - clock.wall())
    try:
        async with limit:
            answer = await agent(probe)
        reply = Reply(answer) if isinstance(answer, str) else answer
        level, detail = Level.OK, described(reply, probe)
        if said := probe.forgotten.told():
            level, detail = Level.PROBLEM, said
    except Retry as error:
        level, detail = Level.WARNING, f"asked to be tried again ({error.after or 'no time'} s)"
    except GiveUp:
        level, detail = Level.WARNING, "gave up"
    except Exception as error:  # noqa: BLE001 - the agent's edge: its fault is what is looked for
        fault = Fault(error, Spoken())
        _builders.info("%s: the agent failed", name, extra={"fault": fault})
        detail = "no answer within RUN_DEADLINE" if limit.expired() else str(fault)
    return Trial(name, level, detail, clock.monotonic() - began)


@dataclass(frozen=True, slots=True)
class NoReminders:
    """`Reminders` that keeps none. `at` is the present, in epoch seconds."""

    at: float

    async def add(self, when: str, text: str, *, key: str, zone: str = "") -> Reminder:
        raise ReminderRefused("`agent check` keeps no reminders")

    async def waiting(self) -> Sequence[Reminder]:
        return ()

    async def cancel(self, number: int) -> bool:
        return False

    def now(self, zone: str = "") -> str:
        try:
            place = ZoneInfo(zone or "UTC")
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ReminderRefused(f"there is no time zone {zone}") from error
        return f"{datetime.fromtimestamp(self.at, place):%A %Y-%m-%d %H:%M} ({place.key})"


@dataclass(frozen=True, slots=True)
class InProcess(TakesSteps, Probe):
    """A probe whose steps are run in this process, each only once."""

    results: dict[str, str] = field(default_factory=dict)
    forgotten: Forgotten = field(default_factory=Forgotten)

    @staticmethod
    def of(probe: Probe) -> InProcess:
        """The same turn for an agent in this process."""
        return InProcess(**{f.name: getattr(probe, f.name) for f in fields(Probe)})

    @staticmethod
    def fresh(clock: Clock, seconds: float) -> InProcess:
        return InProcess.of(Probe.fresh(clock, seconds))

    @property
    def reminders(self) -> Reminders:
        return NoReminders(self.messages[0].sent_at)

    async def _take(self, step: Step) -> Any:
        if step.key not in self.results:
            on_loop = inspect.iscoroutinefunction(step.call)
            value = step.call() if on_loop else await Threads(1).run(step.call)
            value = await value if inspect.isawaitable(value) else value
            try:
                self.results[step.key] = json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                kind = type(value).__name__
                raise StepResultInvalid(f"step {step.key!r} returned {kind}: {error}") from error
        return json.loads(self.results[step.key])
