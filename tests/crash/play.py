"""A short story with a death in it: two messages, an agent that keeps count, one crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import assert_never

from bot.domain.reply import Reply
from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint, nowhere
from tests.crash.stages import Stage
from tests.kit.conversation import MORTAL, PATIENT
from tests.kit.passing import moves, outlive, settle
from tests.kit.receipts import RECEIPTS
from tests.limits import PATIENCE
from tests.world import Running, World, dies_at

FIRST, SECOND = "first", "second"


class Plot(Enum):
    """The misfortunes besides the death."""

    ANSWER = auto()
    """Both messages are answered, with a step on the way."""
    STUMBLE = auto()
    """The agent fails once on the first message."""
    APOLOGY = auto()
    """The agent always fails on the first message."""
    NOTICE = auto()
    """The first message is a command."""
    TWICE = auto()
    """The process that notices the death dies as well."""


def plot_of(checkpoint: Checkpoint) -> Plot:
    """The plot in which a process comes by this checkpoint."""
    match checkpoint:
        case (
            Checkpoint.MESSAGE_COMMITTED
            | Checkpoint.CLAIMED
            | Checkpoint.STEP_BEGUN
            | Checkpoint.STEP_CALLED
            | Checkpoint.STEP_STORED
            | Checkpoint.AGENT_RETURNED
            | Checkpoint.REPLY_STORED
            | Checkpoint.BEFORE_SEND
            | Checkpoint.AFTER_SEND
            | Checkpoint.PART_RECORDED
            | Checkpoint.SETTLED
        ):
            return Plot.ANSWER
        case Checkpoint.GIVEN_BACK:
            return Plot.STUMBLE
        case Checkpoint.APOLOGY_STORED:
            return Plot.APOLOGY
        case Checkpoint.STANDALONE_BEFORE_SEND | Checkpoint.STANDALONE_AFTER_SEND:
            return Plot.NOTICE
        case Checkpoint.RELEASED:
            return Plot.TWICE
        case other:
            assert_never(other)


@dataclass
class Counting:
    """Answers with `parts` paragraphs of `limit` characters. It waits for `go` first."""

    parts: int
    limit: int
    fails: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    looked_up: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, turn: Turn) -> Reply:
        self.calls[turn.text] += 1
        await self.go.wait()
        found = await turn.step("look it up", self._look_up, safe_to_repeat=True)
        if turn.text == FIRST and self.calls[FIRST] <= self.fails:
            raise RuntimeError("the agent broke")
        return Reply("\n\n".join(self._paragraph(n, found, turn) for n in range(1, self.parts + 1)))

    async def _look_up(self) -> str:
        self.looked_up += 1
        return "found"

    def _paragraph(self, number: int, found: str, turn: Turn) -> str:
        head = f"answer {number} to {turn.text}, {found}"
        return head if self.parts == 1 else head.ljust(self.limit - 200, ".")


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A row of the outbox: the message that it answers (empty for none), what it is, its state
    (`arrived` for all that carry a receipt), how many receipts it has, its words."""

    of: str
    kind: str
    number: int
    state: str
    receipts: int
    text: str


@dataclass
class Played:
    """The evidence after the story: the rows as they ended, and what was seen."""

    runs: list[tuple[str, str]]
    parts: list[Line]
    shown: list[str]
    calls: Counter[str]
    looked_up: int
    reached: bool = False
    stored: bool = False
    calls_then: Counter[str] = field(default_factory=Counter)


async def play(
    world: World, stage: Stage, parts: int, plot: Plot, death: Checkpoint | None
) -> Played:
    """Let two messages come, die at `death`, begin anew, and wait until nothing moves."""
    fails = {Plot.STUMBLE: 1, Plot.APOLOGY: 99}.get(plot, 0)
    agent = Counting(parts, stage.limit, fails)
    died = asyncio.Event()
    victims: list[Running] = []
    stored = False

    def victim() -> Running:
        died.set()
        return victims[-1]

    reached = nowhere if death is None else dies_at(death, victim)
    twice = plot is Plot.TWICE and death is not None
    early = {"reached": nowhere, **MORTAL} if twice else {"reached": reached, **PATIENT}
    running = await stage.start(world, agent=agent, **early)
    victims.append(running)
    acknowledged = await _speak(stage, running, plot, agent, died)
    if twice:
        victims.append(await stage.start(world, agent=agent, reached=reached, **MORTAL))
        await running.die()
    elif plot is not Plot.NOTICE or death is None:
        agent.go.set()  # A notice's death is to cut off no step of the other message's agent.
    calls_then: Counter[str] = Counter()
    if death is not None:
        await _until_dead(world, died, plot, victims[-1])
        calls_then = Counter(agent.calls)
        stored = bool(await world.rows("SELECT 1 FROM outbox WHERE text LIKE '%to first%'"))
        await victims[-1].die()
        agent.go.set()
        running = await stage.start(world, agent=agent, **(MORTAL if twice else PATIENT))
        if twice:  # The second victim may have claimed what it had just taken from the first.
            await outlive(world, running)
        for text, known in acknowledged.items():
            if not known:
                assert await _say(stage, running, text, plot)
    await settle(world)
    played = await _played(world, stage, agent)
    played.reached, played.stored, played.calls_then = died.is_set(), stored, calls_then
    return played


async def _speak(
    stage: Stage, running: Running, plot: Plot, agent: Counting, died: asyncio.Event
) -> dict[str, bool]:
    """Deliver both messages, as far as the process lives; which were acknowledged."""
    told = {FIRST: False, SECOND: False}
    if plot is Plot.STUMBLE or plot is Plot.APOLOGY:
        told[SECOND] = True  # It comes behind the first, whose failures are not to be awaited.
    for text in (FIRST, SECOND):
        saying = asyncio.create_task(_say(stage, running, text, plot))
        dying = asyncio.create_task(died.wait())
        await asyncio.wait((saying, dying), return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if not saying.done():
            saying.cancel()  # The connection breaks with the process.
            await running.die()
        told[text] = not saying.cancelled() and saying.done() and saying.result()
    return told


async def _say(stage: Stage, running: Running, text: str, plot: Plot) -> bool:
    if plot is Plot.NOTICE and text == FIRST:
        return await stage.command(running)
    return await stage.say(running, text)


async def _until_dead(world: World, died: asyncio.Event, plot: Plot, victim: Running) -> None:
    """Some deaths come late (after a back-off): time passes, but where a lease must end."""
    async with asyncio.timeout(PATIENCE):
        while not died.is_set():
            if plot is Plot.TWICE:
                await outlive(world, victim)
                await died.wait()
            else:
                await moves(world)


async def _played(world: World, stage: Stage, agent: Counting) -> Played:
    runs = await world.rows(
        "SELECT i.text, r.ending FROM runs r JOIN inbound i ON i.run = r.id ORDER BY i.id"
    )
    parts = await world.rows(
        "SELECT i.text, o.kind, o.part, o.state, "
        f"(SELECT count(*) FROM {RECEIPTS} c WHERE c.outbox = o.id), o.text "
        "FROM outbox o LEFT JOIN inbound i ON i.run = o.run"
    )
    return Played(
        [tuple(r) for r in runs],
        sorted(Line(r[0] or "", r[1], r[2], _arrived(r[3]), r[4], r[5]) for r in parts),
        await stage.shown(),
        Counter(agent.calls),
        agent.looked_up,
    )


def _arrived(state: str) -> str:
    return "arrived" if state in ("sent", "delivered", "read") else state
