"""Updates reach a bot as the real server gives them: by polling, or by webhook until a 2xx."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from telegram.error import Conflict

from tests.fakes.clients import http as plain_http
from tests.fakes.clients import telegram_bot, telegram_http
from tests.fakes.receiver import Receiver, Reply
from tests.fakes.recording import Json
from tests.fakes.telegram import FakeTelegram
from tests.fakes.updates import DATE, Person

ADA = 700_100_209


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(now=lambda: DATE + 10.0) as running:
        yield running


@pytest_asyncio.fixture
async def http(fake: FakeTelegram) -> AsyncIterator[httpx.AsyncClient]:
    async with telegram_http(fake) as client:
        yield client


async def poll(http: httpx.AsyncClient, **params: object) -> list[str]:
    answer = await http.post("getUpdates", json=params)
    assert answer.status_code == 200, answer.text
    return [u["message"]["text"] for u in answer.json()["result"]]


def texts(receiver: Receiver) -> list[str]:
    return [json.loads(got.body)["message"]["text"] for got in receiver.got]


async def hook(http: httpx.AsyncClient, url: str, **params: object) -> None:
    answer = await http.post("setWebhook", json={"url": url, **params})
    assert answer.status_code == 200, answer.text


async def test_updates_come_again_until_a_higher_offset_confirms_them(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    ada = Person(ADA)
    first = fake.enqueue(ada.text("one"))
    fake.enqueue(ada.text("two"))
    assert first is not None
    assert await poll(http) == ["one", "two"]
    assert await poll(http, offset=first) == ["one", "two"]
    assert await poll(http, offset=first, limit=1) == ["one"]
    assert await poll(http, offset=first + 1) == ["two"]
    assert await poll(http) == ["two"]
    assert await poll(http, offset=first + 2) == []
    assert fake.main.queue.pending == []


async def test_a_negative_offset_forgets_what_is_older(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    ada = Person(ADA)
    for word in ("one", "two", "three"):
        fake.enqueue(ada.text(word))
    assert await poll(http, offset=-1) == ["three"]
    assert await poll(http) == ["three"]


async def test_a_long_poll_returns_when_something_comes(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    polling = asyncio.create_task(poll(http, timeout=30))
    await fake.wait_for(lambda: fake.main.poller)
    fake.enqueue(Person(ADA).text("hi"))
    assert await polling == ["hi"]


async def test_of_two_pollers_the_older_gets_a_conflict(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    async with telegram_bot(fake) as bot:
        older = asyncio.create_task(bot.get_updates(timeout=30, read_timeout=20))
        await fake.wait_for(lambda: fake.main.poller)
        newer = asyncio.create_task(poll(http, timeout=30))
        with pytest.raises(Conflict):
            await older
        fake.enqueue(Person(ADA).text("hi"))
        assert await newer == ["hi"]


async def test_a_poller_that_hung_up_is_in_nobodys_way(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    async with telegram_http(fake) as dying:
        polling = asyncio.create_task(dying.post("getUpdates", json={"timeout": 30}))
        await fake.wait_for(lambda: fake.main.poller)
        polling.cancel()
    await fake.wait_for(lambda: fake.calls[0].status == 499)
    assert fake.main.poller is None
    fake.enqueue(Person(ADA).text("hi"))
    assert await poll(http, timeout=30) == ["hi"]


async def test_polling_beside_a_webhook_is_a_conflict(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    waiting = asyncio.create_task(http.post("getUpdates", json={"timeout": 30}))
    await fake.wait_for(lambda: fake.main.poller)
    async with Receiver() as receiver:
        await hook(http, receiver.url)
        assert (await waiting).status_code == 409
        assert (await http.post("getUpdates")).status_code == 409
        assert (await http.post("deleteWebhook")).status_code == 200
    assert await poll(http) == []


async def test_kinds_that_are_not_allowed_are_never_queued_and_the_choice_is_kept(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    ada = Person(ADA)
    assert fake.enqueue(ada.update("message_reaction", {"chat": ada.chat})) is None
    await poll(http, allowed_updates=["message"])
    await poll(http)
    assert fake.enqueue(ada.edit(ada.text("a"), "b")) is None
    assert fake.enqueue(ada.text("hi")) is not None


async def test_a_webhook_gets_the_update_with_its_secret(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    async with Receiver() as receiver:
        await hook(http, f"{receiver.url}/telegram/webhook", secret_token="s3cret")
        fake.enqueue(Person(ADA).text("hi"))
        await fake.wait_for(lambda: not fake.main.queue.pending)
    assert receiver.got[0].target == "/telegram/webhook"
    assert receiver.got[0].headers["x-telegram-bot-api-secret-token"] == "s3cret"
    assert receiver.got[0].headers["content-type"] == "application/json"
    assert texts(receiver) == ["hi"]


async def test_an_update_comes_again_until_2xx_and_nothing_of_its_chat_overtakes_it(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    ada = Person(ADA)
    fake.enqueue(ada.text("one"))
    fake.enqueue(ada.text("two"))
    async with Receiver((Reply(500), Reply(302), Reply(404), Reply(204))) as receiver:
        await hook(http, receiver.url)
        await fake.wait_for(lambda: not fake.main.queue.pending)
    assert texts(receiver) == ["one", "one", "one", "one", "two"]
    info = (await http.post("getWebhookInfo")).json()["result"]
    assert info["last_error_message"] == "Wrong response from the webhook: 404"
    assert info["pending_update_count"] == 0


async def test_a_chat_that_is_stuck_does_not_hold_up_another(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    gate = asyncio.Event()
    async with Receiver((Reply(gate=gate),)) as receiver:
        await hook(http, receiver.url)
        fake.enqueue(Person(ADA).text("stuck"))
        await receiver.arrived()
        fake.enqueue(Person(ADA + 1).text("free"))
        await fake.wait_for(lambda: len(fake.main.queue.pending) == 1)
        assert texts(receiver) == ["stuck", "free"]
        gate.set()
        await fake.wait_for(lambda: not fake.main.queue.pending)


async def test_retry_after_replaces_the_wait_between_two_attempts(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    fake.main.webhook.scale = 1.0
    busy = Reply(503, headers=(("Retry-After", "30"),))
    async with Receiver((busy,)) as receiver:
        await hook(http, receiver.url)
        fake.enqueue(Person(ADA).text("hi"))
        await fake.wait_for(lambda: fake.main.webhook.waits == [30.0])
        fake.main.webhook.hurry()
        await fake.wait_for(lambda: not fake.main.queue.pending)
    assert texts(receiver) == ["hi", "hi"]


async def test_the_waits_are_none_then_two_four_eight_seconds(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    async with Receiver(tuple(Reply(500) for _ in range(5))) as receiver:
        await hook(http, receiver.url)
        fake.enqueue(Person(ADA).text("hi"))
        await fake.wait_for(lambda: not fake.main.queue.pending)
    assert fake.main.webhook.waits == [0.0, 2.0, 4.0, 8.0, 16.0]


async def test_an_update_that_would_be_older_than_a_day_is_dropped_silently(
    http: httpx.AsyncClient, fake: FakeTelegram
) -> None:
    async with Receiver((Reply(500), Reply(500))) as receiver:
        await hook(http, receiver.url)
        fake.enqueue(Person(ADA, at=DATE - 86_389).text("old"))
        fake.enqueue(Person(ADA).text("new"))
        await fake.wait_for(lambda: not fake.main.queue.pending)
        assert texts(receiver) == ["old", "old", "new"]
    assert [u["message"]["text"] for u in fake.main.queue.expired] == ["old"]


async def test_a_public_address_is_reached_where_the_test_says(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    async with Receiver() as receiver:
        fake.reach["https://bot.example.test"] = receiver.url
        await hook(http, "https://bot.example.test/telegram/webhook")
        fake.enqueue(Person(ADA).text("hi"))
        await fake.wait_for(lambda: not fake.main.queue.pending)
    assert receiver.got[0].target == "/telegram/webhook"


async def test_a_public_address_that_nobody_mapped_is_not_called(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    await hook(http, "https://bot.example.test/")
    fake.enqueue(Person(ADA).text("hi"))
    await fake.wait_for(lambda: fake.main.webhook.deliveries)
    assert fake.main.webhook.deliveries[0].status is None


async def test_what_was_queued_for_polling_goes_to_the_webhook_and_back(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    fake.enqueue(Person(ADA).text("kept"))
    async with Receiver((Reply(503, headers=(("Retry-After", "3600"),)),)) as receiver:
        await hook(http, receiver.url)
        await fake.wait_for(lambda: fake.main.webhook.deliveries)
    await http.post("deleteWebhook")
    assert await poll(http) == ["kept"]


async def test_one_update_can_be_delivered_many_times_at_once_to_several_places(
    fake: FakeTelegram,
) -> None:
    update: Json = Person(ADA).text("hi")
    async with Receiver() as one, Receiver((Reply(403),)) as two:
        done = await fake.deliver(update, one.url, two.url, times=10, secret="s")
    assert len(one.got) == len(two.got) == 10
    assert sorted(d.status or 0 for d in done) == [200] * 19 + [403]
    assert {g.headers["x-telegram-bot-api-secret-token"] for g in one.got} == {"s"}


@pytest.mark.parametrize(
    "params",
    [{"url": "http://bot.example.test"}, {"url": "https://x.test", "secret_token": "no spaces!"}],
)
async def test_a_webhook_that_the_real_one_refuses_is_refused(
    http: httpx.AsyncClient, params: Json
) -> None:
    assert (await http.post("setWebhook", json=params)).status_code == 400


async def test_waiting_for_what_never_comes_fails_with_what_was_seen(fake: FakeTelegram) -> None:
    async with plain_http(fake.url) as client:
        await client.post(f"/bot{fake.main.token}/getMe")
    with pytest.raises(AssertionError, match="1 getMe"):
        await fake.wait_for(lambda: fake.messages(ADA), timeout=0.01)
