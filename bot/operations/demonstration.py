"""A demonstration with real processes: one is killed in the middle of a turn, the next one answers.

It happens in a folder of its own, without any credential, and ends what it started however it ends
itself: a child whose standard input is closed leaves.
"""

from __future__ import annotations

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bot.domain.ending import Ending, TurnStatus
from bot.domain.ports import Clock
from storage import accounts
from storage.engine.database import Database
from storage.statements.tx import Tx
from storage.views.progress import Progress, TakenStep, run_at_work, run_progress

QUESTION = "a pizza, please"
_API = "/web/v1"
_NAME = "demo-1"
_LOOK_EVERY = 0.05
_WAIT = 20
"""Seconds that one question for the answer may take."""
_LEAVES = 5.0
"""Seconds that a process may take to leave before it is killed."""
_LAST_LINES = 3
_PAGE = re.compile(r"(http://127\.0\.0\.1:\d+)/web/")


class DemonstrationFailed(Exception):
    """It could not be shown; nobody's promise was broken by that."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The parts of a demonstration. `program` starts Answerback with a terminal, in `folder` and
    with nothing but `environment`; `db` is what it uses there. It is killed in the middle of the
    step `killed_in`, which takes so many `seconds`; `paid` must not be done twice."""

    clock: Clock
    db: Callable[[], Database]
    folder: Path
    program: Sequence[str]
    environment: Mapping[str, str]
    paid: str
    killed_in: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Shown:
    """The facts in the end. `paid_before` is the receipt that the first process stored."""

    deliveries: int
    claims: int
    paid: int
    answers: int
    ending: Ending | None
    answer: str
    paid_before: str
    paid_after: str

    @property
    def held(self) -> bool:
        """True when a message that came once was answered once although a process died over it,
        and what costs money was done once."""
        once = (self.deliveries, self.paid, self.answers) == (1, 1, 1)
        same = self.paid_before == self.paid_after and self.paid_before in self.answer
        return once and same and self.claims > 1 and self.ending is Ending.ANSWERED


@dataclass(slots=True)
class _Child:
    """One process of ours: its address, and its last words."""

    process: Process
    url: str = ""
    said: list[str] = field(default_factory=list)

    async def listens(self) -> None:
        """Wait until it has told its address. Raises DemonstrationFailed when it ended."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.said = [*self.said[1 - _LAST_LINES :], line.decode(errors="replace").rstrip()]
            if found := _PAGE.search(self.said[-1]):
                self.url = found[1]
                return
        raise DemonstrationFailed(f"{await self._ended()}: {' '.join(self.said) or 'no word'}")

    async def lives(self) -> None:
        """Make sure that it runs. Raises DemonstrationFailed when it has ended."""
        if self.process.returncode is not None:
            raise DemonstrationFailed(f"{await self._ended()}, before it was killed")

    async def _ended(self) -> str:
        code = await self.process.wait()
        return f"process {self.process.pid} ended by itself with code {code}"

    async def kill(self) -> None:
        """Kill it as `kill -9` does. Raises DemonstrationFailed when it was gone already."""
        await self.lives()
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def leave(self) -> None:
        """Let it leave well, or else at once."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVES):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


@asynccontextmanager
async def _child(stage: Stage) -> AsyncIterator[_Child]:
    """A process of ours that listens, and is gone when the body ends."""
    process = await asyncio.create_subprocess_exec(
        *stage.program,
        stdin=PIPE,
        stdout=DEVNULL,
        stderr=PIPE,
        cwd=stage.folder,
        env=dict(stage.environment),
        start_new_session=True,  # A Ctrl-C is ours: what is to be cleaned up is cleaned up here.
    )
    child = _Child(process)
    try:
        await child.listens()
        yield child
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def demonstrate(stage: Stage, tell: Callable[[str], None]) -> Shown:
    """Kill one process in the middle of a turn and let the next one answer; `tell` hears what
    happens. Raises DemonstrationFailed."""
    async with httpx.AsyncClient(trust_env=False, timeout=2.0 * _WAIT) as http:
        try:
            return await _demonstrate(stage, tell, http)
        except httpx.HTTPError as error:
            raise DemonstrationFailed(
                f"a process does not answer: {type(error).__name__}"
            ) from error


