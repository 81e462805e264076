"""Delivery to a webhook: in order per chat, each update again and again until a 2xx."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.recording import Json, Now
from tests.fakes.telegram.queue import Pending, UpdateQueue

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
LONGEST_WAIT = 60.0
READ_TIMEOUT = 60.0


class Unreachable(Exception):
    """A public address that the test did not map to a local one: nothing leaves the machine."""


@dataclass
class Delivery:
    """One attempt: `status` None means that no answer came. `at` in the fake's seconds."""

    update_id: int
    at: float
    url: str
    status: int | None
    body: str = ""
    content_type: str = ""
    error: str = ""
    retry_after: str = ""

    @property
    def acknowledged(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass
class Hook:
    """The address to which a bot's updates go, as `setWebhook` fixed it."""

    url: str
    secret: str = ""
    max_connections: int = 40


@dataclass
class WebhookDriver:
    """Delivers one bot's queue. `scale` shortens every wait (0.01: 2 s become 20 ms);
    `reach` maps the beginning of a public URL to where it really listens."""

    queue: UpdateQueue
    now: Now
    changed: Callable[[], None]
    scale: float = 1.0
    reach: dict[str, str] = field(default_factory=dict)
    hook: Hook | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    last_error: tuple[int, str] | None = None
    waits: list[float] = field(default_factory=list)
    """Every wait before a redelivery, in unscaled seconds."""
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)
    _client: httpx.AsyncClient | None = None
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(40))

    async def point(self, hook: Hook | None) -> None:
        """Deliver to `hook` from now on, beginning with the head of every queue."""
        await self.close()
        self.hook = hook
        self.last_error = None
        if hook is not None:
            self._room = asyncio.Semaphore(hook.max_connections)
            self._client = httpx.AsyncClient(
                verify=NO_CERTIFICATES, trust_env=False, timeout=READ_TIMEOUT
            )
            self.start()

    def start(self) -> None:
        """Begin with every queue that has something and is not being delivered."""
        if self.hook is None:
            return
        for key in self.queue.heads():
            if key not in self._tasks or self._tasks[key].done():
                self._tasks[key] = asyncio.get_running_loop().create_task(self._drain(key))

    def hurry(self) -> None:
        """End every wait between two attempts now."""
        self._hurry.set()
        self._hurry = asyncio.Event()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def post(self, url: str, update: Json, secret: str | None = None) -> Delivery:
        """One attempt for one update; `secret` None uses the hook's own."""
        if secret is None:
            secret = self.hook.secret if self.hook else ""
        headers = {SECRET_HEADER: secret} if secret else {}
        number = int(update["update_id"])
        client = self._client or httpx.AsyncClient(
            verify=NO_CERTIFICATES, trust_env=False, timeout=READ_TIMEOUT
        )
        try:
            answer = await client.post(self._where(url), json=update, headers=headers)
        except (httpx.HTTPError, Unreachable) as error:
            made = Delivery(number, self.now(), url, None, error=type(error).__name__)
        else:
            made = Delivery(
                number,
                self.now(),
                url,
                answer.status_code,
                answer.text,
                answer.headers.get("content-type", ""),
                retry_after=answer.headers.get("retry-after", ""),
            )
        finally:
            if client is not self._client:
                await client.aclose()
        self.deliveries.append(made)
        self.changed()
        return made

    def _where(self, url: str) -> str:
        for public, real in self.reach.items():
            if url.startswith(public):
                return real + url.removeprefix(public)
        if httpx.URL(url).host not in ("127.0.0.1", "localhost"):
            raise Unreachable(url)
        return url

    async def _drain(self, key: str) -> None:
        while (pending := self.queue.heads().get(key)) is not None:
            await self._deliver(pending)

    async def _deliver(self, pending: Pending) -> None:
        failures = 0
        while self.hook is not None:
            async with self._room:
                made = await self.post(self.hook.url, pending.update)
            if made.acknowledged:
                self.queue.remove(pending)
                return
            failures += 1
            self.last_error = (int(self.now()), _described(made))
            wait = _wait(failures, made.retry_after)
            if self.now() + wait > pending.expires_at:
                self.queue.expire(pending)
                return
            self.waits.append(wait)
            self.changed()
            await self._pause(wait * self.scale)

    async def _pause(self, seconds: float) -> None:
        hurry = self._hurry
        try:
            async with asyncio.timeout(seconds):
                await hurry.wait()
        except TimeoutError:
            return


def _wait(failures: int, retry_after: str) -> float:
    if retry_after.isdigit():
        return min(float(retry_after), 3600.0)
    if failures == 1:
        return 0.0
    return min(2.0 ** (failures - 1), LONGEST_WAIT)


def _described(made: Delivery) -> str:
    if made.status is None:
        return "Read timeout expired" if "Timeout" in made.error else "Connection refused"
    return f"Wrong response from the webhook: {made.status}"
