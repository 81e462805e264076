"""A visitor of a page: the API's routes, and its event stream read as a browser's script would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from bot.domain.ports import Clock
from channels.web.access.signed import sign
from tests.fakes.plain import NO_CERTIFICATES
from tests.limits import PATIENCE, until

API = "/web/v1"
IDENTITY_SECRET = "the secret that site and bot share: of 32 bytes or more"
WEB: dict[str, Any] = {"web": True, "web_identity_secret": IDENTITY_SECRET}
"""A process with pages on which people can sign in."""


def identity(clock: Clock, sub: str, name: str = "", seconds: float = 600) -> str:
    """The visitor, as the site names it."""
    return sign({"sub": sub, "name": name, "exp": clock.wall() + seconds}, IDENTITY_SECRET)


def client() -> httpx.AsyncClient:
    """A client that waits as long as a busy machine needs."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(
        verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE, limits=limits
    )


@dataclass(frozen=True)
class Told:
    """One event of a stream: `id` is its number, None where it has none."""

    kind: str
    id: int | None
    data: dict[str, Any]

    @property
    def about(self) -> tuple[str, str]:
        return self.kind, self.data.get("request_id", "")


@dataclass
class Following:
    """One open stream: what was told on it so far, and whether it is over."""

    told: list[Told] = field(default_factory=list)
    retry: int | None = None
    beats: int = 0
    over: bool = False

    @property
    def kinds(self) -> list[str]:
        return [told.kind for told in self.told]

    @property
    def events(self) -> list[Told]:
        """Without snapshots and the like."""
        return [told for told in self.told if told.kind not in ("snapshot", "resync")]

    def of(self, kind: str) -> list[Told]:
        return [told for told in self.told if told.kind == kind]

    async def until(self, holds: Callable[[Following], object]) -> None:
        """Wait until what was told is as wanted."""
        await until(lambda: holds(self))

    def read(self, block: str) -> None:
        """Take one block of lines."""
        fields: dict[str, str] = {}
        for line in block.splitlines():
            name, _, value = line.partition(":")
            fields[name] = fields.get(name, "") + value.removeprefix(" ")
        self.beats += "" in fields
        if "retry" in fields:
            self.retry = int(fields["retry"])
        if "data" in fields:
            number = int(fields["id"]) if "id" in fields else None
            self.told.append(Told(fields["event"], number, json.loads(fields["data"])))


@dataclass
class Visitor:
    """Somebody on a page, with a token. `url` is where the API is asked."""

    url: str
    http: httpx.AsyncClient
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def begin(self) -> Visitor:
        """Ask for a guest's token."""
        await self.sign_in()
        return self

    async def sign_in(self, identity: str | None = None) -> dict[str, Any]:
        """Begin a session as whom the site identifies, or go on as the guest; what was told."""
        answer = await self.ask("POST", "/session", {"identity": identity} if identity else {})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        self.token = told["token"]
        return told

    async def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> httpx.Response:
        """One request, with the token if there is one."""
        known = self.headers if self.token else {}
        content = body if isinstance(body, bytes | None) else json.dumps(body)
        return await self.http.request(
            method, f"{self.url}{API}{path}", content=content, headers={**known, **headers}
        )

    async def say(self, request_id: str, text: str, **more: Any) -> httpx.Response:
        body = {"request_id": request_id, "text": text, **more}
        return await self.post("/messages", body)

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.http.post(f"{self.url}{API}{path}", json=body, headers=self.headers)

    async def get(self, path: str, **params: Any) -> httpx.Response:
        return await self.http.get(f"{self.url}{API}{path}", params=params, headers=self.headers)

    async def turn(self, request_id: str, wait: int = 0) -> dict[str, Any]:
        answer = await self.get(f"/turns/{request_id}", **({"wait": wait} if wait else {}))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def answered(self, request_id: str) -> dict[str, Any]:
        """Wait until it is over; what became of it."""
        answer: dict[str, Any] = {"status": "pending"}

        async def over() -> bool:
            nonlocal answer
            answer = await self.turn(request_id, wait=25)
            return bool(answer["status"] != "pending")

        await until(over)
        return answer

    async def history(self, **params: Any) -> list[dict[str, Any]]:
        answer = await self.get("/messages", **params)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["messages"])

    @asynccontextmanager
    async def following(self, after: int | None = None) -> AsyncIterator[Following]:
        """Follow, while the body runs."""
        following = Following()
        headers = dict(self.headers)
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        opened = asyncio.Event()
        task = asyncio.create_task(self._read(following, headers, opened))
        waiting = asyncio.create_task(opened.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()
        try:
            yield following
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @asynccontextmanager
    async def _opened(self, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """The stream. Where the database is busy for too long, a client comes again."""
        while True:
            async with self.http.stream(
                "GET", f"{self.url}{API}/events", headers=headers
            ) as answer:
                if answer.status_code != 503:
                    assert answer.status_code == 200, await answer.aread()
                    yield answer
                    return

    async def _read(
        self, following: Following, headers: dict[str, str], opened: asyncio.Event
    ) -> None:
        async with self._opened(headers) as answer:
            opened.set()
            read = ""
            with suppress(httpx.HTTPError):
                async for text in answer.aiter_text():
                    *blocks, read = (read + text).split("\n\n")
                    for block in blocks:
                        following.read(block)
        following.over = True
