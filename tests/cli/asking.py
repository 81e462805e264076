"""Calling the command line from outside, beside a service that runs or does not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.e2e.processes import Ground


@dataclass(frozen=True)
class Told:
    """One call: its output and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def call(ground: Ground, *words: str, given: str = "", **changes: str) -> Told:
    """Run one command to its end, with `given` on its standard input."""
    program = await ground.spawn(*words, **changes)
    await program.say(given, end=True)
    code = await program.ended()
    return Told(code, "\n".join(program.printed), "\n".join(program.said))
