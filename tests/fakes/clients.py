"""The providers' own Python clients, pointed at a fake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
from telegram import Bot
from telegram.request import HTTPXRequest
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from tests.fakes.faults import Fault, How
from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.telegram import FakeTelegram
from tests.fakes.twilio import FakeTwilio
from tests.limits import PATIENCE

T = TypeVar("T")


def patience(fault: Fault) -> float:
    """Seconds to wait for an answer under this fault: few when it never comes."""
    return 0.2 if fault.how is How.HANG else PATIENCE


@asynccontextmanager
async def http(base_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client."""
    async with httpx.AsyncClient(
        verify=NO_CERTIFICATES, base_url=base_url, trust_env=False, timeout=PATIENCE
    ) as client:
        yield client


@asynccontextmanager
async def telegram_http(fake: FakeTelegram) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client at the main bot's methods."""
    async with http(f"{fake.url}/bot{fake.main.token}/") as client:
        yield client


@asynccontextmanager
async def telegram_bot(fake: FakeTelegram) -> AsyncIterator[Bot]:
    """python-telegram-bot's Bot."""
    plain: dict[str, Any] = {"trust_env": False, "verify": NO_CERTIFICATES}
    sending, polling = (HTTPXRequest(read_timeout=PATIENCE, httpx_kwargs=plain) for _ in range(2))
    bot = Bot(
        fake.main.token,
        base_url=f"{fake.url}/bot",
        base_file_url=f"{fake.url}/file/bot",
        request=sending,
        get_updates_request=polling,
    )
    try:
        yield bot
    finally:
        await sending.shutdown()
        await polling.shutdown()


class TwilioClient:
    """Twilio's synchronous Client, in a thread."""

    def __init__(self, fake: FakeTwilio) -> None:
        self._http = TwilioHttpClient(timeout=PATIENCE)
        self.rest: Any = Client(fake.account, fake.auth_token, http_client=self._http)
        self.rest.api.base_url = fake.url
        self.rest.messaging.base_url = fake.url
        self._fake = fake

    def wait_at_most(self, seconds: float) -> None:
        self._http.timeout = seconds

    async def do(self, call: Callable[[Any], T]) -> T:
        return await asyncio.to_thread(call, self.rest)

    async def send(self, body: str, to: str = "whatsapp:+15550100015", **more: Any) -> Any:
        """Create a message."""
        sender = self._fake.sender
        return await self.do(
            lambda rest: rest.messages.create(to=to, from_=sender, body=body, **more)
        )

    def close(self) -> None:
        self._http.session.close()


@asynccontextmanager
async def twilio_client(fake: FakeTwilio) -> AsyncIterator[TwilioClient]:
    client = TwilioClient(fake)
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def twilio_http(fake: FakeTwilio) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client at the account, with its credentials."""
    base = f"{fake.url}/2010-04-01/Accounts/{fake.account}/"
    auth = (fake.account, fake.auth_token)
    async with httpx.AsyncClient(
        base_url=base, auth=auth, verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE
    ) as client:
        yield client
