"""The fake Messages API behaves and misbehaves like the real one, seen by httpx and by Twilio's
own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime

import httpx
import pytest
import pytest_asyncio
import requests
from twilio.base.exceptions import TwilioRestException

from tests.clocks import Ticker
from tests.fakes.clients import TwilioClient, patience, twilio_client, twilio_http
from tests.fakes.faults import Fault
from tests.fakes.recording import Json
from tests.fakes.twilio import FakeTwilio, faults
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.twilio.checks import description, resource_problems
from tests.fakes.windows import Window
from tests.limits import PATIENCE

ADA = "whatsapp:+15550100015"
GRACE = "whatsapp:ID.4566546130240823"
NOON = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()
DESCRIBED = pytest.mark.skipif(description() is None, reason="no description of Twilio's API here")


@pytest.fixture
def now() -> Ticker:
    return Ticker(NOON)


@pytest_asyncio.fixture
async def fake(now: Ticker) -> AsyncIterator[FakeTwilio]:
    async with FakeTwilio(now=now) as running:
        running.plan = lambda _message: StatusPlan.nothing()
        yield running


@pytest_asyncio.fixture
async def twilio(fake: FakeTwilio) -> AsyncIterator[TwilioClient]:
    async with twilio_client(fake) as client:
        yield client


@pytest_asyncio.fixture
async def http(fake: FakeTwilio) -> AsyncIterator[httpx.AsyncClient]:
    async with twilio_http(fake) as client:
        yield client


def named(value: object) -> str | None:
    return value.name if isinstance(value, Fault) else getattr(value, "__name__", None)


async def create(http: httpx.AsyncClient, fake: FakeTwilio, **fields: str) -> httpx.Response:
    form = {"To": ADA, "From": fake.sender, "Body": "hi"} | fields
    form = {name: value for name, value in form.items() if value}
    return await http.post("Messages.json", data=form)


async def listed(http: httpx.AsyncClient, **query: str) -> list[str]:
    answer = await http.get("Messages.json", params=query)
    assert answer.status_code == 200, answer.text
    return [m["body"] for m in answer.json()["messages"]]


async def test_a_created_message_is_queued_and_can_be_fetched(
    fake: FakeTwilio, twilio: TwilioClient
) -> None:
    sent = await twilio.send("hi")
    assert (sent.status, sent.direction, sent.date_sent) == ("queued", "outbound-api", None)
    assert sent.sid.startswith("SM")
    assert (await twilio.do(lambda rest: rest.messages(sent.sid).fetch())).body == "hi"
    assert fake.texts(ADA) == ["hi"]
    assert fake.violations == []


@DESCRIBED
async def test_every_resource_fits_twilios_own_description(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    await create(http, fake)
    await create(http, fake, Body="", ContentSid="HX" + "1" * 32, ContentVariables='{"1":"x"}')
    await fake.inbound("hello", from_=GRACE, media=[("image/jpeg", b"jpeg")])
    ours = fake.messages(ADA)[0]
    await fake.report(ours.sid, "undelivered", 63024)
    for message in fake.book.all.values():
        assert resource_problems("api.v2010.account.message", message.as_json()) == []
    incoming = next(m for m in fake.book.all.values() if m.media)
    media = (await http.get(f"Messages/{incoming.sid}/Media.json")).json()["media_list"]
    assert resource_problems("api.v2010.account.message.media", media[0]) == []
    assert fake.violations == []


@pytest.mark.parametrize(
    ("fault", "seen", "stored"),
    [
        (faults.hang_after_storing(), requests.exceptions.ReadTimeout, 1),
        (faults.hang_before_storing(), requests.exceptions.ReadTimeout, 0),
        (faults.drop_after_storing(), requests.exceptions.ConnectionError, 1),
        (faults.drop_unread(), requests.exceptions.ConnectionError, 0),
        (faults.cut_answer(), requests.exceptions.RequestException, 1),
        (faults.server_error(), TwilioRestException, 1),
        (faults.server_error(stores=False), TwilioRestException, 0),
        (faults.bad_gateway(), TwilioRestException, 1),
        (faults.unavailable(5), TwilioRestException, 0),
        (faults.too_many(), TwilioRestException, 0),
        (faults.unauthorized(), TwilioRestException, 0),
        (faults.refused(63016), TwilioRestException, 0),
        (faults.refused(63007), TwilioRestException, 0),
    ],
    ids=named,
)
async def test_twilios_client_raises_for_a_fault_what_it_raises_for_the_real_one(
    fake: FakeTwilio, twilio: TwilioClient, fault: Fault, seen: type[Exception], stored: int
) -> None:
    fake.fail("create", fault)
    twilio.wait_at_most(patience(fault))
    with pytest.raises(seen):
        await twilio.send("hi")
    assert len(fake.messages(ADA)) == stored


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (faults.server_error(), 500, 20500),
        (faults.too_many(7), 429, 20429),
        (faults.unavailable(7), 503, 20503),
        (faults.refused(63016), 400, 63016),
        (faults.refused(63018), 429, 63018),
        (faults.refused(21610), 400, 21610),
    ],
    ids=named,
)
async def test_every_refusal_is_in_twilios_own_form(
    fake: FakeTwilio, http: httpx.AsyncClient, fault: Fault, status: int, code: int
) -> None:
    fake.fail("create", fault)
    answer = await create(http, fake)
    body: Json = answer.json()
    assert (answer.status_code, body["code"], body["status"]) == (status, code, status)
    assert body["more_info"].endswith(str(code))
    assert body["message"]
    if fault.name in ("too_many", "unavailable"):
        assert answer.headers["retry-after"] == "7"


async def test_a_success_without_a_body_leaves_a_message_without_a_sid(
    fake: FakeTwilio, twilio: TwilioClient
) -> None:
    fake.fail("create", faults.empty_body(201))
    assert (await twilio.send("hi")).sid is None
    assert fake.texts(ADA) == ["hi"]


async def test_a_gateways_page_is_no_json(fake: FakeTwilio, http: httpx.AsyncClient) -> None:
    fake.fail("create", faults.bad_gateway())
    answer = await create(http, fake)
    assert answer.status_code == 502
    assert answer.headers["content-type"].startswith("text/html")


async def test_a_flood_wait_ends_by_itself(
    fake: FakeTwilio, http: httpx.AsyncClient, now: Ticker
) -> None:
    fake.fail("create", faults.flood_wait(20))
    assert (await create(http, fake)).headers["retry-after"] == "20"
    now.at += 20
    assert (await create(http, fake)).status_code == 201


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"To": ""}, 21604),
        ({"From": ""}, 21603),
        ({"To": "+15550100015"}, 21910),
        ({"To": "whatsapp:015550100015"}, 21211),
        ({"From": "whatsapp:+15550100000"}, 63007),
        ({"Body": ""}, 21619),
        ({"Body": "x" * 1601}, 21617),
        ({"StatusCallback": "https://my_host.test/status"}, 21609),
        ({"StatusCallback": "not a url"}, 21609),
    ],
)
async def test_a_create_call_that_the_real_one_refuses_is_refused(
    fake: FakeTwilio, http: httpx.AsyncClient, fields: dict[str, str], code: int
) -> None:
    answer = await create(http, fake, **fields)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert fake.messages() == []


@pytest.mark.parametrize("to", [ADA, "whatsapp:+5210055550012", GRACE, "whatsapp:US.ENT.1a2B3c"])
async def test_phone_numbers_and_scoped_ids_are_addresses(
    fake: FakeTwilio, http: httpx.AsyncClient, to: str
) -> None:
    assert (await create(http, fake, To=to, Body="x" * 1600)).status_code == 201
    assert len(fake.messages(to)) == 1


@DESCRIBED
async def test_a_parameter_that_does_not_exist_is_a_violation(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    await create(http, fake, IdempotencyKey="x", ValidityPeriod="soon")
    assert fake.violations == [
        "create: unknown parameter IdempotencyKey",
        "create: ValidityPeriod has a wrong form",
    ]


async def test_wrong_credentials_and_a_foreign_account_are_refused(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    wrong = await http.get("Messages.json", auth=(fake.account, "wrong"))
    assert (wrong.status_code, wrong.json()["code"]) == (401, 20003)
    foreign = await http.get(f"{fake.url}/2010-04-01/Accounts/AC{'9' * 32}/Messages.json")
    assert (foreign.status_code, foreign.json()["code"]) == (404, 20404)
    assert (await http.get("Messages/SM404.json")).status_code == 404


async def test_the_list_is_newest_first_and_filtered_by_both_addresses(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    await create(http, fake, Body="one")
    await create(http, fake, Body="two")
    await create(http, fake, Body="other", To=GRACE)
    await fake.inbound("question")
    assert await listed(http) == ["question", "other", "two", "one"]
    assert await listed(http, To=ADA, From=fake.sender) == ["two", "one"]
    assert await listed(http, To=fake.sender) == ["question"]


async def test_the_list_has_pages_that_lead_to_the_next(
    fake: FakeTwilio, http: httpx.AsyncClient, twilio: TwilioClient
) -> None:
    for number in range(5):
        await create(http, fake, Body=str(number))
    first = (await http.get("Messages.json", params={"To": ADA, "PageSize": 2})).json()
    assert [m["body"] for m in first["messages"]] == ["4", "3"]
    second = (await http.get(fake.url + first["next_page_uri"])).json()
    assert [m["body"] for m in second["messages"]] == ["2", "1"]
    assert second["page"] == 1
    found = await twilio.do(lambda rest: rest.messages.list(to=ADA, page_size=2))
    assert [m.body for m in found] == ["4", "3", "2", "1", "0"]


async def test_a_date_filter_misses_what_is_still_queued(
    fake: FakeTwilio, http: httpx.AsyncClient, twilio: TwilioClient, now: Ticker
) -> None:
    await create(http, fake, Body="sent")
    await fake.report(fake.messages(ADA)[0].sid, "sent")
    now.at += 86_400
    await create(http, fake, Body="queued")
    await fake.inbound("question")
    assert await listed(http, **{"DateSent>": "2027-01-15"}) == ["question", "sent"]
    assert await listed(http, **{"DateSent>": "2027-01-15T12:00:01Z"}) == ["question"]
    assert await listed(http, **{"DateSent<": "2027-01-16"}) == ["sent"]
    assert await listed(http, DateSent="2027-01-15") == ["sent"]
    day = date(2027, 1, 16)
    found = await twilio.do(lambda rest: rest.messages.list(date_sent_after=day, limit=50))
    assert [m.body for m in found] == ["question"]
    assert (await http.get("Messages.json", params={"DateSent": "soon"})).status_code == 400


async def test_a_new_message_shows_in_the_list_only_after_some_list_calls(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    fake.list_lag = 2
    sid = (await create(http, fake)).json()["sid"]
    assert (await http.get(f"Messages/{sid}.json")).status_code == 200
    assert [await listed(http) for _ in range(3)] == [[], [], ["hi"]]


async def test_a_message_can_be_kept_out_of_the_list_until_it_is_revealed(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    fake.hide_from_list()
    await create(http, fake)
    assert await listed(http) == []
    fake.reveal_list()
    assert await listed(http) == ["hi"]


async def test_outside_the_window_free_text_is_refused_at_once_or_later(
    fake: FakeTwilio, http: httpx.AsyncClient, now: Ticker
) -> None:
    fake.window = Window.SYNC
    assert (await create(http, fake)).json()["code"] == 63016
    await fake.inbound("hi")
    now.at += 86_399
    assert (await create(http, fake)).status_code == 201
    now.at += 1
    fake.window = Window.CALLBACK
    sid = (await create(http, fake)).json()["sid"]
    late = fake.book.all[sid]
    await fake.wait_for(lambda: late.error_code == 63016)
    assert late.status == "undelivered"
    template = await create(http, fake, Body="", ContentSid="HX" + "1" * 32)
    assert template.status_code == 201
    assert len(fake.messages(ADA)) == 2


async def test_media_lie_behind_credentials_and_a_redirect_to_another_host(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    fake.media_host.lag = 1
    sent = await fake.inbound("look", media=[("image/jpeg", b"jpeg")])
    url = dict(sent.form)["MediaUrl0"]
    assert (await http.get(url)).status_code == 404
    moved = await http.get(url)
    assert moved.status_code == 302
    target = moved.headers["location"]
    assert not target.startswith(fake.url)
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as plain:
        assert (await plain.get(url)).status_code == 401
        got = await plain.get(target)
    assert (got.content, got.headers["content-type"]) == (b"jpeg", "image/jpeg")
    assert fake.violations == []
    await http.get(target)
    assert fake.violations == ["media host: credentials were sent along with a redirect"]


async def test_typing_and_the_senders_webhooks_can_be_set(
    fake: FakeTwilio, twilio: TwilioClient, http: httpx.AsyncClient
) -> None:
    sid = "SM" + "1" * 32
    await twilio.do(
        lambda rest: rest.messaging.v2.typing_indicator.create(channel="whatsapp", message_id=sid)
    )
    assert fake.typing == [sid]
    senders = await twilio.do(lambda rest: rest.messaging.v2.channels_senders.list("whatsapp"))
    assert [s.sender_id for s in senders] == [fake.sender]
    hooks = {"webhook": {"callback_url": "https://bot.example.test/whatsapp/webhook"}}
    answer = await http.post(f"{fake.url}/v2/Channels/Senders/{senders[0].sid}", json=hooks)
    assert answer.status_code == 202
    assert fake.webhook_url == "https://bot.example.test/whatsapp/webhook"


async def test_an_unknown_address_of_the_api_is_a_violation(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    assert (await http.get(f"{fake.url}/v1/Services")).json()["code"] == 20404
    assert fake.violations == ["v1/Services: not known to this fake"]


async def test_an_answer_that_is_held_comes_when_it_is_released(
    fake: FakeTwilio, http: httpx.AsyncClient
) -> None:
    held = fake.fail("create", faults.held_after_storing(), chat=ADA)
    sending = asyncio.create_task(create(http, fake))
    await fake.wait_for(lambda: fake.texts(ADA))
    assert (await create(http, fake, To=GRACE)).status_code == 201
    held.release()
    assert (await sending).status_code == 201
