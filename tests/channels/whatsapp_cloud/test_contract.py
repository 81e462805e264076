"""WhatsApp through Meta keeps the contract of all channels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from bot.domain.message import Event
from channels.whatsapp_cloud.endpoint import signature_matches
from channels.whatsapp_cloud.envelope import parse
from tests.channels.contract import Arrange, ProviderContract, Subject, Trouble, trouble_takes
from tests.channels.whatsapp_cloud.kit import ADA, Line, line, to
from tests.fakes.faults import Misbehaviour
from tests.fakes.meta import FakeMeta, faults, payloads
from tests.fakes.meta.courier import signature
from tests.fakes.meta.server import NUMBER, SECRET

BODY = b'{"object":"whatsapp_business_account","entry":[]}'
LIMIT = 4096
FAULTS: dict[Trouble, Misbehaviour] = {
    Trouble.RATE_LIMITED: faults.refused(131056),
    Trouble.PERSON_GONE: faults.refused(131026),
    Trouble.PAYLOAD: faults.refused(131009),
    Trouble.TOKEN: faults.unauthorized(),
    Trouble.NO_ANSWER: faults.hang_after_storing(),
    Trouble.DISCONNECTED: faults.drop_after_storing(),
    Trouble.SERVER_ERROR: faults.server_error(),
}


def read(payload: object) -> Sequence[Event]:
    assert isinstance(payload, bytes)
    told = parse(payload, [NUMBER])
    assert [one.error for one in told] == [""] * len(told)
    return [event for one in told for event in one.events]


def samples(fake: FakeMeta) -> dict[str, object]:
    """The messages that people send, by name."""
    file = {"id": "1", "mime_type": "image/jpeg", "sha256": "x", "caption": "Look"}
    place = {"latitude": 48.1, "longitude": 11.6, "name": "Town hall"}
    pressed = {"type": "button_reply", "button_reply": {"id": "yes", "title": "Yes"}}
    ada = {"name": {"formatted_name": "Ada"}, "phones": [{"phone": "+1 555"}]}
    made = {
        "text": fake.message("hello"),
        "nobody's number": fake.message("hello", from_="", user_id="US.1"),
        "image": fake.message(kind="image", content=file),
        "place": fake.message(kind="location", content=place),
        "button": fake.message(kind="interactive", content=pressed),
        "person": fake.message(kind="contacts", content=[ada]),
        "unsupported": fake.message(kind="unsupported", content={"type": "gif"}),
        "hologram": fake.message(kind="hologram", content={"a": 1}),
    }
    found: dict[str, object] = {
        name: payloads.raw(fake.written_by(message)) for name, message in made.items()
    }
    echo = payloads.change(field="smb_message_echoes", message_echoes=[fake.message("hello")])
    return found | {"echo": payloads.raw(payloads.envelope(echo))}


def arrangements(at: Line) -> dict[Trouble, Arrange]:
    def playing(fault: Misbehaviour) -> Arrange:
        async def play() -> None:
            at.fake.fail("send", fault, times=None)

        return play

    made = {trouble: playing(fault) for trouble, fault in FAULTS.items()}
    return made | {Trouble.UNREACHABLE: at.fake.refuse_connections}


def genuine(body: bytes = BODY, secret: str = SECRET) -> bool:
    """Tell whether what was signed like this gets in as BODY."""
    return signature_matches(BODY, signature(body, secret), [SECRET, "s3cret-old"])


class TestWhatsAppCloud(ProviderContract):
    @pytest.fixture
    async def subject(self, request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
        async with line(meta_timeout=trouble_takes(request, FAULTS)) as at:
            yield Subject(
                channel=at.channel,
                to=to(),
                payloads=samples(at.fake),
                parse=read,
                sent=lambda: [untagged(call.params) for call in at.fake.calls_of("send")],
                shown=lambda: len(at.fake.messages(ADA)),
                ours=["echo"],
                genuine=lambda: genuine() and genuine(secret="s3cret-old") is True,
                forged={
                    "missing": lambda: signature_matches(BODY, "", [SECRET]),
                    "other body": lambda: genuine(body=BODY + b" "),
                    "other secret": lambda: genuine(secret="another"),
                    "no secret": lambda: signature_matches(BODY, signature(BODY, ""), []),
                    "old form": lambda: signature_matches(
                        BODY, signature(BODY, SECRET).removeprefix("sha256="), [SECRET]
                    ),
                },
                arrange=arrangements(at),
                limit=LIMIT,
            )


def untagged(body: dict[str, object]) -> dict[str, object]:
    """A request without the tag, which is that of the attempt."""
    return {name: value for name, value in body.items() if name != "biz_opaque_callback_data"}
