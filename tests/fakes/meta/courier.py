"""Meta's webhooks on their way to us: signed, and repeated until we say 200."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import httpx

from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.recording import Now
from tests.limits import PATIENCE

SIGNATURE = "X-Hub-Signature-256"
SEVEN_DAYS = 7 * 86_400.0
Sleep = Callable[[float], Awaitable[None]]


def signature(body: bytes, secret: str) -> str:
    """The header's value over the raw bytes, written from Meta's description."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@dataclass
class Delivery:
    """One body, its public URL, and how its POSTs fared: statuses, None for no answer."""

    url: str
    body: bytes
    answers: list[int | None] = field(default_factory=list)

    @property
    def acknowledged(self) -> bool:
        return 200 in self.answers


@dataclass
class Courier:
    """`reach` maps the beginning of a public URL to where it really listens. What is not told 200
    comes again, the same bytes, after `first_repeat` seconds of `sleep`, and then after twice as
    long each time, for seven days."""

    now: Now
    sleep: Sleep
    changed: Callable[[], None]
    secret: str
    reach: dict[str, str] = field(default_factory=dict)
    first_repeat: float = 10.0
    deliveries: list[Delivery] = field(default_factory=list)
    _repeating: set[asyncio.Task[None]] = field(default_factory=set)
    _client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        self._client = httpx.AsyncClient(verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE)

    async def close(self) -> None:
        for task in self._repeating:
            task.cancel()
        await asyncio.gather(*self._repeating, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def deliver(self, url: str, body: bytes) -> Delivery:
        """POST once, and see to the repeats; returns after the first answer."""
        delivery = Delivery(url, body)
        self.deliveries.append(delivery)
        if not await self.attempt(delivery):
            repeating = self._repeat(delivery, self.now())
            task = asyncio.get_running_loop().create_task(repeating)
            self._repeating.add(task)
            task.add_done_callback(self._repeating.discard)
        return delivery

    async def attempt(self, delivery: Delivery) -> bool:
        """POST once; whether it is acknowledged by now."""
        try:
            delivery.answers.append((await self.post(delivery.url, delivery.body)).status_code)
        except (httpx.TransportError, Unreachable):
            delivery.answers.append(None)
        self.changed()
        return delivery.acknowledged

    async def _repeat(self, delivery: Delivery, failed_at: float) -> None:
        pause, ends = self.first_repeat, failed_at + SEVEN_DAYS
        while failed_at < ends:
            await self.sleep(failed_at + pause - self.now())
            if delivery.acknowledged or await self.attempt(delivery):
                return
            pause, failed_at = pause * 2, self.now()

    async def hurry(self) -> None:
        """Bring at once whatever is not acknowledged."""
        for delivery in self.deliveries:
            if not delivery.acknowledged:
                await self.attempt(delivery)

    async def post(self, url: str, body: bytes, sign: str | None = None) -> httpx.Response:
        """One POST, with this signature instead of the true one (empty: with none)."""
        assert self._client is not None, "the fake is not running"
        headers = {"Content-Type": "application/json", "User-Agent": "facebookexternalua"}
        made = signature(body, self.secret) if sign is None else sign
        headers |= {SIGNATURE: made} if made else {}
        return await self._client.post(self._where(url), content=body, headers=headers)

    async def challenge(self, url: str, query: dict[str, str]) -> httpx.Response:
        """The GET that asks whether this address is ours."""
        assert self._client is not None, "the fake is not running"
        return await self._client.get(self._where(url), params=query)

    async def again(self, delivery: Delivery, times: int = 1) -> Sequence[int]:
        """The same bytes, so many times at once."""
        posts = [self.post(delivery.url, delivery.body) for _ in range(times)]
        return [answer.status_code for answer in await asyncio.gather(*posts)]

    def _where(self, url: str) -> str:
        for public, real in self.reach.items():
            if url.startswith(public):
                return real + url.removeprefix(public)
        if httpx.URL(url).host not in ("127.0.0.1", "localhost"):
            raise Unreachable(url)
        return url


class Unreachable(Exception):
    """A public address that the test did not map to a local one: nothing leaves the machine."""
