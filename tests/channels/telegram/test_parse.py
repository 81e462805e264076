"""Updates into events: everything that a person can send."""

from __future__ import annotations

import pytest

from bot.domain.message import (
    Address,
    Addressing,
    Attachment,
    ChatKind,
    Ignored,
    InboundKind,
    Membership,
    Migrated,
    PayloadError,
    Quoted,
    Sender,
)
from channels.telegram.parse import parse
from tests.channels.telegram.kit import (
    ADA,
    GROUP,
    ME,
    PRIVATE,
    US,
    Json,
    edited,
    event,
    inbound,
    message,
    sample,
)


def test_a_text_names_its_chat_its_sender_and_itself() -> None:
    got = inbound(sample("text"))
    assert (got.request_id, got.provider_id) == ("tg-700100201-41", "41")
    assert got.address == Address("700100201")
    assert (got.chat_kind, got.kind, got.text) == (
        ChatKind.PRIVATE,
        InboundKind.TEXT,
        "book a table",
    )
    assert got.sender == Sender("700100201", "Ada L", "ada", "de")
    assert (got.addressing, got.sent_at) == (Addressing.PRIVATE, 1800003600.0)


def test_a_reply_with_a_quote_shows_what_was_quoted() -> None:
    assert inbound(sample("text_reply_quote")).quoted == Quoted("40", "take a coat", from_us=True)


def test_a_quote_from_another_chat_is_kept_without_its_message() -> None:
    origin = {"type": "user", "sender_user": US, "date": 1}
    update = message(text="and this?", external_reply={"origin": origin}, quote={"text": "rain"})
    assert inbound(update).quoted == Quoted("", "rain", from_us=True)


def test_a_command_comes_bare_with_its_arguments() -> None:
    got = inbound(sample("command_start"))
    assert (got.command, got.command_args, got.text) == ("start", "ref-42", "/start ref-42")


def test_a_command_is_seen_even_when_telegram_marked_nothing() -> None:
    got = inbound(message(text="/Status@relay_test_bot now"))
    assert (got.command, got.command_args) == ("status", "now")


def test_the_largest_photo_is_taken_and_the_caption_is_the_text() -> None:
    got = inbound(sample("photo"))
    assert (got.kind, got.text) == (InboundKind.PHOTO, "what is this?")
    assert got.attachments == (Attachment("photo", "p1280", size=90000),)


def test_a_document_keeps_its_name_and_type() -> None:
    (file,) = inbound(sample("document")).attachments
    assert (file.kind, file.ref, file.mime, file.name) == (
        "document",
        "d1",
        "application/pdf",
        "plan.pdf",
    )


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("voice", InboundKind.VOICE, "[voice message, 4 s]"),
        ("sticker", InboundKind.STICKER, "[sticker 😀]"),
        ("location", InboundKind.LOCATION, "[location: 52.52, 13.405]"),
        ("poll", InboundKind.POLL, "[poll: Tea or coffee?]\n- tea\n- coffee"),
    ],
)
def test_a_thing_without_words_is_described(name: str, kind: InboundKind, text: str) -> None:
    got = inbound(sample(name))
    assert (got.kind, got.text) == (kind, text)


@pytest.mark.parametrize(
    ("field", "content", "kind", "text"),
    [
        ("voice", {"file_id": "f1", "file_unique_id": "u1", "duration": 4}, "voice", "4 s"),
        ("sticker", {"file_id": "s", "emoji": "😀"}, "sticker", "😀"),
        ("contact", {"phone_number": "+49", "first_name": "Bo"}, "contact", "Bo, +49"),
        ("poll", {"question": "Q?", "options": [{"text": "a"}]}, "poll", "Q?]\n- a"),
        ("location", {"latitude": 1, "longitude": -2.5}, "location", "1, -2.5"),
        ("dice", {"emoji": "🎲", "value": 4}, "dice", "🎲: 4"),
    ],
)
def test_b57_each_content_without_words_is_one_message_with_a_description(
    field: str, content: Json, kind: str, text: str
) -> None:
    got = inbound(message(**{field: content}))
    assert got.kind.value == kind
    assert text in got.text


