"""Bodies of all sizes and shapes that Meta signed: each is acknowledged, and nothing is lost."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter

import httpx
import pytest

from bot.domain.reply import Reply
from bot.domain.turn import Turn
from tests.fakes.meta import payloads
from tests.fakes.meta.courier import SIGNATURE, signature
from tests.fakes.meta.server import NUMBER, SECRET, StatusPlan
from tests.fakes.recording import Json
from tests.kit.agents import repeats
from tests.kit.whatsapp_cloud import ALONE, parts, taken
from tests.world import World

RECORDED = "SELECT count(*) FROM inbound"


async def silent(turn: Turn) -> Reply | str | None:
    assert turn.text
    return None


def text(n: int, words: str, person: str = payloads.PERSON) -> Json:
    return payloads.message(f"wamid.{n}", 1_800_000_000 + n, "text", {"body": words}, from_=person)


def posted(*messages: Json) -> Json:
    return payloads.envelope(payloads.change(messages=messages))


def body(*messages: Json, number: str = NUMBER) -> bytes:
    return payloads.raw(payloads.envelope(payloads.change(messages=messages, number=number)))


async def test_a_body_of_three_megabytes_is_taken_whole_and_stored_once(world: World) -> None:
    await world.start(agent=silent, **ALONE)
    people = [f"1555010{n:04}" for n in range(60)]
    raw = body(*(text(n, "é" * 2_000, people[n % 60]) for n in range(240)))
    assert len(raw) > 2_800_000
    for _ in range(2):
        assert (await world.meta.deliver(raw)).acknowledged
    await world.settled()
    assert await world.rows(RECORDED) == [(240,)]
    ((stored,),) = await world.rows("SELECT sum(length(payload)) FROM inbound")
    assert stored < 2 * len(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"not json",
        b"\xff\xfe\x00",
        b"\x00",
        b"[" * 200_000,
        b"1" * 10_000,
        b'{"object":"whatsapp_business_account","entry":[null]}',
        body(text(1, "hi")).replace(b'"text":{', b'"text":7,"x":{'),
        body(text(1, "hi"), number="1999"),
    ],
    ids=lambda raw: repr(raw[:12]),
)
async def test_a_body_that_tells_nothing_is_acknowledged_and_kept_once(
    world: World, raw: bytes
) -> None:
    await world.start(agent=repeats, **ALONE)
    for _ in range(2):
        assert (await world.meta.deliver(raw)).acknowledged
    await world.settled()
    assert await world.rows("SELECT count(*) FROM payloads WHERE error IS NOT NULL") == [(1,)]
    assert await world.rows(RECORDED) == [(0,)]


async def test_marks_that_no_database_stores_cost_nobody_the_answer(world: World) -> None:
    await world.start(agent=repeats, **ALONE)
    assert (await world.meta.deliver(posted(text(1, "a\x00b\ud83dc")))).acknowledged
    await world.settled()
    assert world.meta.texts() == ["a\ufffdb\ufffdc"]


async def test_deliveries_that_overlap_in_any_order_make_one_answer_each(world: World) -> None:
    await world.start(agent=repeats, **ALONE)
    one, two, three = (text(n, f"words {n}") for n in range(3))
    orders = [three], [one, two, three], [two, one], [one], [three, one]
    done = await asyncio.gather(*(world.meta.deliver(posted(*some)) for some in orders * 2))
    assert all(delivery.acknowledged for delivery in done)
    await world.settled()
    assert await world.rows(RECORDED) == [(3,)]
    said = Counter(line for told in world.meta.texts() for line in told.splitlines())
    assert said == {"words 0": 1, "words 1": 1, "words 2": 1}


async def test_who_writes_in_one_body_is_answered_in_the_order_of_the_words(world: World) -> None:
    await world.start(agent=repeats, burst="each", **ALONE)
    raw = posted(*(text(n, f"{n}") for n in (4, 2, 0, 3, 1)))
    assert (await world.meta.deliver(raw)).acknowledged
    await world.settled()
    assert world.meta.texts() == ["0", "1", "2", "3", "4"]


async def test_a_message_of_the_future_opens_the_window_for_no_longer_than_one_of_now(
    world: World,
) -> None:
    await world.start(agent=repeats, **ALONE)
    assert (await world.meta.deliver(posted(text(200_000_000_000, "hi")))).acknowledged
    await world.settled()
    assert world.meta.texts() == ["hi"]
    ((late,),) = await world.rows("SELECT last_inbound_at <= created_at + 60 FROM chats")
    assert late


async def test_a_file_that_a_person_sends_is_handed_to_the_agent(world: World) -> None:
    async def agent(turn: Turn) -> str:
        (file,) = turn.messages[0].attachments
        return f"{file.info.mime}: {(await file.read()).decode()}"

    await world.start(agent=agent, **ALONE)
    media = world.meta.put_media(b"words in a file", "text/plain")
    raw = {"id": media.id, "mime_type": media.mime, "sha256": media.sha256_base64}
    await world.meta.person_writes(kind="document", content=raw)
    await world.settled()
    assert world.meta.texts() == ["text/plain: words in a file"]


async def test_b144_a_late_failure_of_what_was_read_is_recorded_once_and_sends_nothing(
    world: World,
) -> None:
    await world.start(agent=repeats, **ALONE)
    world.meta.plan = lambda _message: StatusPlan.nothing()
    await world.meta.person_writes("hi")
    (sent,) = await taken(world, 1)
    await world.meta.report(sent.wamid, "read")
    await world.settled()
    for _ in range(2):
        await world.meta.report(sent.wamid, "failed", 131026)
    noted = await world.rows("SELECT run IS NOT NULL, why FROM events WHERE what LIKE 'refused%'")
    assert len(noted) == 1
    assert noted[0][0]
    assert "131026" in noted[0][1]
    assert await parts(world) == [("read", 1, "")]
    assert len(world.meta.book.all) == 1


async def test_a_compressed_body_is_refused_and_not_acknowledged_unread(world: World) -> None:
    running = await world.start(agent=silent, **ALONE)
    raw = body(text(1, "hello"))
    packed = gzip.compress(raw)
    for coding, sent, status in (("gzip", packed, 415), ("GZIP", raw, 415), ("identity", raw, 200)):
        signed = {"Content-Encoding": coding, SIGNATURE: signature(sent, SECRET)}
        url = f"{running.url}/whatsapp-cloud/webhook"
        answer = await running.client.post(url, content=sent, headers=signed)
        assert answer.status_code == status
    await world.settled()
    assert await world.rows(RECORDED) == [(1,)]
    assert await world.rows("SELECT count(*) FROM payloads") == [(0,)]


async def test_a_body_that_drips_is_given_up_and_holds_up_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await world.start(agent=silent, **ALONE)
    monkeypatch.setattr("bot.http.BODY_WITHIN", 0.2)
    place = httpx.URL(running.url)
    reader, writer = await asyncio.open_connection(place.host, place.port)
    head = "POST /whatsapp-cloud/webhook HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n{"
    writer.write(head.encode())
    assert (await world.meta.deliver(body(text(1, "hello")))).acknowledged
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()
