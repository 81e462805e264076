"""Twilio's webhooks reach us signed, retried as asked, in any order, and more than once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl

import httpx
import pytest
import pytest_asyncio
from twilio.request_validator import RequestValidator, get_signature_algorithm

from tests.fakes.clients import twilio_http
from tests.fakes.receiver import Got, Receiver, Reply
from tests.fakes.twilio import FakeTwilio, forms
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.twilio.signing import SharedKey, signature

ADA = "whatsapp:+15550100015"
PUBLIC = "https://bot.example.test"
HOOK = f"{PUBLIC}/whatsapp/webhook"
STATUS = f"{PUBLIC}/whatsapp/status?r=7&a=1#rc=5&rp=all"
EAGER = "#rc=5&rp=all&ct=1500&rt=4000&tt=15000"


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTwilio]:
    async with FakeTwilio() as running:
        running.webhook_url = HOOK
        running.plan = lambda _message: StatusPlan.nothing()
        yield running


@pytest_asyncio.fixture
async def http(fake: FakeTwilio) -> AsyncIterator[httpx.AsyncClient]:
    async with twilio_http(fake) as client:
        yield client


@pytest_asyncio.fixture
async def receiver(fake: FakeTwilio) -> AsyncIterator[Receiver]:
    async with Receiver() as running:
        fake.reach[PUBLIC] = running.url
        yield running


def fields(got: Got) -> dict[str, str]:
    return dict(parse_qsl(got.body.decode(), keep_blank_values=True))


def signed(got: Got, secret: str) -> bool:
    algorithm = get_signature_algorithm(got.headers.get("x-twilio-webhooks-signature-settings"))
    return bool(
        RequestValidator(secret).validate(
            PUBLIC + got.target, fields(got), got.headers["x-twilio-signature"], algorithm
        )
    )


async def create(http: httpx.AsyncClient, fake: FakeTwilio, callback: str = STATUS) -> str:
    form = {"To": ADA, "From": fake.sender, "Body": "hi", "StatusCallback": callback}
    return str((await http.post("Messages.json", data=form)).json()["sid"])


def statuses(receiver: Receiver) -> list[str]:
    return [fields(got)["MessageStatus"] for got in receiver.got]


def test_b59_the_signature_is_the_one_that_twilio_makes() -> None:
    params = {
        "AccountSid": "AC00000000000000000000000000000001",
        "Body": "hello",
        "From": "whatsapp:+15550100020",
        "MessageSid": "SM00000000000000000000000000000a0b",
        "NumMedia": "0",
        "To": "whatsapp:+15550100099",
    }
    url = "https://bot.example.test/hooks/whatsapp"
    made = signature(url, params.items(), "test-auth-token-0001", "sha1")
    assert made == "zLudjy9zh9oRe8iBZ+trTLRx5+M="


async def test_an_inbound_message_comes_signed_over_the_public_url(
    fake: FakeTwilio, receiver: Receiver
) -> None:
    sent = await fake.inbound("", from_=ADA, user_id="whatsapp:US.13491208655302741918")
    assert sent.acknowledged
    got = receiver.got[0]
    assert got.target == "/whatsapp/webhook"
    assert signed(got, fake.auth_token)
    assert not signed(got, "another")
    form = fields(got)
    assert (form["Body"], form["From"], form["WaId"]) == ("", ADA, "15550100015")
    assert form["MessageSid"] == form["SmsSid"] == sent.sid
    assert form["ExternalUserId"] == "whatsapp:US.13491208655302741918"


async def test_a_shared_key_signs_with_sha256_and_says_so(
    fake: FakeTwilio, receiver: Receiver
) -> None:
    fake.courier.shared_key = SharedKey("webhooks_sharedkey_1", "another-secret")
    await fake.inbound("hi")
    got = receiver.got[0]
    assert got.headers["x-twilio-webhooks-signature-settings"].endswith("algorithm=HMAC_SHA256")
    assert signed(got, "another-secret")
    assert not signed(got, fake.auth_token)


@pytest.mark.parametrize("kind", forms.EVERY_KIND)
async def test_every_kind_of_message_has_its_fields(
    fake: FakeTwilio, receiver: Receiver, kind: str
) -> None:
    given = forms.EVERY_KIND[kind]
    await fake.inbound("" if kind == "location" else "words", fields=given)
    got = fields(receiver.got[0])
    assert signed(receiver.got[0], fake.auth_token)
    assert {name: got[name] for name, value in given.items() if value} == {
        name: value for name, value in given.items() if value
    }
    assert got["ChannelMetadata"].startswith('{"type":"whatsapp"')


@pytest.mark.parametrize(("kind", "content_type"), forms.MEDIA_KINDS.items())
async def test_a_file_comes_with_its_url_and_type(
    fake: FakeTwilio, receiver: Receiver, kind: str, content_type: str
) -> None:
    sent = await fake.inbound("", media=[(content_type, b"bytes")])
    got = fields(receiver.got[0])
    assert (got["MessageType"], got["NumMedia"]) == (kind, "1")
    assert got["MediaContentType0"] == content_type
    assert f"/Messages/{sent.sid}/Media/ME" in got["MediaUrl0"]
    assert sent.sid.startswith("MM")


async def test_without_being_asked_a_failed_webhook_is_not_repeated(fake: FakeTwilio) -> None:
    async with Receiver((Reply(503),)) as receiver:
        fake.reach[PUBLIC] = receiver.url
        sent = await fake.inbound("hi")
    assert [a.status for a in sent.attempts] == [503]
    assert fake.debugger == ["11200"]
    assert [m.body for m in fake.book.all.values()] == ["hi"]


async def test_retries_that_the_fragment_asks_for_carry_one_idempotency_token(
    fake: FakeTwilio,
) -> None:
    fake.webhook_url = HOOK + EAGER
    async with Receiver((Reply(503), Reply(404), Reply(200))) as receiver:
        fake.reach[PUBLIC] = receiver.url
        sent = await fake.inbound("hi")
        await fake.inbound("again")
    assert [a.status for a in sent.attempts] == [503, 404, 200]
    tokens = [g.headers["i-twilio-idempotency-token"] for g in receiver.got]
    assert len(set(tokens[:3])) == 1
    assert tokens[3] != tokens[0]
    assert all(g.target == "/whatsapp/webhook" for g in receiver.got)
    assert all(signed(g, fake.auth_token) for g in receiver.got)


async def test_only_the_kinds_of_failure_that_were_named_are_tried_again(fake: FakeTwilio) -> None:
    fake.webhook_url = f"{HOOK}#rc=2&rp=5xx"
    async with Receiver((Reply(500), Reply(403))) as receiver:
        fake.reach[PUBLIC] = receiver.url
        sent = await fake.inbound("hi")
    assert [a.status for a in sent.attempts] == [500, 403]


async def test_a_webhook_that_nobody_listens_to_is_tried_twice_and_no_more(
    fake: FakeTwilio,
) -> None:
    sent = await fake.inbound("hi")
    assert [a.failure for a in sent.attempts] == ["ct", "ct"]
    assert not sent.acknowledged


async def test_a_webhook_that_does_not_answer_in_time_is_left(fake: FakeTwilio) -> None:
    fake.webhook_url = f"{HOOK}#rt=100&rc=0"
    async with Receiver((Reply(gate=asyncio.Event()),)) as receiver:
        fake.reach[PUBLIC] = receiver.url
        sent = await fake.inbound("hi")
    assert [(a.status, a.failure) for a in sent.attempts] == [(None, "rt")]


async def test_b04_the_fallback_gets_the_same_message_with_two_more_fields(
    fake: FakeTwilio,
) -> None:
    fake.fallback_url = f"{PUBLIC}/fallback"
    async with Receiver((Reply(500),)) as receiver:
        fake.reach[PUBLIC] = receiver.url
        sent = await fake.inbound("hi")
    assert sent.acknowledged
    first, second = (fields(got) for got in receiver.got)
    assert receiver.got[1].target == "/fallback"
    assert second == first | {"ErrorCode": "11200", "ErrorUrl": HOOK}
    assert signed(receiver.got[1], fake.auth_token)


async def test_one_form_can_come_many_times_at_once_to_several_places(
    fake: FakeTwilio, receiver: Receiver
) -> None:
    sent = await fake.inbound("hi", webhook=False)
    assert receiver.got == []
    done = await fake.repeat(sent.form, HOOK, f"{PUBLIC}/other", times=10)
    assert len(done) == len(receiver.got) == 20
    assert all(signed(got, fake.auth_token) for got in receiver.got)


@pytest.mark.parametrize(
    ("reply", "spoken"),
    [
        (Reply(body="OK", content_type="text/plain"), ["OK"]),
        (Reply(body="<Response><Message>hi</Message></Response>"), 1),
        (Reply(), []),
        (Reply(204, body=""), []),
    ],
)
async def test_b63_words_in_the_answer_reach_the_person(
    fake: FakeTwilio, reply: Reply, spoken: list[str] | int
) -> None:
    async with Receiver((reply,)) as receiver:
        fake.reach[PUBLIC] = receiver.url
        await fake.inbound("hi", from_=ADA)
    if isinstance(spoken, int):
        assert len(fake.texts(ADA)) == spoken
    else:
        assert fake.texts(ADA) == spoken
    assert bool(fake.violations) == bool(spoken)


async def test_an_answer_that_is_not_xml_is_an_entry_in_the_debugger(fake: FakeTwilio) -> None:
    async with Receiver((Reply(body="{}", content_type="application/json"),)) as receiver:
        fake.reach[PUBLIC] = receiver.url
        await fake.inbound("hi")
    assert fake.debugger == ["12300"]


async def test_statuses_are_told_with_our_own_query_and_without_the_fragment(
    fake: FakeTwilio, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    fake.plan = lambda _message: StatusPlan(("sent", "delivered", "read"))
    sid = await create(http, fake)
    await receiver.arrived(3)
    assert statuses(receiver) == ["sent", "delivered", "read"]
    assert {got.target for got in receiver.got} == {"/whatsapp/status?r=7&a=1"}
    assert all(signed(got, fake.auth_token) for got in receiver.got)
    assert fields(receiver.got[2])["MessageSid"] == sid
    assert fields(receiver.got[2])["EventType"] == "READ"
    assert fake.book.all[sid].status == "read"
    assert fake.book.all[sid].sent_at is not None


async def test_b107_statuses_can_come_out_of_order_and_again(
    fake: FakeTwilio, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    order = ("delivered", "sent", "queued", "delivered", "read")
    fake.plan = lambda _message: StatusPlan(order)
    sid = await create(http, fake)
    await receiver.arrived(5)
    assert statuses(receiver) == list(order)
    assert fake.book.all[sid].status == "read"


async def test_a_status_can_come_before_the_create_call_is_answered(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    fake.plan = lambda _message: StatusPlan(("sent",), before_answer=True)
    gate = asyncio.Event()
    async with Receiver((Reply(gate=gate),)) as receiver:
        fake.reach[PUBLIC] = receiver.url
        creating = asyncio.create_task(create(http, fake))
        await receiver.arrived()
        assert not creating.done()
        gate.set()
        await creating


async def test_a_message_can_fail_later_with_a_code(
    fake: FakeTwilio, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    fake.plan = lambda _message: StatusPlan.failing(63014)
    sid = await create(http, fake)
    await receiver.arrived()
    told = fields(receiver.got[0])
    assert (told["MessageStatus"], told["ErrorCode"]) == ("failed", "63014")
    assert (fake.book.all[sid].error_code, fake.texts(ADA)) == (63014, [])


async def test_a_status_can_change_without_anybody_being_told(
    fake: FakeTwilio, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    fake.plan = lambda _message: StatusPlan(("delivered",), told=False, before_answer=True)
    sid = await create(http, fake)
    assert fake.book.all[sid].status == "delivered"
    assert receiver.got == []


async def test_a_test_reports_a_status_when_it_likes(
    fake: FakeTwilio, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    sid = await create(http, fake)
    told = await fake.report(sid, "delivered")
    assert [a.status for a in told] == [200]
    await fake.report(sid, "sent")
    assert statuses(receiver) == ["delivered", "sent"]
    assert fake.book.all[sid].status == "delivered"


async def test_without_a_callback_of_its_own_a_message_uses_the_senders(
    fake: FakeTwilio, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    fake.status_url = f"{PUBLIC}/whatsapp/status"
    sid = await create(http, fake, callback="")
    await fake.report(sid, "sent")
    assert receiver.got[0].target == "/whatsapp/status"