@pytest.mark.parametrize(
    ("field", "content", "kind", "text"),
    [
        ("video_note", {"file_id": "v", "duration": 5}, "video_note", "[video note, 5 s]"),
        ("audio", {"file_id": "a", "title": "T", "performer": "P"}, "audio", "[audio P - T]"),
        ("animation", {"file_id": "g"}, "animation", "[animation]"),
        ("video", {"file_id": "v", "duration": 9}, "video", "[video, 9 s]"),
        ("story", {"id": 1, "chat": GROUP}, "other", "[story]"),
        ("game", {"title": "Chess"}, "other", "[game: Chess]"),
        ("checklist", {"title": "L", "tasks": [{"text": "t"}]}, "other", "[checklist: L]\n- t"),
        ("venue", {"title": "Cafe", "address": "Road 1"}, "venue", "[venue: Cafe, Road 1]"),
        ("web_app_data", {"data": "picked", "button_text": "b"}, "service", "picked"),
        ("users_shared", {"users": [{"user_id": 5}]}, "service", "[shared: 5]"),
        ("holo", {"x": 1}, "other", "[message: holo]"),
    ],
)
def test_every_other_content_is_told_too(field: str, content: Json, kind: str, text: str) -> None:
    got = inbound(message(**{field: content}))
    assert (got.kind.value, got.text) == (kind, text)


def test_a_rich_message_is_read_from_the_raw_payload() -> None:
    got = inbound(sample("rich"))
    assert got.kind is InboundKind.RICH
    assert got.text == "Plan\nsee this page (https://x.y)\n1. first\na  b"


@pytest.mark.parametrize("text", ["", "  \n", "\u200b\u200d\ufeff", "\u3164", None, 7])
def test_b40_a_message_in_which_nothing_is_visible_says_so(text: object) -> None:
    assert inbound(message(text=text)).text == "[empty message]"


def test_b27_an_edit_carries_the_message_and_its_time() -> None:
    got = edited(sample("edited"))
    assert got.message.request_id == "tg-700100201-41"
    assert (got.message.text, got.edited_at) == ("book a table for two", 1800003660.0)


def test_b29_the_members_of_an_album_name_it_and_keep_their_photos() -> None:
    members = [inbound(sample(f"album_{number}")) for number in (1, 2, 3)]
    assert {m.album for m in members} == {"mg-900001"}
    assert [m.attachments[0].ref for m in members] == ["b0", "b1", "b2"]
    assert [m.text for m in members] == ["which one is cheaper?", "[photo]", "[photo]"]
    assert len({m.request_id for m in members}) == 3


def test_b42_no_name_costs_a_message() -> None:
    odd = "👨‍👩" * 64
    who = {"id": 5, "is_bot": False, "first_name": odd, "last_name": "x" * 64}
    got = inbound(message(from_=who, chat=GROUP | {"title": "T" * 255}, text="hi"))
    assert got.sender.name == f"{odd} {'x' * 64}"
    assert got.chat_name == "T" * 255


def test_b51_ids_beyond_32_bits_stay_exact() -> None:
    who = ADA | {"id": 4503599627370495}
    got = inbound(
        message(chat={"id": -1001234567890123, "type": "supergroup"}, from_=who, text="x")
    )
    assert got.address.chat == "-1001234567890123"
    assert (got.sender.id, got.request_id) == ("4503599627370495", "tg--1001234567890123-41")


def test_b101_a_press_is_a_message_with_the_label_as_its_text() -> None:
    got = inbound(sample("button"))
    assert (got.kind, got.text, got.button) == (InboundKind.BUTTON, "Coffee", "opt:2")
    assert got.callback_id == "4382bfdwdsb323b2d9"
    assert got.request_id == "tgcb-4382bfdwdsb323b2d9"
    assert got.quoted == Quoted("90", "Which one?", from_us=True)


def test_b101_a_press_under_a_message_without_keyboard_has_its_data_as_text() -> None:
    query = {"id": "cq1", "from": ADA, "data": "opt:2"}
    shown = {"message_id": 90, "date": 1800003600, "chat": PRIVATE}
    got = inbound({"update_id": 1, "callback_query": query | {"message": shown}})
    assert (got.request_id, got.text, got.button) == ("tgcb-cq1", "opt:2", "opt:2")
    old = inbound(sample("button_old_message"))
    assert (old.address.chat, old.text) == ("700100201", "opt:9")


