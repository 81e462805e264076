"""Wishes of people about their own data: all that they wrote is sent to them or deleted.

A chat writes things of every kind and then asks for a copy or to be forgotten, in words near those
that count; what it confirmed is done at once, by the process itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, TypeVar

from bot.domain.errors import DatabaseUnavailable
from bot.privacy.requests import fulfil
from tests.channels.telegram.kit import NOON
from tests.fakes.meta import payloads
from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, SENDER
from tests.fakes.updates import Person
from tests.fuzz import corpus
from tests.fuzz.doors import AskedAgain, Request, ask
from tests.fuzz.engine import Target
from tests.fuzz.mutations import as_form, damaged_json, dumped, strange_text
from tests.fuzz.targets.routes import Header, Stage, by_meta, by_telegram, by_twilio

_ASKED = ("/export", "/forget", "/export", "/forget", "/FORGET ", " /export", "/forget me",
          "/export@relay_test_bot", "/forget@other_bot", "forget me", "delete my data")  # fmt: skip
_DELIVERIES = 5
"""Times that something is tried while the database is away."""
_Told = TypeVar("_Told")
_CHATS = 40
"""Chats of each platform: that some of them ask again."""


@dataclass(frozen=True, slots=True)
class _Platform:
    """The posts of one person: `path`, the proof, and a post that says something."""

    path: str
    sign: Callable[[bytes, str, bool], list[Header]]
    says: Callable[[Random, int, str], bytes]


def _update(chance: Random, chat: int, text: str) -> bytes:
    number = chance.randrange(1, 2**31)
    ada = Person(700_300_000 + chat, first_message=number, first_update=number)
    update: Any = ada.command(text) if text.startswith("/") else ada.text(text)
    if not text:
        sample = chance.choice(corpus.updates())
        whole = sample.get("message") if isinstance(sample, dict) else None
        content = damaged_json(chance, whole) if isinstance(whole, dict) else {}
        own = {"chat": update["message"]["chat"], "from": update["message"]["from"]}
        update["message"] |= (content if isinstance(content, dict) else {}) | own
        update["message"]["message_id"] = number
    return dumped(chance, update)


def _sid(chance: Random) -> str:
    return f"SM{chance.getrandbits(128):032x}"


def _twilio_form(chance: Random, chat: int, text: str) -> bytes:
    person = f"whatsapp:+1555020{chat:04}"
    form = inbound_form(sid=_sid(chance), account=ACCOUNT, from_=person, to=SENDER, body=text)
    pairs = list(dict(form).items())
    if not text:
        pairs = [p for p in chance.choice(corpus.forms()) if p[0] not in ("From", "MessageSid")]
        pairs += [
            ("From", person),
            ("MessageSid", _sid(chance)),
            ("ProfileName", strange_text(chance)),
        ]
    return as_form(chance, pairs)


def _meta_body(chance: Random, chat: int, text: str) -> bytes:
    person, wamid = f"1555030{chat:04}", f"wamid.{chance.getrandbits(64)}"
    said = payloads.message(wamid, NOON, "text", {"body": text}, from_=person)
    if not text:
        members = chance.choice(corpus.bodies())["entry"][0]["changes"][0]["value"].get("messages")
        sample = damaged_json(chance, members[0]) if members else {}
        said = (sample if isinstance(sample, dict) else {}) | {"id": wamid, "from": person}
    known = payloads.contact(person, strange_text(chance))
    return dumped(chance, payloads.envelope(payloads.change(messages=[said], contacts=[known])))


_PLATFORMS = (
    _Platform("/telegram/webhook", by_telegram, _update),
    _Platform("/whatsapp/webhook", by_twilio, _twilio_form),
    _Platform("/whatsapp-cloud/webhook", by_meta, _meta_body),
)


def _posts(chance: Random) -> Sequence[Request]:
    """The posts of a chat, the last of them about its data."""
    platform, chat = chance.choice(_PLATFORMS), chance.randrange(_CHATS)
    said = [chance.choice(("", strange_text(chance))) for _ in range(chance.choice((0, 1, 3)))]
    asked = chance.choice(_ASKED)
    said += [asked] * chance.choice((1, 2, 2, 2, 3))
    if chance.random() < 0.2:
        said.insert(chance.randrange(len(said) + 1), strange_text(chance))
    made = []
    for text in said:
        body = platform.says(chance, chat, text)
        made.append(
            Request("POST", platform.path, platform.sign(body, platform.path, True), (body,))
        )
    return made


async def _patiently(act: Callable[[], Awaitable[_Told]]) -> _Told:
    for _ in range(1, _DELIVERIES):
        try:
            return await act()
        except (AskedAgain, DatabaseUnavailable):
            continue
    return await act()


@dataclass(frozen=True, slots=True)
class _Asking:
    stage: Stage

    async def take(self, posts: Sequence[Request]) -> str:
        """Post them, and do what was confirmed: nothing of it is left over. A machine that has no
        time left keeps the database away for a while: a platform delivers again then."""
        for post in posts:
            answer = await _patiently(partial(ask, self.stage.app, post))
            assert answer.status in (200, 400, 403), answer.status
        rt, done = self.stage.running.process.rt, 0
        while count := await _patiently(partial(fulfil, rt)):
            done += count
        open_ = await self.stage.world.rows(
            "SELECT chat, what FROM data_requests WHERE state = 'confirmed'"
        )
        assert list(open_) == [], open_
        return f"{done} done"


def targets(stage: Stage) -> Sequence[Target]:
    """Chats that ask about their own data."""
    return [Target("chats: own data", 15, _Asking(stage).take, _posts, most_seconds=6.0)]
