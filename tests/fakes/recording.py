"""The record of a fake provider: every call in order, and a way to wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.limits import PATIENCE

Json = dict[str, Any]
"""A JSON object as it is on the wire; only the fakes and their tests look inside."""

Now = Callable[[], float]
T = TypeVar("T")

machine_time: Now = time.time
"""For fakes that are not given a test's clock."""


@dataclass
class Call:
    """One request to the provider. `status` is None until, or for ever unless, it is answered.

    `account` is the bot id or account SID, `chat` the address that the call concerns (empty
    when none); `fault` names the misbehaviour that was played; `stored` says whether the
    provider did what was asked, whatever it answered.
    """

    number: int
    at: float
    method: str
    params: Json
    account: str
    chat: str
    fault: str = ""
    stored: bool = False
    status: int | None = None
    answer: object = None


@dataclass
class Record:
    """The calls and the violations of the provider's rules, with waiters on every change."""

    now: Now
    calls: list[Call] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    _orders: int = 0

    def begin(self, method: str, params: Json, account: str, chat: str) -> Call:
        call = Call(len(self.calls) + 1, self.now(), method, params, account, chat)
        self.calls.append(call)
        self.changed()
        return call

    def next_order(self) -> int:
        """A number that goes up with everything that is shown to anybody."""
        self._orders += 1
        return self._orders

    def violate(self, what: str) -> None:
        """Note that the caller did what the provider's description does not allow."""
        self.violations.append(what)
        self.changed()

    def changed(self) -> None:
        """Wake everybody who waits for something to become true."""
        self._change.set()
        self._change = asyncio.Event()

    async def wait_for(self, predicate: Callable[[], T], timeout: float = PATIENCE) -> T:
        """The first true value of `predicate`, asked again after every change.

        Raises AssertionError with the last calls after `timeout` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                while not (value := predicate()):
                    await self._change.wait()
                return value
        except TimeoutError:
            seen = "\n".join(
                f"  {c.number} {c.method} chat={c.chat} fault={c.fault} status={c.status}"
                for c in self.calls[-20:]
            )
            raise AssertionError(f"not within {timeout} s; the last calls:\n{seen}") from None

    def of(self, method: str = "", chat: int | str = "") -> list[Call]:
        """The calls of one method, of one chat, or of both."""
        return [
            c
            for c in self.calls
            if (not method or c.method == method) and (chat == "" or c.chat == str(chat))
        ]
