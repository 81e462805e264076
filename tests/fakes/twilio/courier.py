"""Twilio's webhooks on their way to us: signed, with the retries that the URL asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urldefrag, urlencode

import httpx

from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.recording import Now
from tests.fakes.twilio.signing import SharedKey, signed_headers

Form = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Overrides:
    """The connection overrides of a URL's fragment. Seconds; `retry_on` as Twilio names it."""

    connect: float = 5.0
    read: float = 15.0
    total: float = 15.0
    retries: int = 1
    retry_on: frozenset[str] = frozenset({"ct"})

    @staticmethod
    def of(url: str) -> Overrides:
        """The policy that the fragment asks for, with the defaults for the rest."""
        asked = dict(parse_qsl(urldefrag(url).fragment))
        return Overrides(
            connect=int(asked.get("ct", 5000)) / 1000,
            read=int(asked.get("rt", 15000)) / 1000,
            total=int(asked.get("tt", 15000)) / 1000,
            retries=min(int(asked.get("rc", 1)), 5),
            retry_on=frozenset(asked.get("rp", "ct").split(",")),
        )

    def wants_retry(self, attempt: Attempt) -> bool:
        """Tell whether this failure is of a kind that is tried again."""
        if attempt.acknowledged:
            return False
        return "all" in self.retry_on or attempt.failure in self.retry_on


@dataclass
class Attempt:
    """One POST to us. `status` None: no answer. `failure` is `ct`, `rt`, `4xx`, `5xx` or ``."""

    url: str
    at: float
    form: Form
    status: int | None = None
    body: str = ""
    content_type: str = ""
    failure: str = ""

    @property
    def acknowledged(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass
class Courier:
    """`reach` maps the beginning of a public URL to where it really listens; the signature is
    made over the public one. `pause` is the wait between two attempts in seconds."""

    auth_token: str
    now: Now
    changed: Callable[[], None]
    reach: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    shared_key: SharedKey | None = None
    attempts: list[Attempt] = field(default_factory=list)
    _numbers: int = 0
    _client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        self._client = httpx.AsyncClient(verify=NO_CERTIFICATES, trust_env=False)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def deliver(self, url: str, form: Form) -> list[Attempt]:
        """POST with the retries that the fragment asks for; every attempt, the last one last."""
        overrides = Overrides.of(url)
        self._numbers += 1
        token = f"{self._numbers:032x}"
        made: list[Attempt] = []
        try:
            async with asyncio.timeout(overrides.total):
                while not made or (
                    len(made) <= overrides.retries and overrides.wants_retry(made[-1])
                ):
                    if made:
                        await self._rest()
                    made.append(await self.post(url, form, token, overrides))
        except TimeoutError:
            made.append(self._noted(Attempt(url, self.now(), form, failure="rt")))
        return made

    async def post(
        self, url: str, form: Form, token: str, overrides: Overrides | None = None
    ) -> Attempt:
        """One signed POST."""
        assert self._client is not None, "the fake is not running"
        limits = overrides or Overrides.of(url)
        headers = signed_headers(url, form, self.auth_token, self.shared_key) | {
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "I-Twilio-Idempotency-Token": token,
            "User-Agent": "TwilioProxy/1.1",
        }
        attempt = Attempt(url, self.now(), form)
        timeout = httpx.Timeout(limits.read, connect=limits.connect)
        try:
            answer = await self._client.post(
                self._where(url), content=urlencode(form), headers=headers, timeout=timeout
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, Unreachable):
            attempt.failure = "ct"
        except httpx.TransportError:
            attempt.failure = "rt"
        else:
            attempt.status, attempt.body = answer.status_code, answer.text
            attempt.content_type = answer.headers.get("content-type", "")
            if not attempt.acknowledged:
                attempt.failure = f"{answer.status_code // 100}xx"
        return self._noted(attempt)

    def _noted(self, attempt: Attempt) -> Attempt:
        self.attempts.append(attempt)
        self.changed()
        return attempt

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self.pause):
                await asyncio.Event().wait()
        except TimeoutError:
            return

    def _where(self, url: str) -> str:
        plain = urldefrag(url).url
        for public, real in self.reach.items():
            if plain.startswith(public):
                return real + plain.removeprefix(public)
        if httpx.URL(plain).host not in ("127.0.0.1", "localhost"):
            raise Unreachable(plain)
        return plain


class Unreachable(Exception):
    """A public address that the test did not map to a local one: nothing leaves the machine."""


def field_of(form: Sequence[tuple[str, str]], name: str) -> str:
    """A form's value by its name, empty when it has none."""
    return next((value for key, value in form if key == name), "")
