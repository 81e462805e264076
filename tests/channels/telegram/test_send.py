"""Sending: the chat it goes to, the reaction to a refusal, the silence of the logs."""

from __future__ import annotations

import logging

import pytest

from bot.domain.delivery import Lookup, Refused, Scope, Sent, Unknown
from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import Address, Attachment, ChatKind
from bot.domain.ports import Channel, Recipient, SendRef
from bot.domain.reply import Button, FileOut, PartBody, Reply
from tests.channels.telegram.kit import NOON, Line, group, line, private
from tests.fakes.faults import Answer, Fault
from tests.fakes.telegram import faults
from tests.fakes.telegram.server import TOKEN

CHAT = 700100201
FORUM = -1007000000401
REF = SendRef(7, 1, NOON)


async def test_b35_refused_formatting_is_followed_by_the_plain_text_once() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.cant_parse_entities())
        assert isinstance(await at.send("**a** [b](https://c.d)"), Sent)
        (shown,) = at.fake.messages(CHAT)
        assert (shown.text, shown.entities) == ("a b (https://c.d)", [])
        assert len(at.fake.calls_of("sendMessage")) == 2


async def test_b35_words_without_formatting_are_tried_once_more_too() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.cant_parse_entities())
        assert isinstance(await at.send("max_retry_count and **use_cache"), Sent)
        assert at.fake.texts(CHAT) == ["max_retry_count and **use_cache"]


async def test_formatting_that_is_refused_for_ever_ends_after_two_calls() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.cant_parse_entities(), times=None)
        outcome = await at.send("**a**")
        assert isinstance(outcome, Refused)
        assert outcome.scope is Scope.PAYLOAD
        assert len(at.fake.calls_of("sendMessage")) == 2


async def test_an_unknown_outcome_is_never_followed_by_the_plain_text() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.server_error())
        assert isinstance(await at.send("**a**"), Unknown)
        assert len(at.fake.calls_of("sendMessage")) == 1


async def test_refused_buttons_become_words() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.refused(400, "Bad Request: BUTTON_URL_INVALID"))
        reply = Reply("Which?", buttons=(Button("Tea", "t"), Button("Site", url="https://x.y")))
        assert isinstance(await at.send(reply), Sent)
        assert at.fake.texts(CHAT) == ["Which?\n\n• Tea\n• Site https://x.y"]


async def test_a_file_that_telegram_does_not_take_becomes_a_link() -> None:
    async with line() as at:
        why = "Bad Request: failed to get HTTP URL content"
        at.fake.fail("sendPhoto", faults.refused(400, why))
        reply = Reply(files=(FileOut("photo", url="https://x.y/a.png", caption="cat"),))
        assert isinstance(await at.send(reply), Sent)
        assert at.fake.texts(CHAT) == ["cat\nhttps://x.y/a.png"]


@pytest.mark.parametrize(
    "fault",
    [
        faults.refused(404, "Not Found"),
        faults.refused(400, "Bad Request: not enough rights to send documents to the chat"),
    ],
)
async def test_where_no_file_may_be_sent_a_person_gets_the_beginning_as_text(fault: Fault) -> None:
    async with line() as at:
        at.fake.fail("sendDocument", fault)
        (part,) = at.parts("All of it. " * 6000)
        assert isinstance(await at.channel.send(private(), part, REF), Sent)
        (text,) = at.fake.texts(CHAT)
        assert text.startswith("All of it. All")
        assert text.endswith("…")
        assert len(text) > 4000


async def test_a_file_that_nothing_can_stand_for_is_refused_by_itself() -> None:
    async with line() as at:
        at.fake.fail("sendDocument", faults.refused(404, "Not Found"))
        reply = Reply(files=(FileOut("document", content="x" * 5000, name="t.csv"),))
        outcome = await at.send(reply)
        assert outcome == Refused(Scope.PAYLOAD, "this Bot API has no sendDocument", "404")


