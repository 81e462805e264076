"""Pages that go on whatever becomes of the processes: as the widget does it, in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.kit.web import API, Following, Told, Visitor
from tests.limits import moment

_OURS = ("message", "notice")


@dataclass
class Page:
    """A page of one visitor. It asks at `place()`, each time anew."""

    place: Callable[[], str]
    http: httpx.AsyncClient
    token: str
    told: list[Told] = field(default_factory=list)
    """The events that it was told, over all its streams."""
    begun_anew: int = 0
    """The number of times that it was given a snapshot instead of what came behind its last
    number."""
    _first: dict[str, Any] = field(default_factory=lambda: {"n": 0, "messages": [], "turns": []})
    """The snapshot that it began with: the last one before its first event."""
    _tried: set[str] = field(default_factory=set)

    @property
    def shown(self) -> Sequence[str]:
        """The elements of ours that it shows."""
        before = [one["text"] for one in self._first["messages"] if one["kind"] in _OURS]
        return before + [told.data["text"] for told in self.told if told.kind in _OURS]

    @property
    def numbers_missing(self) -> bool:
        """Tell whether a number is missing, or came twice."""
        first = self._first["n"] + 1
        return [told.id for told in self.told] != list(range(first, first + len(self.told)))

    def has_ended(self, name: str) -> bool:
        known = {one["request_id"] for one in self._first["messages"]}
        under_way = {turn["request_id"] for turn in self._first["turns"]}
        return name in known - under_way or ("ended", name) in [told.about for told in self.told]

    async def send(self, name: str, text: str) -> bool:
        """Send a message once; ask about one that was sent before. False: nobody has it yet, or
        nobody said so."""
        visitor = Visitor(self.place(), self.http, self.token)
        with suppress(httpx.TransportError):
            if name in self._tried:
                asked = await visitor.get(f"/turns/{name}")
                if asked.status_code != 200 or asked.json()["status"] != "unknown":
                    return asked.status_code == 200
            self._tried.add(name)
            return (await visitor.say(name, text)).status_code in (200, 202)
        return False

    async def follow(self) -> None:
        """Follow for ever: from the last number on, wherever it comes to."""
        while True:
            with suppress(httpx.TransportError):
                await self._follow_once()
            await moment()

    async def _follow_once(self) -> None:
        last = self.told[-1].id if self.told else 0
        headers = {"Authorization": f"Bearer {self.token}", "Last-Event-ID": str(last)}
        url = f"{self.place()}{API}/events"
        async with self.http.stream("GET", url, headers=headers) as answer:
            following, read = Following(), ""
            async for text in answer.aiter_text():
                *blocks, read = (read + text).split("\n\n")
                for block in blocks:
                    following.read(block)
                if not self.told:
                    self._first = next((t.data for t in following.of("snapshot")), self._first)
                self.told += following.events
                self.begun_anew += len(following.of("resync"))
                following.told.clear()
