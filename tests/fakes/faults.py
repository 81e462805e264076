"""Faults of a provider, and the script that says when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from tests.fakes.recording import Call
from tests.limits import PATIENCE


class How(Enum):
    """The part of the answer that the caller gets to see."""

    ANSWER = auto()
    HANG = auto()
    """Nothing, on a connection that stays open."""
    DROP = auto()
    """The connection closes without a byte."""
    CUT = auto()
    """The head of the answer and half of its body."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, ready to be written."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(status: int, value: object, *headers: tuple[str, str]) -> Answer:
        body = json.dumps(value).encode()
        return Answer(status, body, headers=headers)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Fault:
    """One misbehaviour. `stores`: the provider does what it was asked before it misbehaves.

    `answer` replaces the true one. A held fault waits for `Rule.release()`: before doing
    anything, or after it and before answering. `unread` closes before reading the body.
    """

    name: str
    stores: bool
    how: How = How.ANSWER
    answer: Answer | None = None
    held_before: bool = False
    held_after: bool = False
    unread: bool = False


class FloodWait:
    """Refuses until `seconds` have passed since its first call; each early call adds `extra`."""

    def __init__(
        self,
        seconds: float,
        extra: float,
        refuse: Callable[[int], Answer],
        name: str = "flood_wait",
    ) -> None:
        self.seconds = seconds
        self.extra = extra
        self.until: float | None = None
        self._refuse = refuse
        self._name = name

    def decide(self, now: float) -> Fault | None:
        if self.until is None:
            self.until = now + self.seconds
        elif now >= self.until:
            return None
        else:
            self.until += self.extra
        wait = max(1, round(self.until - now))
        return Fault(self._name, stores=False, answer=self._refuse(wait))


Misbehaviour = Fault | FloodWait


@dataclass
class Rule:
    """The calls at which a misbehaviour is played: from the `nth` matching call on, `times` times.

    `method` may be `*`; `times` None means for ever. `hits` are the calls that met it."""

    method: str
    fault: Misbehaviour
    chat: str | None = None
    nth: int = 1
    times: int | None = 1
    when: Callable[[Call], bool] | None = None
    number: int = 0
    seen: int = 0
    hits: list[Call] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False

    def release(self) -> None:
        """Let every call that this rule holds, and will hold, go on."""
        self.released.set()

    def cancel(self) -> None:
        """The provider behaves again, as far as this rule is concerned."""
        self.cancelled = True
        self.release()

    def concerns(self, call: Call) -> bool:
        if self.cancelled or self.method not in ("*", call.method):
            return False
        if self.chat is not None and self.chat != call.chat:
            return False
        return self.when is None or self.when(call)

    def meets(self, call: Call) -> bool:
        """Count the call; whether the rule plays its fault on it."""
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and len(self.hits) >= self.times):
            return False
        self.hits.append(call)
        return True


class Script:
    """The rules of one fake, asked in the order in which they were made."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self._made = 0

    def add(self, rule: Rule) -> Rule:
        unread = isinstance(rule.fault, Fault) and rule.fault.unread
        if unread and (rule.chat is not None or rule.when is not None):
            raise ValueError("a call whose body is not read can be chosen by its method only")
        self._made += 1
        rule.number = self._made
        self.rules.append(rule)
        return rule

    def unread(self, method: str) -> Fault | None:
        """The fault that drops a call of this method before its body is read."""
        for rule in self.rules:
            fault = rule.fault
            if isinstance(fault, Fault) and fault.unread and rule.method in ("*", method):
                call = Call(0, 0.0, method, {}, "", "")
                if not rule.cancelled and rule.meets(call):
                    return fault
        return None

    def decide(self, call: Call, now: float) -> tuple[Rule, Fault] | None:
        """The misbehaviour that this call meets, if any."""
        for rule in self.rules:
            fault = rule.fault
            if (isinstance(fault, Fault) and fault.unread) or not rule.concerns(call):
                continue
            if not rule.meets(call):
                continue
            played = fault if isinstance(fault, Fault) else fault.decide(now)
            if played is not None:
                return rule, played
        return None

    def numbered(self, number: int) -> Rule:
        """A rule by the number that it got. Raises StopIteration when there is none."""
        return next(rule for rule in self.rules if rule.number == number)

    def clear(self) -> None:
        """The provider behaves from now on, and lets go of what it holds."""
        for rule in self.rules:
            rule.cancel()
        self.rules.clear()


def hang_after_storing() -> Fault:
    """The message is out; the answer never comes."""
    return Fault("hang_after_storing", stores=True, how=How.HANG)


def hang_before_storing() -> Fault:
    """Nothing is out, and the answer never comes."""
    return Fault("hang_before_storing", stores=False, how=How.HANG)


def drop_after_storing() -> Fault:
    """The message is out; the connection closes without an answer."""
    return Fault("drop_after_storing", stores=True, how=How.DROP)


def drop_before_storing() -> Fault:
    """The request was read and forgotten; the connection closes without an answer."""
    return Fault("drop_before_storing", stores=False, how=How.DROP)


def drop_unread() -> Fault:
    """The connection closes before the body was read."""
    return Fault("drop_unread", stores=False, how=How.DROP, unread=True)


def cut_answer() -> Fault:
    """The message is out; the answer breaks off in the middle of its body."""
    return Fault("cut_answer", stores=True, how=How.CUT)


def held_after_storing() -> Fault:
    """The message is out; the answer waits for `Rule.release()`."""
    return Fault("held_after_storing", stores=True, held_after=True)


def held_before_storing() -> Fault:
    """Nothing happens until `Rule.release()`; then all is well."""
    return Fault("held_before_storing", stores=True, held_before=True)


def not_json() -> Fault:
    """200 with a page instead of JSON; whether anything was sent can't be told (it was)."""
    page = Answer(200, b"<html><body>All is well</body></html>", "text/html")
    return Fault("not_json", stores=True, answer=page)


def bad_gateway(stores: bool = True) -> Fault:
    """502 from something in front of the API, as an HTML page."""
    page = Answer(502, b"<html><head><title>502 Bad Gateway</title></head></html>", "text/html")
    return Fault("bad_gateway", stores=stores, answer=page)


def empty_body(status: int = 200) -> Fault:
    """The message is out; the answer is a success without a word."""
    return Fault("empty_body", stores=True, answer=Answer(status, b""))


COMMON: dict[str, Callable[..., Misbehaviour]] = {
    make.__name__: make
    for make in (
        hang_after_storing,
        hang_before_storing,
        drop_after_storing,
        drop_before_storing,
        drop_unread,
        cut_answer,
        held_after_storing,
        held_before_storing,
        not_json,
        bad_gateway,
        empty_body,
    )
}
"""By name, for a script that comes over HTTP."""


def answers_within(*played: Misbehaviour) -> float:
    """Seconds to wait for a provider: few where it is to hang, else as long as it may be slow."""
    hangs = any(isinstance(fault, Fault) and fault.how is How.HANG for fault in played)
    return 1.0 if hangs else PATIENCE