async def test_a_text_file_is_uploaded_with_its_name() -> None:
    async with line() as at:
        reply = Reply(files=(FileOut("document", content="ü,1", name="t.csv"),))
        assert isinstance(await at.send(reply), Sent)
        (upload,) = [call.params["document"] for call in at.fake.calls_of("sendDocument")]
        assert (upload.name, upload.data) == ("t.csv", "ü,1".encode())
        assert at.fake.violations == []


async def test_b53_every_part_stays_in_its_topic() -> None:
    async with line() as at:
        to = group(topic="77")
        for part in at.parts("word " * 1500, to):
            assert isinstance(await at.channel.send(to, part, REF), Sent)
        at.fake.fail("sendMessage", faults.cant_parse_entities())
        assert isinstance(await at.send("**plain**", to), Sent)
        assert {m.topic for m in at.fake.messages(FORUM)} == {77}
        assert at.fake.violations == []


async def test_the_general_topic_is_addressed_by_naming_none() -> None:
    async with line() as at:
        await at.send("hi", group(topic="1"))
        assert "message_thread_id" not in at.fake.calls[-1].params


@pytest.mark.parametrize("gone", [faults.topic_not_found(), faults.topic_closed()])
async def test_a_topic_that_is_gone_is_left_out(gone: Fault) -> None:
    async with line() as at:
        at.fake.fail("sendMessage", gone, when=lambda call: "message_thread_id" in call.params)
        assert isinstance(await at.send("**hi**", group(topic="77")), Sent)
        (shown,) = at.fake.messages(FORUM)
        assert (shown.topic, shown.reply_to, shown.text) == (None, None, "hi")
        assert shown.entities


async def test_b49_a_stored_part_goes_to_the_chats_new_address_without_the_old_quote() -> None:
    async with line() as at:
        (part,) = at.parts("answer", group("-700301"))
        moved = group("-1007000000301")
        assert isinstance(await at.channel.send(moved, part, REF), Sent)
        (shown,) = at.fake.messages(-1007000000301)
        assert (shown.text, shown.reply_to) == ("answer", None)


async def test_b51_the_reply_goes_to_the_exact_id() -> None:
    async with line() as at:
        await at.send("hi", private("4503599627370495"))
        assert at.fake.calls[-1].params["chat_id"] == 4503599627370495


async def test_the_same_stored_part_is_sent_the_same_twice() -> None:
    async with line() as at:
        (part,) = at.parts(Reply("**a** b", buttons=(Button("x", "y"),)), group())
        for attempt in (1, 2):
            await at.channel.send(group(), part, SendRef(7, attempt, NOON))
        first, second = at.fake.calls_of("sendMessage")
        assert first.params == second.params


async def test_a_stored_part_that_is_not_ours_is_refused() -> None:
    async with line() as at:
        outcome = await at.channel.send(private(), PartBody("x", "{}"), REF)
        assert isinstance(outcome, Refused)
        assert at.fake.calls == []


async def test_telegram_can_not_be_asked_what_arrived() -> None:
    async with line() as at:
        channel: Channel = at.channel
        (part,) = at.parts("x")
        assert await channel.look_up(private(), part, REF, frozenset()) is Lookup.CANNOT_TELL


async def test_typing_shows_an_action_and_now_and_then_a_draft() -> None:
    async with line() as at:
        for _ in range(3):
            await at.channel.typing(private())
        chat = at.fake.main.book.chat(CHAT)
        assert (chat.actions, chat.drafts) == (["typing"] * 3, [""])
        at.clock.at += 21
        await at.channel.typing(private())
        assert chat.drafts == ["", ""]
        assert at.fake.violations == []


async def test_typing_in_a_topic_names_it_and_in_a_group_makes_no_draft() -> None:
    async with line() as at:
        await at.channel.typing(group(topic="77"))
        (call,) = at.fake.calls
        assert (call.method, call.params["message_thread_id"]) == ("sendChatAction", 77)


