"""The seam to whoever is put through a storm, from its start to its claims.

The storm, its faults and its judge know nothing else of a contestant. A new one derives from
`Contestant` and says `start`; the rest has the meaning of somebody who claims nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from benchmarks.proof.judge import Claim
from benchmarks.proof.plan import Platform


@dataclass(frozen=True, slots=True)
class Ground:
    """All that a contestant is given. `providers` are the base URLs of the platforms' APIs,
    `database` a URL of PostgreSQL or SQLite; `environment` must be in every process's own: it has
    the clock that the storm sets."""

    folder: Path
    database: str
    redis: str
    providers: Mapping[Platform, str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Start:
    """A process to be started."""

    command: Sequence[str | Path]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Held:
    """All that a process held when it was killed: runs (with whatever tells that somebody else has
    one by now), and those of them that it was just sending for."""

    runs: Mapping[int, int] = field(default_factory=dict)
    sending: int = 0


@dataclass
class Contestant:
    """Somebody who answers. `places` is the number of its processes, each in a place of its own."""

    name: ClassVar[str]
    platforms: ClassVar[Sequence[Platform]] = tuple(Platform)
    quiet_after: ClassVar[float] = 45.0
    """Seconds without a call to any provider after which nothing is expected of it any more."""
    ground: Ground
    places = 1
    polls = False
    """It fetches Telegram's updates, instead of being called."""
    notes: list[str] = field(default_factory=list)
    """Words of an operator's acts, or of anything else, that people should read."""

    def start(self, place: int, port: int) -> Start:
        """The process of this place, which shall listen on this port of 127.0.0.1."""
        raise NotImplementedError

    def takes_webhooks(self, place: int) -> bool:
        """Tell whether platforms can deliver to the process of this place."""
        return True

    async def ready(self, url: str) -> bool:
        """Tell whether the process at this address works by now."""
        return True

    async def prepare(self) -> None:
        """Whatever is done once, before the first process."""

    async def close(self) -> None:
        """Whatever is done once, behind the last process."""

    async def held_by(self, pid: int) -> Held | None:
        """Everything that this process, which is dead, held. None: it can't be told now."""
        return None

    async def still_held(self, held: Held) -> Collection[int] | None:
        """The runs of these that nobody else has taken yet. None: it can't be told now."""
        return None

    async def set_database_clock(self, off: float) -> None:
        """Let the database tell the time so many seconds off."""

    async def operate(self, how: float, pick: float, lasts: float) -> str:
        """An act of an operator; what it was, empty for none."""
        return ""

    async def healed(self) -> None:
        """The storm is over: undo what operators did for a while."""

    async def settled(self) -> bool | None:
        """Tell whether nothing is under way any more. None: nobody can, and quiet must do."""
        return None

    async def answered(self) -> int | None:
        """The number of messages that are settled by now. None: it can't be told now."""
        return None

    async def left(self) -> Sequence[str]:
        """A line for each thing that is still under way, for whoever looks for the reason."""
        return ()

    async def claims(self) -> Mapping[str, Claim]:
        """The claims that it makes on messages, by their names."""
        return {}

    async def story(self, name: str) -> str:
        """Everything that it knows of the message of this name, for whoever looks for a reason."""
        return ""

    async def requeued(self) -> Collection[str]:
        """The names of messages that an operator had answered anew."""
        return ()

    async def rows(self) -> Mapping[str, int]:
        """The rows of each of its tables."""
        return {}

    async def stored_bytes(self) -> int:
        """The size of its database."""
        return 0
