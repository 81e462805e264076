"""The platforms' APIs as the storm has them, and what they wrote down.

`python -m benchmarks.proof.providers telegram|twilio|meta --port 0` is one of them: the fake of the
tests, whose sends take as long as real ones do, so that a kill often falls into one. What is sent
to a chat is done in the order in which it came, as the platforms do it.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.responses import Response

from benchmarks.proof.plan import Platform
from tests.fakes.meta.server import FakeMeta
from tests.fakes.process import main
from tests.fakes.recording import Call
from tests.fakes.server import FakeProvider, Perform
from tests.fakes.telegram.server import FakeTelegram
from tests.fakes.twilio.server import FakeTwilio

SEND = {Platform.TELEGRAM: "sendMessage", Platform.TWILIO: "create", Platform.META: "send"}
"""The method that sends, by the name that a provider's record has for it."""
_BEFORE, _AFTER = (0.01, 0.05), (0.01, 0.05)
"""Seconds that a send takes before it is done, and until it is answered."""


class Unhurried(FakeProvider):
    """A fake that takes its time for sends."""

    def __init__(self, *, port: int) -> None:
        super().__init__(port=port)
        self._lines: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def carry_out(self, call: Call, perform: Perform) -> Response:
        if call.method not in SEND.values():
            return await super().carry_out(call, perform)
        async with self._lines[call.chat]:
            await _for_a_while(_BEFORE)
            answer = await super().carry_out(call, perform)
        await _for_a_while(_AFTER)
        return answer


async def _for_a_while(seconds: tuple[float, float]) -> None:
    least, most = seconds
    await asyncio.sleep(least + random.random() * (most - least))


class UnhurriedTelegram(Unhurried, FakeTelegram):
    """The Bot API, which refuses what is over its limits."""

    def __init__(self, *, port: int) -> None:
        super().__init__(port=port)
        self.main.rates.enforce = True


class UnhurriedTwilio(Unhurried, FakeTwilio):
    """Twilio's API."""


class UnhurriedMeta(Unhurried, FakeMeta):
    """The Graph API."""


PROGRAMS: Mapping[str, Callable[[int], FakeProvider]] = {
    "telegram": lambda port: UnhurriedTelegram(port=port),
    "twilio": lambda port: UnhurriedTwilio(port=port),
    "meta": lambda port: UnhurriedMeta(port=port),
}


@dataclass(frozen=True, slots=True)
class Spoiling:
    """A way in which a provider spoils sends: a fault of the fakes by its name, with its arguments.
    `lasts` is the number of sends."""

    platform: Platform
    fault: str
    args: Mapping[str, Any]
    lasts: int = 1


_ANYWHERE: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("drop_unread", {}),
    ("drop_after_storing", {}),
    ("cut_answer", {}),
    ("hang_after_storing", {}),
    ("hang_before_storing", {}),
    ("bad_gateway", {"stores": False}),
    ("server_error", {"stores": True}),
    ("not_json", {}),
)
_REFUSALS: Mapping[Platform, tuple[str, Mapping[str, Any]]] = {
    Platform.TELEGRAM: ("too_many", {"seconds": 2}),
    Platform.TWILIO: ("too_many", {"seconds": 1}),
    Platform.META: ("refused", {"code": 131056}),
}
"""A send of ours came too early: by far the most frequent in life."""
_REFUSED = 0.6
_LONGEST = 3


def spoiling(platforms: Sequence[Platform], pick: float, how: float) -> Spoiling:
    """The spoiling that these two draw from what there is."""
    theirs = [platform for platform in platforms if platform in SEND]
    platform = theirs[int(pick * len(theirs))]
    if how < _REFUSED:
        fault, args = _REFUSALS[platform]
        return Spoiling(platform, fault, args, 1 + int(how / _REFUSED * _LONGEST))
    fault, args = _ANYWHERE[int((how - _REFUSED) / (1 - _REFUSED) * len(_ANYWHERE))]
    return Spoiling(platform, fault, args)


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider in another process, asked by its back door."""

    platform: Platform
    url: str
    http: httpx.AsyncClient

    async def spoil(self, spoiling: Spoiling) -> None:
        """Spoil the next sends."""
        asked = {"method": SEND[self.platform], "fault": spoiling.fault, "args": spoiling.args}
        await self._post("fail", asked | {"times": spoiling.lasts})

    async def behave(self) -> None:
        """Spoil nothing any more."""
        await self._post("clear", {})

    async def do(self, order: str, words: Mapping[str, Any]) -> Any:
        """Anything that the fake itself offers."""
        return await self._post(f"do/{order}", words)

    async def shown(self) -> Sequence[tuple[str, str]]:
        """Everything that people see, in order: chats, each with a text."""
        said = await self._get("messages")
        match self.platform:
            case Platform.TELEGRAM:
                return [(str(one["chat"]), one["text"]) for one in said]
            case Platform.TWILIO:
                return [(one["to"], one["body"]) for one in said]
            case _:
                return [(one["to"], one["text"]) for one in said]

    async def sends(self) -> Sequence[Mapping[str, Any]]:
        """Every send that it was asked for."""
        found: Sequence[Mapping[str, Any]] = await self._get(f"calls?method={SEND[self.platform]}")
        return found

    async def violations(self) -> Sequence[str]:
        """Calls to it that no caller may make."""
        found: Sequence[str] = await self._get("violations")
        return found

    async def _get(self, what: str) -> Any:
        return await self._ask("GET", what)

    async def _post(self, what: str, body: Mapping[str, Any]) -> Any:
        return await self._ask("POST", what, body)

    async def _ask(self, verb: str, what: str, body: object = None) -> Any:
        """Ask, and again where a spoilt send took our connection with it. Each order may come
        twice."""
        url = f"{self.url}/_fake/{what}"
        for last in (False, False, True):
            try:
                return (await self.http.request(verb, url, json=body, timeout=120.0)).json()
            except httpx.TransportError:
                if last:
                    raise
        return None


if __name__ == "__main__":
    main(PROGRAMS[sys.argv.pop(1)])