def test_a_press_id_that_is_no_plain_name_still_gives_a_valid_request_id() -> None:
    query = sample("button")["callback_query"] | {"id": "a/b" * 40}
    got = inbound({"callback_query": query})
    assert got.callback_id == "a/b" * 40
    assert len(got.request_id) <= 80
    assert "/" not in got.request_id


def test_a_press_in_inline_mode_has_no_chat_and_is_ignored() -> None:
    assert isinstance(event(sample("button_inline")), Ignored)


def test_blocking_and_unblocking_are_told() -> None:
    assert event(sample("blocked")) == Membership(
        Address("700100201"), reachable=False, reason="blocked by the person", at=1800003600.0
    )
    back = event(sample("unblocked"))
    assert isinstance(back, Membership)
    assert back.reachable


@pytest.mark.parametrize(
    ("status", "more", "reachable"),
    [
        ("member", {}, True),
        ("administrator", {}, True),
        ("left", {}, False),
        ("kicked", {}, False),
        ("restricted", {"is_member": True, "can_send_messages": True}, True),
        ("restricted", {"is_member": True, "can_send_messages": False}, False),
        ("restricted", {"is_member": False}, False),
        ("something new", {}, False),
    ],
)
def test_our_status_in_a_group_says_whether_we_can_answer(
    status: str, more: Json, *, reachable: bool
) -> None:
    member = {"user": US, "status": status} | more
    got = event({"my_chat_member": {"chat": GROUP, "date": 1, "new_chat_member": member}})
    assert isinstance(got, Membership)
    assert got.reachable is reachable


def test_another_members_status_is_ignored() -> None:
    member = {"user": ADA, "status": "left"}
    assert isinstance(
        event({"my_chat_member": {"chat": GROUP, "new_chat_member": member}}), Ignored
    )


def test_b49_a_migration_is_the_same_told_by_either_chat() -> None:
    moved = Migrated(Address("-700301"), Address("-1007000000301"))
    assert event(sample("migrated_to")) == moved
    assert event(sample("migrated_from")) == moved


def test_b105_a_channel_post_is_ignored_unless_posts_are_served() -> None:
    assert isinstance(event(sample("channel_post")), Ignored)
    got = inbound(sample("channel_post"), channel_posts=True)
    assert (got.chat_kind, got.sender.id, got.text) == (
        ChatKind.BROADCAST,
        "-1007000000701",
        "news",
    )


def test_a_forwarded_message_names_its_author_even_a_hidden_one() -> None:
    hidden = {"type": "hidden_user", "sender_user_name": "Bo", "date": 1}
    assert inbound(message(text="x", forward_origin=hidden)).forwarded_from == "Bo"
    assert inbound(message(text="x", forward_origin={"type": "new"})).forwarded_from == "?"
    assert inbound(message(text="x")).forwarded_from == ""


def test_text_that_no_database_stores_is_cleaned_and_marks_keep_their_place() -> None:
    marks = [{"type": "mention", "offset": 2, "length": 15}]
    got = inbound(message(chat=GROUP, text="\x00\ud800@relay_test_bot", entities=marks))
    assert got.text == "\ufffd\ufffd@relay_test_bot"
    assert got.addressing is Addressing.MENTION


@pytest.mark.parametrize(
    "update",
    [
        {"message": None},
        {"message": {}},
        {"message": {"chat": PRIVATE}},
        {"message": {"message_id": 1, "chat": {"id": "7"}}},
        {"message": {"message_id": True, "chat": PRIVATE}},
        {"message": {"message_id": 1, "chat": {"id": 1 << 70}}},
        {"callback_query": {"message": {"message_id": 1, "chat": PRIVATE}}},
        {"my_chat_member": {}},
    ],
)
def test_what_names_no_chat_or_message_is_a_payload_error(update: Json) -> None:
    with pytest.raises(PayloadError):
        parse(update, ME)


def test_fields_that_only_the_library_needs_may_be_missing() -> None:
    bare = {"message_id": 9, "chat": {"id": 5}, "text": "hi"}
    got = inbound({"message": bare})
    assert (got.request_id, got.sender.id, got.sent_at) == ("tg-5-9", "5", None)
