"""The fake Graph API behaves and misbehaves like the real one, as a plain client sees it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.clocks import Ticker
from tests.fakes.clients import http, patience
from tests.fakes.faults import Fault
from tests.fakes.meta import FakeMeta, faults
from tests.fakes.meta.book import Book
from tests.fakes.meta.checks import description, send_problems, shape_problems
from tests.fakes.meta.errors import ERRORS, GraphRefusal
from tests.fakes.meta.server import (
    APP,
    NUMBER,
    OTHER_NUMBER,
    OTHER_TOKEN,
    SECRET,
    TOKEN,
    WABA,
    StatusPlan,
)
from tests.fakes.windows import Window

ADA = "+15550100181"
BOB = "+15550100182"
NOON = 1_800_000_000.0
DESCRIBED = pytest.mark.skipif(description() is None, reason="no description of the API here")


@pytest.fixture
def now() -> Ticker:
    return Ticker(NOON)


@pytest_asyncio.fixture
async def fake(now: Ticker) -> AsyncIterator[FakeMeta]:
    async with FakeMeta(now=now) as running:
        running.plan = lambda _message: StatusPlan.nothing()
        yield running


@pytest_asyncio.fixture
async def graph(fake: FakeMeta) -> AsyncIterator[httpx.AsyncClient]:
    async with http(f"{fake.url}/v26.0/") as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield client


def text(to: str = ADA, body: str = "hello", tag: str = "ab1.7.1") -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "type": "text",
        "text": {"body": body},
        "biz_opaque_callback_data": tag,
    }


async def send(graph: httpx.AsyncClient, body: dict[str, Any], number: str = NUMBER) -> Any:
    answer = await graph.post(f"{number}/messages", json=body)
    return answer.status_code, answer.json()


def code_of(answer: httpx.Response) -> int:
    assert shape_problems("graph_error", answer.json()) == []
    return int(answer.json()["error"]["code"])


async def test_a_message_that_is_taken_is_kept_with_its_tag_and_has_a_name_with_the_digits(
    fake: FakeMeta, graph: httpx.AsyncClient
) -> None:
    status, answer = await send(graph, text())
    assert status == 200
    assert shape_problems("send_ok", answer) == []
    [message] = fake.messages(ADA)
    assert (message.tag, message.text, message.number) == ("ab1.7.1", "hello", NUMBER)
    assert answer["messages"][0]["id"] == message.wamid
    named = base64.b64decode(message.wamid.removeprefix("wamid."))
    assert b"15550100181\x15\x02\x00\x11" in named
    assert fake.violations == []


def test_the_names_are_those_of_metas_own_samples() -> None:
    book = Book()
    assert book.wamid("15550100181") == "wamid.HBgLMTU1NTAxMDAxODEVAgASGBIwMDAwMDAwMDAwMDAwMDAwMDEA"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"messaging_product": "sms"}, 100),
        ({"to": ""}, 131008),
        ({"type": "hologram"}, 131051),
        ({"text": {"body": ""}}, 131008),
        ({"text": {"body": "x" * 4097}}, 100),
        ({"biz_opaque_callback_data": "x" * 513}, 100),
        ({"type": "image", "image": {"id": "1"}}, 100),
        ({"type": "interactive", "interactive": {"type": "button", "body": {"text": "?"}}}, 131009),
    ],
)
async def test_what_the_real_one_refuses_is_refused(
    fake: FakeMeta, graph: httpx.AsyncClient, change: dict[str, Any], code: int
) -> None:
    answer = await graph.post(f"{NUMBER}/messages", json=text() | change)
    assert (code_of(answer), fake.messages()) == (code, [])


@pytest.mark.parametrize(
    "change",
    [
        {"to": "15550100181"},
        {"to": "+1 555"},
        {"recipient": None},
        {"recipient": ""},
        {"biz_opaque_callback_data": ""},
    ],
)
async def test_what_the_real_one_takes_amiss_is_noted(
    fake: FakeMeta, graph: httpx.AsyncClient, change: dict[str, Any]
) -> None:
    assert (await send(graph, text() | change))[0] == 200
    assert fake.violations


@DESCRIBED
@pytest.mark.parametrize(
    "broken",
    [
        {"type": "image", "image": {"id": "1", "link": "https://a.example/b.jpg"}},
        {"type": "template", "template": {"name": "hello"}},
        {"type": "reaction", "reaction": {"message_id": "wamid.x"}},
        {"type": "location", "location": {"latitude": 1}},
    ],
)
def test_a_request_that_the_description_does_not_allow_is_a_violation(
    broken: dict[str, Any],
) -> None:
    whole = text() | broken
    del whole["text"]
    assert send_problems(whole)
    assert send_problems(text()) == []


async def test_a_token_acts_for_its_own_number_only(
    fake: FakeMeta, graph: httpx.AsyncClient
) -> None:
    assert code_of(await graph.post(f"{OTHER_NUMBER}/messages", json=text())) == 100
    graph.headers["Authorization"] = f"Bearer {OTHER_TOKEN}"
    assert (await send(graph, text(), OTHER_NUMBER))[0] == 200
    fake.numbers[OTHER_NUMBER].token = "another"
    answer = await graph.post(f"{OTHER_NUMBER}/messages", json=text())
    assert (answer.status_code, code_of(answer)) == (401, 190)


@pytest.mark.parametrize(
    ("fault", "stored"),
    [
        (faults.hang_after_storing(), 1),
        (faults.drop_after_storing(), 1),
        (faults.cut_answer(), 1),
        (faults.hang_before_storing(), 0),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
async def test_a_message_may_be_out_though_nobody_says_so(
    fake: FakeMeta, graph: httpx.AsyncClient, fault: Fault, stored: int
) -> None:
    fake.fail("send", fault)
    with pytest.raises(httpx.TransportError):
        await graph.post(f"{NUMBER}/messages", json=text(), timeout=patience(fault))
    assert len(fake.messages(ADA)) == stored


@pytest.mark.parametrize(
    ("fault", "status", "stored"),
    [
        (faults.server_error(), 500, 1),
        (faults.server_error(stores=False), 500, 0),
        (faults.bad_gateway(), 502, 1),
        (faults.without_id(), 200, 1),
        (faults.not_json(), 200, 1),
        (faults.refused(131056, status=429), 429, 0),
        (faults.busy_account(), 400, 0),
        (faults.words_only(), 400, 0),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
async def test_an_answer_says_little_of_what_was_done(
    fake: FakeMeta, graph: httpx.AsyncClient, fault: Fault, status: int, stored: int
) -> None:
    fake.fail("send", fault, chat=ADA)
    assert (await graph.post(f"{NUMBER}/messages", json=text())).status_code == status
    assert len(fake.messages()) == stored
    assert (await send(graph, text(BOB)))[0] == 200


async def test_one_person_is_sent_few_messages_at_once_and_the_limit_names_no_wait(
    fake: FakeMeta, graph: httpx.AsyncClient, now: Ticker
) -> None:
    fake.rates.enforce, fake.rates.burst = True, 3
    sent = [(await send(graph, text(tag=f"t{n}")))[0] for n in range(4)]
    assert sent == [200, 200, 200, 400]
    assert (await send(graph, text(BOB)))[0] == 200
    now.at += 6
    refused = [await graph.post(f"{NUMBER}/messages", json=text()) for _ in range(2)]
    assert [answer.status_code for answer in refused] == [200, 400]
    assert code_of(refused[1]) == 131056
    assert "retry-after" not in refused[1].headers


async def test_one_number_sends_so_many_a_second(
    fake: FakeMeta, graph: httpx.AsyncClient, now: Ticker
) -> None:
    fake.rates.enforce, fake.rates.per_second = True, 2
    answers = [await graph.post(f"{NUMBER}/messages", json=text(f"{ADA}{n}")) for n in range(3)]
    assert code_of(answers[2]) == 130429
    now.at += 1
    assert (await send(graph, text()))[0] == 200


@pytest.mark.parametrize("mode", [Window.SYNC, Window.CALLBACK])
async def test_free_text_after_a_day_fails_at_once_or_later_and_a_template_does_not(
    fake: FakeMeta, graph: httpx.AsyncClient, now: Ticker, mode: Window
) -> None:
    fake.windows.mode = mode
    await fake.person_writes("hi")
    assert (await send(graph, text()))[0] == 200
    now.at += 86_400
    status, _ = await send(graph, text())
    assert status == (400 if mode is Window.SYNC else 200)
    await fake.wait_for(lambda: len(fake.messages(ADA)) == 1)
    template = {"name": "again", "language": {"code": "en"}}
    body = text() | {"type": "template", "template": template}
    del body["text"]
    assert (await send(graph, body))[0] == 200
    assert fake.violations == []


async def test_a_read_mark_knows_what_was_written(fake: FakeMeta, graph: httpx.AsyncClient) -> None:
    wrote = await fake.person_writes("hi")
    wamid = json.loads(wrote.body)["entry"][0]["changes"][0]["value"]["messages"][0]["id"]
    mark = {"messaging_product": "whatsapp", "status": "read", "message_id": wamid}
    typing = {"typing_indicator": {"type": "text"}}
    assert (await send(graph, mark | typing)) == (200, {"success": True})
    assert (fake.read, fake.typing) == ([wamid], [wamid])
    answer = await graph.post(f"{NUMBER}/messages", json=mark | {"message_id": "wamid.gone"})
    assert code_of(answer) == 100
    assert fake.violations == []


async def test_a_file_is_fetched_with_the_token_from_a_link_that_lives_for_minutes(
    fake: FakeMeta, graph: httpx.AsyncClient, now: Ticker
) -> None:
    media = fake.put_media(b"jpeg", "image/jpeg")
    told = (await graph.get(media.id, params={"phone_number_id": NUMBER})).json()
    assert shape_problems("media_info", told) == []
    assert (await graph.get(told["url"])).content == b"jpeg"
    async with http("") as stranger:
        assert (await stranger.get(told["url"])).status_code == 401
    now.at += 301
    assert (await graph.get(told["url"])).status_code == 404
    fresh = (await graph.get(media.id)).json()["url"]
    fake.media_host.lag = 1
    assert [(await graph.get(fresh)).status_code for _ in range(2)] == [404, 200]


async def test_a_file_that_we_send_is_uploaded_first(
    fake: FakeMeta, graph: httpx.AsyncClient
) -> None:
    form = {"messaging_product": "whatsapp", "type": "image/jpeg"}
    file = {"file": ("cat.jpg", b"jpeg", "image/jpeg")}
    made = (await graph.post(f"{NUMBER}/media", data=form, files=file)).json()["id"]
    body = text() | {"type": "image", "image": {"id": made, "caption": "A cat"}}
    del body["text"]
    assert (await send(graph, body))[0] == 200
    assert fake.texts() == ["A cat"]
    refused = {"file": ("x", b"", "image/jpeg")}
    answer = await graph.post(f"{NUMBER}/media", data=form, files=refused)
    assert code_of(answer) == 131053
    assert fake.violations == []


async def test_the_operator_is_told_of_number_token_and_subscription(
    fake: FakeMeta, graph: httpx.AsyncClient
) -> None:
    fields = "display_phone_number,quality_rating,whatsapp_business_manager_messaging_limit"
    number = (await graph.get(NUMBER, params={"fields": fields})).json()
    assert number["quality_rating"] == "GREEN"
    assert "status" not in number
    token = (await graph.get("debug_token", params={"input_token": TOKEN})).json()["data"]
    assert (token["is_valid"], token["expires_at"]) == (True, 0)
    assert token["granular_scopes"][0]["target_ids"] == [WABA]
    assert len((await graph.get(f"{WABA}/subscribed_apps")).json()["data"]) == 1
    assert (await graph.delete(f"{WABA}/subscribed_apps")).json() == {"success": True}
    assert (await graph.get(f"{WABA}/subscribed_apps")).json()["data"] == []
    assert len((await graph.get(f"{WABA}/phone_numbers")).json()["data"]) == 2
    assert code_of(await graph.get(f"{APP}/subscriptions")) == 190
    graph.headers["Authorization"] = f"Bearer {APP}|{SECRET}"
    assert (await graph.get(f"{APP}/subscriptions")).json() == {"data": []}


async def test_what_nobody_described_is_a_violation(
    fake: FakeMeta, graph: httpx.AsyncClient
) -> None:
    assert code_of(await graph.get(f"{NUMBER}/dreams")) == 100
    assert len(fake.violations) == 1


@DESCRIBED
@pytest.mark.parametrize("code", ERRORS)
def test_every_error_of_the_fake_has_the_described_form(code: int) -> None:
    answer = GraphRefusal(code, subcode=463).answer()
    assert shape_problems("graph_error", json.loads(answer.body)) == []
