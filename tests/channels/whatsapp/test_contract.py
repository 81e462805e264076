"""The WhatsApp channel keeps the contract of all channels."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.domain.message import Event
from channels.whatsapp.compose import LIMIT
from channels.whatsapp.endpoint import signature_matches
from channels.whatsapp.parse import parse
from tests.channels.contract import Arrange, ProviderContract, Subject, Trouble, trouble_takes
from tests.channels.whatsapp.kit import PERSON, Line, line, samples, settings_with, to
from tests.fakes.faults import Misbehaviour
from tests.fakes.twilio import faults
from tests.fakes.twilio.courier import Form
from tests.fakes.twilio.server import AUTH_TOKEN, SENDER
from tests.fakes.twilio.signing import signed_headers

URL = "https://bot.example.test/whatsapp/webhook"
FORM: Form = [("MessageSid", "SM" + "1" * 32), ("Body", "hello"), ("From", PERSON)]

FAULTS: dict[Trouble, Misbehaviour] = {
    Trouble.RATE_LIMITED: faults.too_many(7),
    Trouble.PERSON_GONE: faults.refused(63033),
    Trouble.PAYLOAD: faults.refused(21617),
    Trouble.TOKEN: faults.unauthorized(),
    Trouble.NO_ANSWER: faults.hang_after_storing(),
    Trouble.DISCONNECTED: faults.drop_after_storing(),
    Trouble.SERVER_ERROR: faults.server_error(),
}


def read(payload: object) -> tuple[Event, ...]:
    assert isinstance(payload, dict)
    return parse(payload, SENDER)


def arrangements(at: Line) -> dict[Trouble, Arrange]:
    def playing(fault: Misbehaviour) -> Arrange:
        async def play() -> None:
            at.fake.fail("create", fault, times=None)

        return play

    made = {trouble: playing(fault) for trouble, fault in FAULTS.items()}
    return made | {Trouble.UNREACHABLE: at.fake.refuse_connections}


def genuine(url: str = URL, form: Form = FORM, token: str = AUTH_TOKEN) -> bool:
    """Tell whether what was signed like this gets in as FORM at URL."""
    return signature_matches(URL, FORM, signed_headers(url, form, token, None), settings_with())


class TestWhatsApp(ProviderContract):
    @pytest.fixture
    async def subject(self, request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
        payloads: dict[str, object] = {n: s["form"] for n, s in samples().items()}
        async with line(public_url="", twilio_timeout=trouble_takes(request, FAULTS)) as at:
            yield Subject(
                channel=at.channel,
                to=to(),
                payloads=payloads | {"ours": {**samples()["text"]["form"], "From": SENDER}},
                parse=read,
                sent=lambda: [call.params for call in at.fake.calls_of("create")],
                shown=lambda: len(at.fake.messages(PERSON)),
                ours=["ours"],
                genuine=genuine,
                forged={
                    "missing": lambda: signature_matches(URL, FORM, {}, settings_with()),
                    "other address": lambda: genuine(url=URL + "/"),
                    "other form": lambda: genuine(form=[*FORM, ("Extra", "1")]),
                    "other token": lambda: genuine(token="another"),
                },
                arrange=arrangements(at),
                limit=LIMIT,
            )
