"""Twilio's webhooks, from a signature to the one answer, and what shows meanwhile."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl, urlencode

import pytest

from bot.domain.errors import AttachmentUnavailable
from bot.domain.reply import FileOut, Reply
from bot.domain.turn import Turn
from tests.fakes.twilio import faults, forms
from tests.fakes.twilio.server import AUTH_TOKEN
from tests.fakes.twilio.signing import SIGNATURE, SharedKey, signature
from tests.kit.agents import Held, repeats
from tests.kit.whatsapp import CALM, PERSON, answering, asked, echo, endings
from tests.limits import PATIENCE, until
from tests.world import PUBLIC, World

FALLBACK = f"{PUBLIC}/whatsapp/fallback"
EMPTY = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'


async def test_b04_primary_and_fallback_take_a_message_once(world: World) -> None:
    await world.start(agent=echo)
    told = await world.twilio.inbound("hello", sid="SM00000000000000000000000000000a02")
    other = [("BrandNew", "1"), *reversed(told.form)]
    (again,) = await world.twilio.repeat(other, FALLBACK)
    assert told.acknowledged
    assert again.acknowledged
    await world.settled()
    assert await world.rows("SELECT count(*) FROM inbound") == [(1,)]
    assert await world.rows("SELECT count(*) FROM runs") == [(1,)]
    assert len(world.twilio.calls_of("create")) == 1


async def test_b63_the_acknowledgement_is_empty_twiml_whatever_comes(world: World) -> None:
    await world.start(agent=echo)
    told = await world.twilio.inbound("hello", sid="SM00000000000000000000000000000a0d")
    (duplicate,) = await world.twilio.repeat(told.form)
    elsewhere = [(n, "whatsapp:+15550109999" if n == "From" else v) for n, v in told.form]
    elsewhere.append(("Direction", "outbound-api"))
    (ignored,) = await world.twilio.repeat(elsewhere)
    unsupported = await world.twilio.inbound("", fields=forms.unsupported())
    (nameless,) = await world.twilio.repeat([("Body", "no sid"), ("From", PERSON)])
    for attempt in (*told.attempts, duplicate, ignored, *unsupported.attempts, nameless):
        assert (attempt.status, attempt.body) == (200, EMPTY)
        assert attempt.content_type.startswith("text/xml")
    await world.settled()
    assert world.twilio.texts()[0] == "you said: hello"
    assert len(world.twilio.messages()) == 2
    assert await world.rows("SELECT count(*) FROM payloads WHERE error IS NOT NULL") == [(1,)]


@pytest.mark.alternating(1)  # PostgreSQL takes no NUL.
async def test_a_message_for_a_sender_that_is_not_configured_is_kept_as_a_dead_letter(
    world: World,
) -> None:
    await world.start(agent=echo)
    told = await world.twilio.inbound("hello", webhook=False)
    others = [(n, f"whatsapp:+1555010\0{'9' * 4000}" if n == "To" else v) for n, v in told.form]
    status = [(n, "delivered" if n == "SmsStatus" else v) for n, v in others]
    for fields in (others, status):
        (attempt,) = await world.twilio.repeat(fields)
        assert (attempt.status, attempt.body) == (200, EMPTY)
    await world.settled()
    ((why,),) = await world.rows("SELECT error FROM payloads WHERE error IS NOT NULL")
    assert "is not configured" in why
    assert len(why) < 500


async def test_b37_a_nul_is_cleaned_after_the_signature_was_checked(world: World) -> None:
    await world.start(agent=echo)
    told = await world.twilio.inbound(
        "hi\0there",
        sid="SM00000000000000000000000000000a09",
        from_="whatsapp:+15550100016",
        fields={"ProfileName": "Bo\0b"},
    )
    assert told.acknowledged
    await world.settled()
    ((text, name, extra),) = await world.rows("SELECT text, sender_name, extra FROM inbound")
    assert (text, name) == ("hi\ufffdthere", "Bo\ufffdb")
    assert "cleaned" in extra
    assert world.twilio.texts("whatsapp:+15550100016") == ["you said: hi\ufffdthere"]


@pytest.mark.alternating(1)
@pytest.mark.parametrize("raw", [b"\0", b"%00", b"%ED%A0%80"])
async def test_a_form_that_no_database_takes_is_kept_and_answered(world: World, raw: bytes) -> None:
    """Raw in the body too, where no browser and no library would write it."""
    running = await world.start(agent=echo)
    told = await world.twilio.inbound("hello", webhook=False)
    body = urlencode(told.form).encode() + b"&Strange" + raw + b"=x" + raw
    fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="replace")
    made = signature(f"{PUBLIC}/whatsapp/webhook", fields, AUTH_TOKEN, "sha1")
    answer = await running.client.post(
        f"{running.url}/whatsapp/webhook", content=body, headers={SIGNATURE: made}
    )
    assert (answer.status_code, answer.text) == (200, EMPTY)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]


async def test_b42_a_long_name_costs_no_message(world: World) -> None:
    await world.start(agent=echo)
    family = "\U0001f468\u200d\U0001f469" * 166 + "xx"
    await world.twilio.inbound("hello", fields={"ProfileName": family})
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]
    ((name,),) = await world.rows("SELECT sender_name FROM inbound")
    assert family.startswith(name)


async def test_b33_long_replies_are_whole_and_in_order(world: World) -> None:
    async def long(turn: Turn) -> str:
        return "a" * 1601 if turn.text == "one" else "b " * 800 + "c" * 1700

    await world.start(agent=long)
    for text in ("one", "two"):
        await world.twilio.inbound(text)
        await world.settled()
    bodies = world.twilio.texts()
    assert all(len(body) <= 1600 for body in bodies)
    assert [body[0] for body in bodies[:2]] == ["a", "a"]
    assert len(bodies) - 2 >= 3
    assert "".join(bodies[:2]) == "a" * 1601
    assert "".join(bodies[2:]).replace(" ", "") == "b" * 800 + "c" * 1700
    assert await endings(world) == ["answered", "answered"]


async def test_the_old_token_and_the_new_one_sign_side_by_side(world: World) -> None:
    await world.start(agent=echo, twilio_second_auth_token="the-next-token")
    for token, taken in (
        (world.twilio.auth_token, True),
        ("the-next-token", True),
        ("a-stolen-one", False),
    ):
        world.twilio.courier.auth_token = token
        told = await world.twilio.inbound("hello", from_=f"whatsapp:+1555010{len(token):04}")
        assert told.acknowledged is taken
    await world.settled()
    assert await world.rows("SELECT count(*) FROM inbound") == [(2,)]


async def test_a_shared_key_signs_messages_and_statuses(world: World) -> None:
    world.twilio.courier.shared_key = SharedKey("CR1", "a-shared-secret")
    await world.start(agent=echo, twilio_shared_key="a-shared-secret")
    told = await world.twilio.inbound("hello")
    assert told.acknowledged
    await world.until("SELECT state FROM outbox", lambda rows: rows == [("delivered",)])


@pytest.mark.parametrize("name", forms.EVERY_KIND)
async def test_every_kind_gets_exactly_one_answer(world: World, name: str) -> None:
    await world.start()
    told = await world.twilio.inbound("", fields=forms.EVERY_KIND[name])
    assert told.acknowledged
    await world.settled()
    (answer,) = world.twilio.texts()
    assert answer.strip()
    assert await endings(world) == ["answered"]


@pytest.mark.parametrize("kind", forms.MEDIA_KINDS.values())
async def test_a_file_is_read_through_the_turn(world: World, kind: str) -> None:
    async def measure(turn: Turn) -> str:
        (file,) = turn.messages[0].attachments
        return f"{file.info.mime}: {len(await file.read())}"

    world.twilio.media_host.lag = 1
    await world.start(agent=measure)
    await world.twilio.inbound("look", media=[(kind, b"x" * 2048)])
    await world.settled()
    assert world.twilio.texts() == [f"{kind}: 2048"]
    assert world.twilio.violations == []


async def test_a_file_that_is_gone_loses_no_message(world: World) -> None:
    async def describe(turn: Turn) -> str:
        try:
            await turn.messages[0].attachments[0].read()
        except AttachmentUnavailable as error:
            return f"I can't open it: {error}"
        return "never"

    world.twilio.fail("download", faults.refused(20404), times=None)
    await world.start(agent=describe, **CALM)
    await world.twilio.inbound("look", media=[("image/jpeg", b"x")])
    for count in (1, 2):
        await asked(world, "download", count)
        world.advance(3)
    await world.settled()
    assert world.twilio.texts()[0].startswith("I can't open it")


async def test_a_file_that_is_refused_goes_out_as_its_link(world: World) -> None:
    world.twilio.fail("create", faults.refused(21620), nth=2)
    url = "https://files.example.test/report.pdf"
    reply = Reply("Here it is.", files=(FileOut("document", url=url, name="report.pdf"),))
    await world.start(agent=answering(reply))
    await world.twilio.inbound("the report, please")
    await world.settled()
    assert world.twilio.texts() == ["Here it is.", f"report.pdf\n{url}"]
    assert await endings(world) == ["answered"]


async def test_typing_is_shown_once_a_turn_and_only_where_it_is_on(world: World) -> None:
    for on in (True, False):
        agent = Held()
        running = await world.start(agent=agent, twilio_typing=on, **CALM)
        told = await world.twilio.inbound("hello")
        await agent.begun.wait()
        world.advance(3)
        if on:
            await world.twilio.wait_for(lambda: world.twilio.typing)
        world.advance(30)
        agent.go.set()
        await world.settled()
        assert world.twilio.typing == ([told.sid] if on else [])
        world.twilio.typing.clear()
        await running.stop()


@pytest.mark.parametrize("fault", [faults.hang_before_storing, faults.bad_gateway])
async def test_typing_that_fails_or_hangs_delays_no_answer(world: World, fault: object) -> None:
    assert callable(fault)
    rule = world.twilio.fail("typing", fault(), times=None)
    agent = Held()
    await world.start(agent=agent, twilio_typing=True, **CALM)
    await world.twilio.inbound("hello")
    await agent.begun.wait()
    world.advance(3)
    await world.twilio.wait_for(lambda: rule.hits)
    agent.go.set()
    async with asyncio.timeout(PATIENCE):
        await world.settled()
    assert world.twilio.texts() == ["hello"]


async def test_a_rate_limit_is_waited_for_and_other_chats_go_on(world: World) -> None:
    of_one_chat = faults.flood_wait(37, extra=10, code=63017)
    limited = world.twilio.fail("create", of_one_chat, chat=PERSON)
    worker = (await world.start(agent=repeats, **CALM)).process.worker
    assert worker is not None
    await world.twilio.inbound("hello")
    await world.twilio.wait_for(lambda: len(limited.hits) == 1)
    other = "whatsapp:+15550100016"
    await world.twilio.inbound("meanwhile", from_=other)
    await world.twilio.wait_for(lambda: world.twilio.texts(other))
    await world.until(
        "SELECT count(*) FROM runs WHERE state = 'ready' AND not_before > 0",
        lambda rows: rows[0][0] == 1,
    )
    world.stop_time()
    world.advance(30)
    await until(lambda: worker.claimless <= 0.0)
    assert len(limited.hits) == 1
    world.let_time_go_on()
    world.advance(8)
    await world.settled()
    assert world.twilio.texts(PERSON) == ["hello"]
    assert [call.status for call in world.twilio.calls_of("create", PERSON)] == [429, 201]


async def test_a_limit_of_the_whole_account_is_waited_for_by_every_chat(world: World) -> None:
    limited = world.twilio.fail("create", faults.flood_wait(3600, extra=10), chat=PERSON)
    await world.start(agent=repeats, **CALM)
    await world.twilio.inbound("hello")
    await world.twilio.wait_for(lambda: len(limited.hits) == 1)
    other = "whatsapp:+15550100016"
    await world.twilio.inbound("meanwhile", from_=other)
    put_off = "SELECT count(*) FROM runs WHERE state = 'ready' AND not_before > 0"
    await world.until(put_off, lambda rows: rows[0][0] == 2)
    assert (world.twilio.texts(PERSON), world.twilio.texts(other)) == ([], [])
    world.advance(3602)
    await world.settled()
    assert (world.twilio.texts(PERSON), world.twilio.texts(other)) == (["hello"], ["meanwhile"])
    assert [call.status for call in world.twilio.calls_of("create", PERSON)] == [429, 201]


async def test_the_sandbox_works_with_its_shared_number(world: World) -> None:
    sandbox = "whatsapp:+14155238886"
    world.twilio.senders.add(sandbox)
    await world.start(agent=echo, twilio_whatsapp_from="+1 (415) 523-8886")
    await world.twilio.inbound("hello", to=sandbox)
    await world.settled()
    (message,) = world.twilio.messages()
    assert (message.from_, message.body) == (sandbox, "you said: hello")


async def test_who_fell_out_of_the_sandbox_is_answered_when_they_write_again(
    world: World,
) -> None:
    world.twilio.fail("create", faults.refused(63015))
    await world.start(agent=echo)
    for text in ("hello", "joined again"):
        await world.twilio.inbound(text)
        await world.settled()
    assert await endings(world) == ["undeliverable", "answered"]
    assert world.twilio.texts() == ["you said: joined again"]
