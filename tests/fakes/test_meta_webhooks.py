"""Meta's webhooks reach us signed, again until 200, in any order, many in one POST."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio

from tests.clocks import ShiftedClock
from tests.fakes.clients import http
from tests.fakes.meta import FakeMeta, payloads
from tests.fakes.meta.checks import shape_problems
from tests.fakes.meta.courier import Delivery, signature
from tests.fakes.meta.server import APP, NUMBER, OTHER_NUMBER, SECRET, TOKEN, WABA, StatusPlan
from tests.fakes.receiver import Receiver, Reply

PUBLIC = "https://bot.example.test"
HOOK = f"{PUBLIC}/whatsapp-cloud/webhook"
ADA = "+15550100181"
BROKEN = Reply(500)


@pytest_asyncio.fixture
async def clock() -> ShiftedClock:
    stopped = ShiftedClock()
    stopped.stop()
    return stopped


@pytest_asyncio.fixture
async def fake(clock: ShiftedClock) -> AsyncIterator[FakeMeta]:
    async with FakeMeta(now=clock.wall, sleep=clock.sleep) as running:
        running.webhook_url = HOOK
        yield running


@pytest_asyncio.fixture
async def receiver(fake: FakeMeta) -> AsyncIterator[Receiver]:
    async with Receiver() as running:
        fake.reach[PUBLIC] = running.url
        yield running


@pytest_asyncio.fixture
async def graph(fake: FakeMeta) -> AsyncIterator[httpx.AsyncClient]:
    async with http(f"{fake.url}/v26.0/") as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield client


def values(receiver: Receiver) -> list[dict[str, Any]]:
    bodies = [json.loads(got.body) for got in receiver.got]
    return [c["value"] for b in bodies for e in b["entry"] for c in e["changes"]]


def statuses(receiver: Receiver) -> list[str]:
    return [status["status"] for value in values(receiver) for status in value["statuses"]]


async def answered(fake: FakeMeta, delivery: Delivery, times: int) -> None:
    await fake.wait_for(lambda: len(delivery.answers) >= times)


async def send(graph: httpx.AsyncClient, tag: str = "ab1.7.1") -> str:
    body = {
        "messaging_product": "whatsapp",
        "to": ADA,
        "type": "text",
        "text": {"body": "hello"},
        "biz_opaque_callback_data": tag,
    }
    return str((await graph.post(f"{NUMBER}/messages", json=body)).json()["messages"][0]["id"])


def test_b142_the_signature_is_the_one_of_the_case() -> None:
    body = payloads.raw(
        payloads.envelope(
            payloads.change(
                contacts=[payloads.contact("15550100184")],
                messages=[
                    payloads.message(
                        "wamid.HBgLMTU1NTAxMDAxODQVAgASGBIwMDAwMDAwMDAwMDAwMDAwMDYA",
                        1_800_003_600,
                        "text",
                        {"body": "old secret"},
                        from_="15550100184",
                    )
                ],
            )
        )
    )
    made = "e669a521d1901b77a48e877d5fe8ac5b8de34227f3cfa73d1c0aec8ef92f619c"
    assert signature(body, "s3cret-old") == f"sha256={made}"
    assert shape_problems("webhook", json.loads(body)) == []


async def test_a_message_comes_signed_over_bytes_that_nobody_else_would_write(
    fake: FakeMeta, receiver: Receiver
) -> None:
    delivery = await fake.person_writes("Grüße @ https://a.example/b")
    [got] = receiver.got
    assert got.headers["x-hub-signature-256"] == signature(got.body, SECRET)
    assert b"Gr\\u00fc\\u00dfe \\u0040 https:\\/\\/a.example\\/b" in got.body
    assert delivery.acknowledged
    [value] = values(receiver)
    assert shape_problems("messages_value", value) == []
    assert value["messages"][0]["text"]["body"] == "Grüße @ https://a.example/b"


async def test_only_200_ends_the_repeats_and_they_come_ever_later(
    fake: FakeMeta, clock: ShiftedClock
) -> None:
    async with Receiver((BROKEN, Reply(202), BROKEN, Reply(200))) as receiver:
        fake.reach[PUBLIC] = receiver.url
        delivery = await fake.person_writes("hi")
        for passed, answers in ((9.9, 1), (0.2, 2), (19.9, 2), (0.2, 3), (40.1, 4), (9e5, 4)):
            clock.advance(passed)
            await answered(fake, delivery, answers)
            assert len(delivery.answers) == answers
        assert len({got.body for got in receiver.got}) == 1
        assert delivery.acknowledged


async def test_an_endpoint_that_is_away_is_tried_again(fake: FakeMeta, clock: ShiftedClock) -> None:
    delivery = await fake.person_writes("hi")
    assert delivery.answers == [None]
    async with Receiver() as receiver:
        fake.reach[PUBLIC] = receiver.url
        clock.advance(11)
        await receiver.arrived()


async def test_the_same_bytes_may_come_many_times_at_once(
    fake: FakeMeta, receiver: Receiver
) -> None:
    delivery = await fake.person_writes("hi")
    await fake.courier.again(delivery, times=5)
    assert len({got.body for got in receiver.got}) == 1
    assert len(receiver.got) == 6


async def test_a_status_carries_our_tag_unless_the_plan_leaves_it_out(
    fake: FakeMeta, receiver: Receiver, graph: httpx.AsyncClient
) -> None:
    await send(graph)
    await receiver.arrived(2)
    fake.plan = lambda _message: StatusPlan(("read",), tagged=False)
    await send(graph)
    await receiver.arrived(3)
    assert statuses(receiver) == ["sent", "delivered", "read"]
    tags = [s.get("biz_opaque_callback_data") for v in values(receiver) for s in v["statuses"]]
    assert tags == ["ab1.7.1", "ab1.7.1", None]
    assert all(shape_problems("messages_value", value) == [] for value in values(receiver))


async def test_statuses_may_come_before_the_answer_and_all_in_one_post(
    fake: FakeMeta, receiver: Receiver, graph: httpx.AsyncClient
) -> None:
    gate = asyncio.Event()
    told = StatusPlan(("read", "sent", "sent"), before_answer=True, together=True)
    fake.plan = lambda _message: told
    async with Receiver((Reply(gate=gate),)) as slow:
        fake.reach[PUBLIC] = slow.url
        sending = asyncio.create_task(send(graph))
        await slow.arrived()
        assert not sending.done()
        gate.set()
        await sending
        assert statuses(slow) == ["read", "sent", "sent"]
    assert receiver.got == []


async def test_a_message_that_was_taken_may_fail_later_with_a_code(
    fake: FakeMeta, receiver: Receiver, graph: httpx.AsyncClient
) -> None:
    fake.plan = lambda _message: StatusPlan.failing(131026)
    await send(graph)
    await receiver.arrived()
    [status] = values(receiver)[0]["statuses"]
    assert (status["status"], status["errors"][0]["code"]) == ("failed", 131026)
    assert fake.messages() == []


async def test_a_callback_is_set_only_where_the_challenge_is_answered(
    fake: FakeMeta, graph: httpx.AsyncClient
) -> None:
    async with Receiver((Reply(200, "1158201444"), Reply(403), Reply(200, "1158201444"))) as ours:
        fake.reach[PUBLIC] = ours.url
        mine = {"override_callback_uri": f"{PUBLIC}/mine", "verify_token": "word"}
        assert (await graph.post(f"{WABA}/subscribed_apps", json=mine)).json() == {"success": True}
        assert "hub.verify_token=word" in ours.got[0].target
        assert fake.callback_of(OTHER_NUMBER) == f"{PUBLIC}/mine"
        own = {"webhook_configuration": mine | {"override_callback_uri": f"{PUBLIC}/own"}}
        assert (await graph.post(NUMBER, json=own)).status_code == 400
        assert (await graph.post(NUMBER, json=own)).status_code == 200
        assert fake.callback_of(NUMBER) == f"{PUBLIC}/own"
        nothing = {"webhook_configuration": {"override_callback_uri": ""}}
        assert (await graph.post(NUMBER, json=nothing)).status_code == 200
        assert fake.callback_of(NUMBER) == f"{PUBLIC}/mine"


async def test_the_first_subscription_comes_plain(fake: FakeMeta, graph: httpx.AsyncClient) -> None:
    del fake.business.subscribed[APP]
    mine = {"override_callback_uri": f"{PUBLIC}/mine", "verify_token": "word"}
    assert (await graph.post(f"{WABA}/subscribed_apps", json=mine)).status_code == 400
    assert (await graph.post(f"{WABA}/subscribed_apps", json={})).status_code == 200
