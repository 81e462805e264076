"""The words of a message of the storm: its name, and what the agent shall do with it.

They go through whole: the agent reads its errand from them, and the judge finds the names in what
people are shown. So neither needs a word with the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Fails(StrEnum):
    """The attempts in which the agent fails."""

    NEVER = "never"
    ONCE = "once"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Errand:
    """One message. `takes` in seconds of the agent's; `parts` are the messages of its answer."""

    name: str
    takes: float
    parts: int = 1
    fails: Fails = Fails.NEVER

    @property
    def words(self) -> str:
        """The text that the person writes."""
        return f"{self.name} takes {self.takes:.3f} parts {self.parts} fails {self.fails}"

    @staticmethod
    def read(words: str) -> Errand:
        """The errand of a text. Raises ValueError."""
        found = _ERRAND.search(words)
        if found is None:
            raise ValueError("these words are no errand")
        name, takes, parts, fails = found.groups()
        return Errand(name, float(takes), int(parts), Fails(fails))

    def answer(self, attempt: int) -> Sequence[str]:
        """The messages of the answer. `attempt` counts from 1. Raises Failed."""
        if self.fails is Fails.ALWAYS or (self.fails is Fails.ONCE and attempt == 1):
            raise Failed(self.fails)
        return [f"re: {self.name} {part}/{self.parts}" for part in range(1, self.parts + 1)]


class Failed(Exception):
    """The agent fails, as it was told to."""


def answered(text: str) -> Iterator[tuple[str, int]]:
    """The answers in a text that people are shown: names, each with the number of its part."""
    for name, part in _ANSWER.findall(text):
        yield name, int(part)


_ERRAND = re.compile(r"(\S+) takes ([\d.]+) parts (\d+) fails (never|once|always)")
_ANSWER = re.compile(r"re: (\S+) (\d+)/\d+")
