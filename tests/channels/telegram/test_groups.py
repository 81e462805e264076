"""Groups, topics, other bots: messages that concern us and others."""

from __future__ import annotations

import pytest

from bot.domain.message import Address, Addressing, Ignored
from tests.channels.telegram.kit import ADA, GROUP, US, Json, event, inbound, message, sample

FORUM = GROUP | {"id": -1007000000401, "is_forum": True}


def command(text: str, length: int) -> Json:
    return message(
        chat=GROUP, text=text, entities=[{"type": "bot_command", "offset": 0, "length": length}]
    )


@pytest.mark.parametrize(
    ("text", "length", "how"),
    [
        ("/status@relay_test_bot", 22, Addressing.COMMAND),
        ("/STATUS@Relay_Test_Bot", 22, Addressing.COMMAND),
        ("/status@other_bot", 17, Addressing.OTHER_BOT),
        ("/status", 7, Addressing.NOT_US),
    ],
)
def test_b55_a_command_in_a_group_is_ours_only_when_it_names_us(
    text: str, length: int, how: Addressing
) -> None:
    got = inbound(command(text, length))
    assert (got.addressing, got.command) == (how, "status")


def test_a_command_that_names_another_bot_is_not_ours_in_a_private_chat_either() -> None:
    got = inbound(message(text="/start@other_bot"))
    assert got.addressing is Addressing.OTHER_BOT


def test_a_mention_is_found_behind_an_emoji_and_in_any_case() -> None:
    assert inbound(sample("group_mention")).addressing is Addressing.MENTION


def test_a_mention_of_a_longer_name_is_not_ours() -> None:
    marks = [{"type": "mention", "offset": 0, "length": 19}]
    got = inbound(message(chat=GROUP, text="@relay_test_bot_two hi", entities=marks))
    assert got.addressing is Addressing.NOT_US


def test_a_mention_by_id_and_in_a_caption_count() -> None:
    by_id = [{"type": "text_mention", "offset": 0, "length": 3, "user": US}]
    assert inbound(message(chat=GROUP, text="You?", entities=by_id)).addressing is (
        Addressing.MENTION
    )
    marks = [{"type": "mention", "offset": 0, "length": 15}]
    photo = message(chat=GROUP, photo=[], caption="@relay_test_bot", caption_entities=marks)
    assert inbound(photo).addressing is Addressing.MENTION


def test_a_reply_to_us_concerns_us_and_a_reply_to_others_does_not() -> None:
    ours = {"message_id": 40, "from": US, "chat": GROUP, "text": "a"}
    assert inbound(message(chat=GROUP, text="b", reply_to_message=ours)).addressing is (
        Addressing.REPLY
    )
    theirs = ours | {"from": ADA}
    assert inbound(message(chat=GROUP, text="b", reply_to_message=theirs)).addressing is (
        Addressing.NOT_US
    )


def test_b53_a_topic_is_an_address_of_its_own_and_its_opening_is_no_reply() -> None:
    got = inbound(sample("topic"))
    assert got.address == Address("-1007000000401", "77")
    assert (got.addressing, got.quoted) == (Addressing.NOT_US, None)
    assert got.extra == {"forum": "yes"}


def test_the_general_topic_and_threads_of_plain_groups_are_the_chat_itself() -> None:
    assert inbound(message(chat=FORUM, text="x")).address.topic == ""
    assert inbound(message(chat=GROUP, text="x", message_thread_id=9)).address.topic == ""


def test_a_private_chat_may_have_topics() -> None:
    got = inbound(message(text="x", message_thread_id=5, is_topic_message=True))
    assert got.address == Address("700100201", "5")


def test_b105_an_anonymous_administrator_is_one_person_and_no_bot() -> None:
    got = inbound(sample("anonymous_admin"))
    assert (got.sender.id, got.sender.is_bot) == ("-1007000000501", False)
    assert got.sender.name == "Tea & Co · boss"
    assert got.addressing is Addressing.MENTION


def test_who_writes_as_a_channel_is_that_channel_and_no_bot() -> None:
    stand_in = {"id": 136817688, "is_bot": True, "first_name": "Channel"}
    channel = {"id": -1007000000702, "type": "channel", "title": "News"}
    got = inbound(message(chat=GROUP, from_=stand_in, sender_chat=channel, text="x"))
    assert (got.sender.id, got.sender.name, got.sender.is_bot) == ("-1007000000702", "News", False)


def test_b93_another_bot_is_named_as_one_even_when_it_replies_to_us() -> None:
    got = inbound(sample("other_bot"))
    assert got.sender.is_bot
    assert got.addressing is Addressing.REPLY


def test_our_own_messages_are_ignored() -> None:
    assert event(sample("our_own")) == Ignored("our own message")


def test_what_merely_happened_in_a_group_is_ignored_by_name() -> None:
    assert event(sample("pinned")) == Ignored("service message: pinned_message")


def test_a_press_in_a_group_concerns_us() -> None:
    shown = {"message_id": 90, "date": 1, "chat": GROUP}
    query = {"id": "1", "from": ADA, "data": "x", "message": shown}
    assert inbound({"callback_query": query}).addressing is Addressing.REPLY
