"""The people of a storm: each writes on one platform, and again until somebody took it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never
from urllib.parse import urlencode

import httpx

from benchmarks.pages import new_guests
from benchmarks.proof.contestant import Contestant
from benchmarks.proof.errands import Errand
from benchmarks.proof.plan import Plan, Platform, Saying
from benchmarks.proof.providers import Provider
from tests.fakes.meta import payloads
from tests.fakes.meta.book import Book
from tests.fakes.meta.courier import SIGNATURE, signature
from tests.fakes.meta.server import SECRET as META_SECRET
from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.fakes.twilio.signing import signed_headers
from tests.fakes.updates import Person
from tests.kit.pages import Page
from tests.world import PUBLIC, SECRET, SECRET_HEADER

TELEGRAM_PATH, TWILIO_PATH = "/telegram/webhook", "/whatsapp/webhook"
META_PATH = "/whatsapp-cloud/webhook"
Where = Callable[[], str]
"""The address of a process that takes webhooks, another one each time."""
_AGAIN = 0.2
"""Seconds until what nobody took is brought again."""


class Way(Protocol):
    """One person on a platform. `chat` is the name that its record has for them."""

    chat: str

    async def bring(self, number: int, words: str) -> bool:
        """Deliver the message of this number, once; whether somebody took it."""
        ...

    async def again(self, number: int) -> None:
        """Deliver it once more, although it was taken."""
        ...


@dataclass
class OnTelegram:
    """A private chat with a bot that is called, or that fetches its updates."""

    index: int
    where: Where
    http: httpx.AsyncClient
    fake: Provider
    polled: bool
    _updates: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._person = Person(830_000_000 + self.index)
        self.chat = str(self._person.number)

    async def bring(self, number: int, words: str) -> bool:
        self._person.at = int(time.time())
        if self.polled:
            update = self._person.text(words)
            del update["update_id"]  # The bot's next: polling confirms all that is below a number.
            await self.fake.do("enqueue", {"update": update})
            return True
        if number not in self._updates:
            self._updates[number] = self._person.text(words)
        return await self._post(number)

    async def again(self, number: int) -> None:
        if not self.polled:
            await self._post(number)

    async def _post(self, number: int) -> bool:
        url = self.where() + TELEGRAM_PATH
        headers = {SECRET_HEADER: SECRET}
        return await _posted(self.http, url, headers, json=self._updates[number])


@dataclass
class OnTwilio:
    """Somebody on WhatsApp. Twilio's own list has each message at once, whoever took it."""

    index: int
    where: Where
    http: httpx.AsyncClient
    fake: Provider
    _forms: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chat = f"whatsapp:+1555020{self.index:04d}"

    async def bring(self, number: int, words: str) -> bool:
        if number not in self._forms:
            sid = f"SM{self.index * 100_000 + number + (1 << 64):032x}"
            listed = {"body": words, "from_": self.chat, "webhook": False, "sid": sid}
            await self.fake.do("inbound", listed)
            self._forms[number] = inbound_form(
                sid=sid, account=ACCOUNT, from_=self.chat, to=SENDER, body=words
            )
        return await self._post(number)

    async def again(self, number: int) -> None:
        await self._post(number)

    async def _post(self, number: int) -> bool:
        form = self._forms[number]
        headers = signed_headers(PUBLIC + TWILIO_PATH, form, AUTH_TOKEN, None)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        url = self.where() + TWILIO_PATH
        return await _posted(self.http, url, headers, content=urlencode(form))


@dataclass
class OnMeta:
    """Somebody on WhatsApp who writes to a number at Meta."""

    index: int
    where: Where
    http: httpx.AsyncClient
    _bodies: dict[int, bytes] = field(default_factory=dict)
    _book: Book = field(default_factory=Book)

    def __post_init__(self) -> None:
        self._phone = f"1555030{self.index:04d}"
        self.chat = f"+{self._phone}"

    async def bring(self, number: int, words: str) -> bool:
        if number not in self._bodies:
            wamid, content = self._book.wamid(self._phone), {"body": words}
            message = payloads.message(wamid, time.time(), "text", content, from_=self._phone)
            made = payloads.envelope(payloads.change(messages=[message]))
            self._bodies[number] = payloads.raw(made)
        return await self._post(number)

    async def again(self, number: int) -> None:
        await self._post(number)

    async def _post(self, number: int) -> bool:
        body = self._bodies[number]
        headers = {SIGNATURE: signature(body, META_SECRET)}
        return await _posted(self.http, self.where() + META_PATH, headers, content=body)


@dataclass
class OnTheWeb:
    """A page: it asks before it sends again, and comes back to its events by number."""

    where: Where
    http: httpx.AsyncClient

    def __post_init__(self) -> None:
        [guest] = new_guests(1)
        self.page = Page(self.where, self.http, guest.token)
        self.chat = guest.address

    async def bring(self, number: int, words: str) -> bool:
        with suppress(httpx.HTTPError):
            return await self.page.send(f"m-{number}", words)
        return False

    async def again(self, number: int) -> None:
        with suppress(httpx.HTTPError):
            await self.page.send(f"m-{number}", "")


async def _posted(
    http: httpx.AsyncClient, url: str, headers: Mapping[str, str], **body: Any
) -> bool:
    try:
        return (await http.post(url, headers=headers, **body)).status_code == 200
    except httpx.HTTPError:
        return False


@dataclass
class Chat:
    """One person with what they say."""

    platform: Platform
    way: Way
    sayings: Sequence[Saying]
    taken: list[Errand] = field(default_factory=list)
    """Everything that somebody took, in order."""
    tries: int = 0

    async def speak(self, began: float) -> None:
        """Say everything, each at its moment, and again until somebody took it."""
        for number, saying in enumerate(self.sayings):
            await asyncio.sleep(began + saying.at - time.monotonic())
            self.tries += 1
            while not await self.way.bring(number, saying.errand.words):
                self.tries += 1
                await asyncio.sleep(_AGAIN)
            self.taken.append(saying.errand)

    async def again(self) -> bool:
        """Have the last message that was taken delivered once more. False: there is none."""
        if self.taken:
            await self.way.again(len(self.taken) - 1)
        return bool(self.taken)

    @property
    def page(self) -> Page | None:
        """The page, where it is one."""
        return self.way.page if isinstance(self.way, OnTheWeb) else None

    def was_told(self) -> bool:
        """Tell whether the page was told of the end of all that it said."""
        page = self.page
        return page is None or all(map(page.has_ended, (f"m-{n}" for n in range(len(self.taken)))))


def people(
    plan: Plan,
    contestant: Contestant,
    where: Where,
    http: httpx.AsyncClient,
    providers: Mapping[Platform, Provider],
) -> Sequence[Chat]:
    """Everybody of this plan."""
    sayings: dict[int, list[Saying]] = {n: [] for n in range(len(plan.platforms))}
    for saying in plan.sayings:
        sayings[saying.chat].append(saying)

    def way(index: int, platform: Platform) -> Way:
        match platform:
            case Platform.TELEGRAM:
                return OnTelegram(index, where, http, providers[platform], contestant.polls)
            case Platform.TWILIO:
                return OnTwilio(index, where, http, providers[platform])
            case Platform.META:
                return OnMeta(index, where, http)
            case Platform.WEB:
                return OnTheWeb(where, http)
            case other:
                assert_never(other)

    numbered = zip(itertools.count(), plan.platforms)
    return [Chat(platform, way(n, platform), sayings[n]) for n, platform in numbered]