async def _demonstrate(stage: Stage, tell: Callable[[str], None], http: httpx.AsyncClient) -> Shown:
    tell("a process starts, on an empty database")
    async with _child(stage) as first:
        db = stage.db()
        try:
            tell(f"it listens (process {first.process.pid}); a message is posted: {QUESTION!r}")
            token = (await _ask(http, "POST", f"{first.url}{_API}/session", {}))["token"]
            message = {"request_id": _NAME, "text": QUESTION}
            await _ask(http, "POST", f"{first.url}{_API}/messages", message, token)
            tell("202: from now on it is owed an answer")
            seen = await _until_killed_in(stage, db, first, tell)
            await first.kill()
            tell(f"kill -9 {first.process.pid}, in the middle of step {stage.killed_in}")
            before = _result(_step(seen, stage.paid))
            tell("the next process starts, on the same database")
            async with _child(stage) as second:
                tell(f"it listens (process {second.process.pid}), and finds the turn")
                answer = await _answer(http, second.url, token)
                tell(f"the answer is there:\n{answer}")
                await second.leave()
            return await _facts(db, seen.run, stage.paid, answer, before)
        finally:
            await asyncio.to_thread(db.close)


async def _ask(
    http: httpx.AsyncClient, method: str, url: str, body: object = None, token: str = ""
) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = await http.request(method, url, json=body, headers=headers)
    if not answer.is_success:
        raise DemonstrationFailed(f"{method} {url} is answered {answer.status_code}")
    return dict(answer.json())


async def _until_killed_in(
    stage: Stage, db: Database, child: _Child, tell: Callable[[str], None]
) -> Progress:
    """Wait for the middle of the step in which it is to be killed; the run as it is then."""
    told: set[str] = set()
    while True:
        seen = await db.read(_at_work)
        for step in seen.steps if seen is not None else ():
            if step.done_at is not None and step.key not in told:
                told.add(step.key)
                result = f": receipt {_result(step)}" if step.key == stage.paid else ""
                tell(f"step {step.key} is done{result}")
        if seen is not None and any(step.key == stage.killed_in for step in seen.steps):
            await stage.clock.sleep(stage.seconds / 2)
            return seen
        await child.lives()
        await stage.clock.sleep(_LOOK_EVERY)


def _at_work(tx: Tx) -> Progress | None:
    found = (run_at_work(tx, account.id) for account in accounts.listed(tx))
    return next((seen for seen in found if seen is not None), None)


def _step(seen: Progress, key: str) -> TakenStep:
    return next(step for step in seen.steps if step.key == key)


def _result(step: TakenStep) -> str:
    return str(json.loads(step.result or '""'))


async def _answer(http: httpx.AsyncClient, url: str, token: str) -> str:
    """Ask for the answer until it is there, as a page does that was reconnected."""
    place = f"{url}{_API}/turns/{_NAME}?wait={_WAIT}"
    while True:
        turn = await _ask(http, "GET", place, token=token)
        if turn["status"] == TurnStatus.COMPLETED:
            return turn["answer"]
        if turn["status"] != TurnStatus.PENDING:
            raise DemonstrationFailed(f"the turn is {turn['status']}")


async def _facts(db: Database, run: int, paid: str, answer: str, before: str) -> Shown:
    seen = await db.read(run_progress, run)
    assert seen is not None
    step = _step(seen, paid)
    return Shown(
        deliveries=sum(message.deliveries for message in seen.messages),
        claims=seen.attempts,
        paid=step.begun,
        answers=seen.answers,
        ending=seen.ending,
        answer=answer,
        paid_before=before,
        paid_after=_result(step),
    )