async def test_nobody_types_in_a_channel() -> None:
    async with line() as at:
        await at.channel.typing(Recipient(Address("-1007000000701"), ChatKind.BROADCAST))
        assert at.fake.calls == []


async def test_an_api_without_drafts_is_asked_for_one_once() -> None:
    async with line() as at:
        at.fake.fail("sendMessageDraft", faults.refused(404, "Not Found"), times=None)
        for _ in range(2):
            await at.channel.typing(private())
            at.clock.at += 60
        assert len(at.fake.calls_of("sendMessageDraft")) == 1


@pytest.mark.parametrize(
    "fault", [faults.blocked(), faults.server_error(), faults.drop_unread(), faults.not_json()]
)
async def test_decorations_never_raise(fault: Fault) -> None:
    async with line() as at:
        for method in ("sendChatAction", "sendMessageDraft", "answerCallbackQuery"):
            at.fake.fail(method, fault)
        await at.channel.typing(private())
        await at.channel.acknowledge("cq1", "x")


async def test_b101_a_press_is_acknowledged_with_a_short_notice() -> None:
    async with line() as at:
        await at.channel.acknowledge("cq1")
        await at.channel.acknowledge("cq2", "n" * 300)
        assert at.fake.main.answered == [
            {"callback_query_id": "cq1"},
            {"callback_query_id": "cq2", "text": "n" * 200},
        ]


async def test_a_file_is_fetched_by_a_fresh_link_each_time() -> None:
    async with line() as at:
        name = at.fake.main.add_file(b"bytes", path="voice/file 1.oga")
        for _ in range(2):
            assert await at.channel.fetch(Attachment("voice", name)) == b"bytes"
        assert len(at.fake.calls_of("getFile")) == 2


async def test_a_file_over_20_mb_is_said_to_be_so() -> None:
    async with line() as at:
        big = at.fake.main.add_file(b"", size=21 * 1024 * 1024)
        for known in (None, 21 * 1024 * 1024):
            with pytest.raises(AttachmentUnavailable, match="20 MB"):
                await at.channel.fetch(Attachment("video", big, size=known))
        assert len(at.fake.calls_of("getFile")) == 1


async def fails_to_fetch(at: Line) -> str:
    with pytest.raises(AttachmentUnavailable) as caught:
        await at.channel.fetch(Attachment("photo", at.fake.main.add_file(b"x")))
    return str(caught.value)


async def test_every_other_trouble_with_a_file_has_a_reason_too() -> None:
    async with line() as at:
        at.fake.fail("getFile", faults.refused(400, "Bad Request: wrong file_id"))
        assert "any more" in await fails_to_fetch(at)
        at.fake.fail("getFile", faults.no_result())
        assert "could not be fetched" in await fails_to_fetch(at)
        at.fake.fail("getFile", Fault("p", stores=False, answer=Answer.of(200, {"result": {}})))
        assert "no link" in await fails_to_fetch(at)
    async with line(telegram_read_timeout=1.0) as at:
        at.fake.fail("download", faults.hang_before_storing())
        assert "could not be fetched" in await fails_to_fetch(at)


async def test_no_log_line_and_no_outcome_holds_the_token_or_the_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with line(telegram_read_timeout=1.0) as at:
        for fault in (
            faults.unauthorized(),
            faults.server_error(),
            faults.not_json(),
            faults.hang_before_storing(),
            faults.drop_unread(),
        ):
            at.fake.fail("sendMessage", fault)
            outcome = await at.send("a secret text")
            assert TOKEN not in repr(outcome)
            assert "secret" not in repr(outcome)
        await fails_to_fetch_quietly(at)
        assert TOKEN not in repr(at.channel.settings)
    assert TOKEN not in caplog.text
    assert "secret" not in caplog.text


async def fails_to_fetch_quietly(at: Line) -> None:
    at.fake.fail("download", faults.server_error())
    assert TOKEN not in await fails_to_fetch(at)
