"""The plan of a storm: messages and misfortunes, each with its moment. Pure: a seed repeats it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.proof.errands import Errand, Fails


class Platform(StrEnum):
    """The ways on which people write."""

    TELEGRAM = "Telegram"
    TWILIO = "WhatsApp through Twilio"
    META = "WhatsApp through Meta"
    WEB = "the web"


class Kind(StrEnum):
    """The misfortunes, by the names that the table has for them."""

    KILL = "processes killed (-9)"
    FREEZE = "processes frozen for a while"
    RESTART = "processes told to stop, and started again"
    HAND_OVER = "processes handed over to their successor"
    DATABASE_RESTART = "database servers restarted"
    CONNECTIONS_CUT = "times all connections to the database were cut"
    DATABASE_HELD = "times another program held the database's file"
    DISK_FULL = "times the database's disk was full"
    REDIS_EMPTIED = "times Redis was emptied"
    REDIS_STOPPED = "times Redis was gone"
    REDIS_NONSENSE = "times Redis answered nonsense"
    CLOCK_STEP = "times the clocks were set"
    PROVIDER_FAULT = "sends that a provider was told to spoil"
    PROVIDER_FROZEN = "times a provider stood still"
    REDELIVERY = "messages delivered again"
    OPERATOR = "acts of an operator"


PER_MINUTE: Mapping[Kind, float] = {
    Kind.KILL: 19.0,
    Kind.FREEZE: 1.5,
    Kind.RESTART: 0.7,
    Kind.HAND_OVER: 0.7,
    Kind.DATABASE_RESTART: 0.5,
    Kind.CONNECTIONS_CUT: 1.0,
    Kind.DATABASE_HELD: 0.5,
    Kind.DISK_FULL: 0.35,
    Kind.REDIS_EMPTIED: 1.0,
    Kind.REDIS_STOPPED: 0.35,
    Kind.REDIS_NONSENSE: 0.35,
    Kind.CLOCK_STEP: 0.5,
    Kind.PROVIDER_FAULT: 6.0,
    Kind.PROVIDER_FROZEN: 0.35,
    Kind.REDELIVERY: 10.0,
    Kind.OPERATOR: 1.5,
}
"""1,000 kills in 54 minutes."""
_LASTS: Mapping[Kind, tuple[float, float]] = {
    Kind.KILL: (0.0, 5.0),
    Kind.FREEZE: (0.3, 9.0),
    Kind.RESTART: (0.0, 1.0),
    Kind.DATABASE_RESTART: (0.0, 4.0),
    Kind.DATABASE_HELD: (0.3, 4.0),
    Kind.DISK_FULL: (1.0, 6.0),
    Kind.REDIS_STOPPED: (0.5, 8.0),
    Kind.REDIS_NONSENSE: (0.5, 8.0),
    Kind.CLOCK_STEP: (5.0, 25.0),
    Kind.PROVIDER_FROZEN: (0.5, 5.0),
    Kind.OPERATOR: (2.0, 10.0),
}
"""Seconds, from and to. A kill lasts until the process is started again: half of them at once, so
that it takes over from itself, half later, so that others do."""
_AT_ONCE = 0.5
_BEGINS, _ENDS = 5.0, 2.0
"""Seconds of peace before the first misfortune and behind the last."""


@dataclass(frozen=True, slots=True)
class Misfortune:
    """Something that befalls at `at` seconds and `lasts` so many. `pick` (from 0 to below 1)
    chooses its victim and `how` its form, among as many as there are then."""

    at: float
    kind: Kind
    lasts: float
    pick: float
    how: float


@dataclass(frozen=True, slots=True)
class Saying:
    """A message that somebody sends at `at` seconds, or as soon as the one before it is taken."""

    at: float
    chat: int
    errand: Errand


@dataclass(frozen=True, slots=True)
class Plan:
    """One storm."""

    seed: int
    seconds: float
    platforms: Sequence[Platform]
    """The platform of each chat."""
    sayings: Sequence[Saying]
    misfortunes: Sequence[Misfortune]

    def of(self, kind: Kind) -> int:
        """The number of misfortunes of this kind."""
        return sum(one.kind is kind for one in self.misfortunes)


@dataclass(frozen=True, slots=True)
class Load:
    """The people. `rate` in messages a second of all of them; `takes` are the least and the most
    seconds of the agent."""

    rate: float = 8.0
    chats: int = 120
    takes: tuple[float, float] = (0.05, 0.5)
    long: float = 0.03
    """The share of answers of three parts, where a platform has such."""
    stumbles: float = 0.01
    in_vain: float = 0.001
    """The shares of messages on which the agent fails once, and always."""


def draw(
    seed: int,
    seconds: float,
    platforms: Sequence[Platform],
    kinds: Mapping[Kind, float] = PER_MINUTE,
    load: Load | None = None,
) -> Plan:
    """The plan of this seed. Each kind has a chance of its own: another rate of one of them moves
    none of the others."""
    load = load or Load()
    theirs = [platforms[n % len(platforms)] for n in range(load.chats)]
    befall = [one for kind, rate in kinds.items() for one in _befall(seed, seconds, kind, rate)]
    return Plan(
        seed,
        seconds,
        theirs,
        _sayings(random.Random(f"{seed} people"), seconds, theirs, load),
        sorted(befall, key=lambda one: one.at),
    )


def _befall(seed: int, seconds: float, kind: Kind, per_minute: float) -> Sequence[Misfortune]:
    chance = random.Random(f"{seed} {kind.name}")
    room = max(0.0, seconds - _BEGINS - _ENDS)
    expected = per_minute * seconds / 60
    count = int(expected) + (chance.random() < expected % 1)
    least, most = _LASTS.get(kind, (0.0, 0.0))
    made = []
    for _ in range(count):
        at = _BEGINS + chance.random() * room
        lasts = least + chance.random() * (most - least)
        if kind is Kind.KILL and chance.random() < _AT_ONCE:
            lasts = 0.0
        made.append(Misfortune(at, kind, lasts, chance.random(), chance.random()))
    return made


_BURST = 4
_WITHIN = 1.5
"""Seconds between two messages that somebody writes in one go, at most."""


def _sayings(
    chance: random.Random, seconds: float, platforms: Sequence[Platform], load: Load
) -> Sequence[Saying]:
    """Everybody writes now and then, a few messages in one go."""
    wanted = round(load.rate * seconds)
    moments: list[tuple[float, int]] = []
    while len(moments) < wanted:
        at, chat = chance.random() * seconds, chance.randrange(len(platforms))
        for _ in range(chance.randint(1, _BURST)):
            moments.append((min(at, seconds), chat))
            at += chance.random() * _WITHIN
    numbers = [0] * len(platforms)
    made = []
    for at, chat in sorted(moments[:wanted]):
        numbers[chat] += 1
        name = f"{platforms[chat].name.lower()}-{chat:03d}-{numbers[chat]:04d}"
        made.append(Saying(at, chat, _errand(chance, name, platforms[chat], load)))
    return made


def _errand(chance: random.Random, name: str, platform: Platform, load: Load) -> Errand:
    least, most = load.takes
    takes = least + chance.random() * (most - least)
    drawn, long = chance.random(), chance.random() < load.long
    fails = Fails.NEVER
    if drawn < load.in_vain:
        fails = Fails.ALWAYS
    elif drawn < load.in_vain + load.stumbles:
        fails = Fails.ONCE
    return Errand(name, takes, 3 if long and platform is not Platform.WEB else 1, fails)
