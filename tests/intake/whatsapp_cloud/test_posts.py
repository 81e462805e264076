"""Meta's posts become rows: member by member, whoever stands beside it, once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.turn import Turn
from tests.fakes.meta import payloads
from tests.fakes.meta.checks import shape_problems
from tests.fakes.meta.courier import signature
from tests.fakes.meta.server import OTHER_NUMBER, SECRET
from tests.fakes.recording import Json
from tests.kit.agents import Echo
from tests.kit.conversation import endings
from tests.kit.whatsapp_cloud import ALONE, TWO, wamids
from tests.world import PUBLIC, World

ADA, BOB, EVE = "15550100181", "15550100182", "15550100184"
HOOK = f"{PUBLIC}/whatsapp-cloud/webhook"
NOBODYS = "wamid.HBgLMTU1NTAxMDAxODEVAgARGBIwMDAwMDAwMDAwMDAwMDAwNUEA"
KEPT = "SELECT body, ignored, error FROM payloads ORDER BY id"
EACH: dict[str, Any] = {"burst": "each"}


def batch(world: World) -> Json:
    """The POST of the case: two entries, four messages, two statuses and an unknown field."""
    meta, at = world.meta, world.clock.wall()
    messages = [
        meta.message("one", from_=ADA),
        meta.message(from_=BOB, kind="text") | {"text": None},
        meta.message("three", from_=BOB),
    ]
    here = payloads.change(
        contacts=[payloads.contact(ADA), payloads.contact(BOB, "Bob")],
        messages=messages,
        statuses=[payloads.status(NOBODYS, "delivered", at, to=ADA, tag="ab1.unknown.1")],
    )
    there = payloads.change(
        number=OTHER_NUMBER,
        display="15550100901",
        contacts=[payloads.contact(ADA)],
        messages=[meta.message("to B", from_=ADA)],
        statuses=[{"id": None, "status": 7}],
    )
    whole = payloads.envelope(here)
    whole["entry"].append(
        {"id": payloads.WABA, "changes": [{"field": "brand_new_field", "value": {"x": [1]}}, there]}
    )
    return whole


async def test_b141_one_bad_member_of_a_post_costs_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Echo()
    running = await world.start(agent=agent, **TWO)
    delivery = await world.meta.deliver(batch(world))
    assert delivery.answers == [200]
    await world.settled()

    told = (
        "SELECT i.text, a.account FROM inbound i JOIN accounts a ON a.id = i.account ORDER BY i.id"
    )
    assert sorted(tuple(row) for row in await world.rows(told)) == [
        ("one", payloads.NUMBER),
        ("three", payloads.NUMBER),
        ("to B", OTHER_NUMBER),
    ]
    sent = sorted((m.number, m.to, m.text) for m in world.meta.messages())
    assert sent == [
        (payloads.NUMBER, f"+{ADA}", "re: one"),
        (payloads.NUMBER, f"+{BOB}", "re: three"),
        (OTHER_NUMBER, f"+{ADA}", "re: to B"),
    ]
    assert [ending for _, ending in await endings(world)] == ["answered"] * 3
    kept = [tuple(row) for row in await world.rows(KEPT)]
    for word in ('"text": null', "ab1.unknown.1", "brand_new_field", '"status": 7'):
        found = [row for row in kept if word.replace(" ", "") in row[0].replace(" ", "")]
        assert len(found) == 1, word
        assert found[0][1] or found[0][2], f"{word}: kept without a reason"
    assert [line for line in caplog.records if line.exc_info] == []

    assert list(await world.meta.courier.again(delivery, times=2)) == [200, 200]
    await world.settled()
    assert len(await world.rows("SELECT id FROM inbound")) == 3
    assert len(await world.rows("SELECT id FROM runs")) == 3
    again = {tuple(row) for row in await world.rows(KEPT)}
    assert again == set(kept), "nothing new came with the second copy"
    assert len(world.meta.calls_of("send")) == 3
    assert sum(agent.calls.values()) == 3
    assert running.process.rt is not None


@pytest.mark.parametrize(
    "broken",
    [
        None,
        7,
        "text",
        [],
        {},
        {"id": "wamid.x"},
        {"id": 5, "from": ADA, "timestamp": "1", "type": "text", "text": {"body": "x"}},
        {"id": "", "from": ADA, "timestamp": "1", "type": "text", "text": {"body": "x"}},
        {"id": "wamid.y", "from": None, "timestamp": None, "type": None},
        {"id": "wamid.z", "from": ADA, "timestamp": "1", "type": "text", "text": {"body": [1]}},
    ],
    ids=repr,
)
async def test_b141_whatever_is_broken_is_kept_and_its_neighbours_are_answered(
    world: World, broken: object
) -> None:
    await world.start(agent=Echo(), **ALONE)
    left, right = world.meta.message("left", from_=ADA), world.meta.message("right", from_=BOB)
    change = payloads.change(messages=[left, right])
    change["value"]["messages"].insert(1, broken)
    body = payloads.raw(payloads.envelope(change))
    delivery = await world.meta.courier.deliver(HOOK, body)
    assert delivery.answers == [200]
    await world.settled()
    assert sorted(world.meta.texts()) == ["re: left", "re: right"]
    assert len(await world.rows(KEPT)) == 1


async def test_b141_a_number_that_is_not_ours_is_kept_and_told_and_its_neighbour_is_answered(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.start(agent=Echo(), **ALONE)
    whole = batch(world)
    delivery = await world.meta.deliver(whole)
    assert delivery.answers == [200]
    await world.settled()
    assert sorted(world.meta.texts()) == ["re: one", "re: three"]
    kept = [row[0] for row in await world.rows(KEPT)]
    assert any("to B" in body for body in kept), "nothing of the strange number was kept"
    assert any(OTHER_NUMBER in line.getMessage() for line in caplog.records)


async def test_b142_two_secrets_while_one_is_changed_and_the_old_one_ends(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Echo()
    both = await world.start(agent=agent, **{**ALONE, "meta_app_secret": f"{SECRET},s3cret-old"})
    post = world.meta.courier.post
    bodies = [
        payloads.raw(world.meta.written_by(world.meta.message(text, from_=EVE)))
        for text in ("old secret", "new secret", "stranger")
    ]
    secrets = ("s3cret-old", SECRET, "s3cret-foreign")
    answers = [
        (await post(HOOK, body, signature(body, secret))).status_code
        for body, secret in zip(bodies, secrets, strict=True)
    ]
    assert answers[:2] == [200, 200]
    assert answers[2] in (401, 403)
    assert (await post(HOOK, bodies[2], "")).status_code in (401, 403)
    await world.settled()
    await both.stop()

    await world.start(agent=agent, **ALONE)
    old = await post(HOOK, bodies[0], signature(bodies[0], "s3cret-old"))
    assert old.status_code in (401, 403)
    assert (await post(HOOK, bodies[0], signature(bodies[0], SECRET))).status_code == 200
    await world.settled()
    assert sorted(agent.calls) == ["new secret", "old secret"]
    assert sum(agent.calls.values()) == 2
    assert len(await world.rows("SELECT id FROM runs")) == 2
    assert "s3cret" not in caplog.text


async def test_b142_without_a_secret_nothing_starts_and_the_setting_is_named(world: World) -> None:
    with pytest.raises(ConfigurationError, match="META_APP_SECRET"):
        await world.start(**{**ALONE, "meta_app_secret": ""})


@pytest.mark.parametrize("change", [b" ", b"\n"])
async def test_b142_a_body_that_was_written_anew_has_no_valid_signature(
    world: World, change: bytes
) -> None:
    await world.start(agent=Echo(), **ALONE)
    body = payloads.raw(world.meta.written_by(world.meta.message("é @", from_=EVE)))
    rewritten = json.dumps(json.loads(body), ensure_ascii=False).encode()
    for other in (rewritten, body + change):
        answer = await world.meta.courier.post(HOOK, other, signature(body, SECRET))
        assert answer.status_code in (401, 403)
    assert await world.rows("SELECT count(*) FROM inbound") == [(0,)]


def odd_types(world: World, original: str) -> list[Json]:
    """One message of each of the fifteen kinds of the case, and a sticker of none."""
    kinds: list[tuple[str, object, Json]] = [
        ("unsupported", {"type": "poll_creation"}, {"errors": [{"code": 131051}]}),
        ("unknown", None, {"errors": [{"code": 131051}]}),
        ("interactive", None, {}),
        (
            "interactive",
            {"type": "list_reply", "list_reply": {"id": "r1", "title": "Tuesday"}},
            {"context": {"from": payloads.DISPLAY, "id": "wamid.gone"}},
        ),
        (
            "interactive",
            {
                "type": "nfm_reply",
                "nfm_reply": {"name": "flow", "body": "Sent", "response_json": "{not json"},
            },
            {},
        ),
        ("button", {"payload": "YES", "text": "Yes"}, {}),
        ("reaction", {"message_id": "wamid.gone", "emoji": "👍"}, {}),
        ("reaction", {"message_id": "wamid.gone"}, {}),
        (
            "edit",
            {
                "original_message_id": original,
                "message": {"type": "text", "text": {"body": "new words"}, "context": {"id": "M0"}},
            },
            {},
        ),
        ("revoke", {"original_message_id": original}, {}),
        (
            "order",
            {
                "catalog_id": "1",
                "text": "",
                "product_items": [
                    {
                        "product_retailer_id": "sku-1",
                        "quantity": 2,
                        "item_price": 3.5,
                        "currency": "EUR",
                    }
                ],
            },
            {},
        ),
        (
            "text",
            {"body": "I saw the ad"},
            {
                "referral": {
                    "source_url": "https://fb.me/x",
                    "source_id": "1",
                    "source_type": "ad",
                    "headline": "Sale",
                    "body": "Half price",
                    "media_type": "image",
                }
            },
        ),
        ("request_welcome", None, {}),
        ("hologram", {"a": 1}, {}),
        ("location", {"latitude": 0, "longitude": 0}, {}),
    ]
    return [
        world.meta.message(from_=ADA, kind=kind, content=content, **more)
        for kind, content, more in kinds
    ]


async def test_b148_fifteen_kinds_of_message_in_one_post(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    turns: list[Turn] = []

    async def agent(turn: Turn) -> str:
        turns.append(turn)
        return f"re: {turn.text}"

    await world.start(agent=agent, **ALONE, **EACH)
    first = await world.meta.person_writes("old words", from_=ADA)
    await world.settled()
    [original] = wamids(first.body)
    messages = odd_types(world, original)
    here = payloads.change(
        contacts=[payloads.contact(ADA)],
        messages=messages,
        errors=[{"code": 131000, "title": "Something went wrong"}],
    )
    standby = payloads.change(
        field="standby", messages=[world.meta.message("for the other agent", from_=ADA)]
    )
    whole = payloads.envelope(here, standby)
    assert shape_problems("webhook", whole) == []
    assert (await world.meta.deliver(whole)).answers == [200]
    await world.settled()

    said = {turn.text for turn in turns}
    for words in (
        ("Tuesday",),
        ("{not json",),
        ("Yes",),
        ("sku-1", "2", "3.5", "EUR"),
        ("I saw the ad", "Sale"),
        ("0",),
    ):
        assert any(all(word in text for word in words) for text in said), words
    assert "for the other agent" not in said
    buttons = {m.button for turn in turns for m in turn.messages if m.button}
    assert {"r1", "YES"} <= buttons
    places = [m for turn in turns for m in turn.messages if str(m.kind) == "location"]
    assert len(places) == 1
    assert "new words" not in said or "old words" in said
    answered = len(world.meta.messages(f"+{ADA}"))
    assert answered == len(turns), "an answer to each turn, and no message twice"
    assert answered >= 1 + 6 + 4, "an unreadable kind met silence"
    kept = await world.rows("SELECT payload FROM inbound UNION ALL SELECT body FROM payloads")
    whole_store = "\n".join(row[0] for row in kept)
    for message in messages:
        recorded = message["id"] in whole_store
        assert recorded or message["type"] == "edit", f"{message} is recorded nowhere"
    assert await world.rows("SELECT count(*) FROM edits") == [(1,)]
    assert "for the other agent" in whole_store
    assert "131000" in whole_store
    assert [line for line in caplog.records if line.exc_info] == []
    assert [line for line in caplog.records if line.levelname in ("ERROR", "CRITICAL")] == []
    texts = [row[0] for row in await world.rows("SELECT text FROM inbound ORDER BY id")]
    assert "old words" not in texts, "what was revoked is still there"
