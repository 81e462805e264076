"""The events of a message from Meta: its words, its author, and the things that it is not."""

from __future__ import annotations

import pytest

from bot.domain.delivery import PartState
from bot.domain.message import (
    REQUEST_ID,
    Address,
    Addressing,
    AnsweredByHand,
    ChatKind,
    Edited,
    Event,
    Ignored,
    Inbound,
    InboundKind,
    Migrated,
    Quoted,
    Reported,
    Revoked,
)
from bot.domain.plugin import Payload
from bot.domain.ports import SendRef
from channels.whatsapp_cloud.envelope import parse
from channels.whatsapp_cloud.parse import parse_tag, request_id, status_of, tag
from tests.fakes.meta import payloads
from tests.fakes.meta.payloads import DISPLAY, NUMBER, PERSON
from tests.fakes.recording import Json

AT = 1_800_003_600.0
WAMID = "wamid.HBgLMTU1NTAxMDAxODEVAgASGBIwMDAwMDAwMDAwMDAwMDAwMDEA"
USER = "US.13491208655302741918"


def told(*messages: object, contacts: list[Json] | None = None, **more: object) -> list[Payload]:
    known = [payloads.contact()] if contacts is None else contacts
    change = payloads.change(contacts=known)
    change["value"]["messages"] = list(messages)
    change["value"] |= more
    return list(parse(payloads.raw(payloads.envelope(change)), [NUMBER]))


def event(kind: str, content: object, **more: object) -> Event:
    (payload,) = told(payloads.message(WAMID, AT, kind, content) | more)
    assert not payload.error
    assert payload.account == NUMBER
    (found,) = payload.events
    return found


def message(kind: str, content: object, **more: object) -> Inbound:
    found = event(kind, content, **more)
    assert isinstance(found, Inbound)
    return found


def test_a_text_is_its_words_with_its_author_and_time() -> None:
    said = message("text", {"body": "hi there"})
    assert (said.kind, said.text) == (InboundKind.TEXT, "hi there")
    assert (said.sender.name, said.sender.id) == ("Ada", "+15550100181")
    assert (said.address, said.aliases) == (Address("+15550100181"), ("+15550100181",))
    assert (said.sent_at, said.provider_id) == (AT, WAMID)
    assert said.addressing is Addressing.PRIVATE


def test_a_name_of_ours_shows_no_phone_number_and_is_another_at_each_number() -> None:
    names = {request_id(number, WAMID) for number in (NUMBER, "106540352242933")}
    assert len(names) == 2
    assert all(REQUEST_ID.fullmatch(name) and name.startswith("wac-") for name in names)


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        ({"image": {"id": "7"}}, InboundKind.PHOTO, "[a photo]"),
        ({"image": {"id": "7", "caption": "see"}}, InboundKind.PHOTO, "see"),
        ({"video": {"id": "7"}}, InboundKind.VIDEO, "[a video]"),
        ({"audio": {"id": "7"}}, InboundKind.AUDIO, "[an audio file]"),
        ({"audio": {"id": "7", "voice": True}}, InboundKind.VOICE, "[a voice message]"),
        ({"document": {"id": "7", "filename": "a.pdf"}}, InboundKind.DOCUMENT, "[a document]"),
        ({"sticker": {"id": "7", "animated": True}}, InboundKind.STICKER, "[a sticker]"),
    ],
)
def test_a_file_is_named_by_its_id_and_described(
    content: Json, kind: InboundKind, words: str
) -> None:
    ((name, raw),) = content.items()
    raw |= {"mime_type": "audio/ogg; codecs=opus", "sha256": "c2hh", "url": "https://lookaside/x"}
    said = message(name, raw)
    assert (said.kind, said.text) == (kind, words)
    (file,) = said.attachments
    assert (file.ref, file.mime) == ("7 c2hh", "audio/ogg; codecs=opus")
    assert file.name == raw.get("filename", "")


@pytest.mark.parametrize("content", [None, {}, [], "x", {"id": 7}, {"id": None}])
def test_a_file_without_its_id_is_still_somebodys_message(content: object) -> None:
    said = message("image", content)
    assert (said.text, said.attachments) == ("[a photo]", ())


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"latitude": 0, "longitude": 0}, "[a location: 0, 0]"),
        (
            {"latitude": 52.5, "longitude": "13.4", "name": "Zoo", "address": "Way 1"},
            "[a location: 52.5, 13.4 (Zoo, Way 1)]",
        ),
        ({"latitude": None, "longitude": 1}, "[a message that can't be shown: location]"),
        ({}, "[a message that can't be shown: location]"),
    ],
)
def test_a_place_is_told_zero_degrees_too(raw: Json, words: str) -> None:
    assert message("location", raw).text == words


def test_contact_cards_are_told() -> None:
    cards = [
        {
            "name": {"formatted_name": "Bob B", "first_name": "Bob"},
            "phones": [{"phone": "+1 555 0100", "wa_id": "15550100"}, None],
            "org": {"company": "Inc"},
            "emails": [{"email": "b@example.org"}],
        },
        {"name": {"first_name": "Eve", "last_name": "E"}, "phones": 7},
        7,
    ]
    said = message("contacts", cards)
    assert said.kind is InboundKind.CONTACT
    assert said.text == "[a contact card: Bob B, Inc, +1 555 0100, b@example.org; Eve E]"
    assert message("contacts", None).text == "[a contact card]"


@pytest.mark.parametrize(
    ("kind", "raw", "words", "data"),
    [
        ("interactive", {"list_reply": {"id": "r1", "title": "Tuesday"}}, "Tuesday", "r1"),
        ("interactive", {"button_reply": {"id": "b1", "title": "Yes"}}, "Yes", "b1"),
        ("interactive", {"button_reply": {"id": "b1", "title": " "}}, "b1", "b1"),
        ("button", {"payload": "YES", "text": "Yes"}, "Yes", "YES"),
        ("button", {"text": "Yes"}, "Yes", "Yes"),
    ],
)
def test_a_choice_is_its_label_and_its_data(kind: str, raw: Json, words: str, data: str) -> None:
    said = message(kind, raw)
    assert (said.kind, said.text, said.button) == (InboundKind.BUTTON, words, data)


def test_a_filled_in_form_is_told_as_it_came() -> None:
    form = {"type": "nfm_reply", "nfm_reply": {"body": "Sent", "response_json": "{not\njson"}}
    said = message("interactive", form)
    assert (said.kind, said.text) == (InboundKind.RICH, "[a filled-in form: {not json]")


def test_an_order_is_told_item_by_item() -> None:
    item = {"product_retailer_id": "sku-1", "quantity": 2, "item_price": 3.5, "currency": "EUR"}
    said = message("order", {"catalog_id": "1", "text": "soon please", "product_items": [item, 7]})
    assert said.text == "soon please\n[an order: sku-1 x 2, 3.5 EUR]"
    many = message("order", {"product_items": [item | {"quantity": "1"}] * 60})
    assert "sku-1 x 1, 3.5 EUR" in many.text
    assert many.text.endswith("and 10 more]")
    assert message("order", {}).text == "[an order: nothing]"


def test_the_ad_that_led_here_is_told_with_the_words() -> None:
    ad = {"source_url": "https://fb.me/x", "headline": "Sale", "body": "Half [price]"}
    said = message("text", {"body": "I saw the ad"}, referral=ad | {"ctwa_clid": "c1"})
    assert said.text == "I saw the ad\n[from an ad: Sale, Half (price), https://fb.me/x]"
    assert said.extra["referral_headline"] == "Sale"
    assert said.extra["referral_click_id"] == "c1"


@pytest.mark.parametrize(
    ("kind", "more", "named"),
    [
        ("unsupported", {"unsupported": {"type": "poll_creation"}}, "poll_creation"),
        ("unsupported", {"errors": [{"code": 131051}]}, "unsupported"),
        ("unknown", {}, "unknown"),
        ("interactive", {}, "interactive"),
        (
            "interactive",
            {"interactive": {"type": "call_permission_reply"}},
            "call_permission_reply",
        ),
        ("hologram", {"hologram": {"a": 1}}, "hologram"),
        ("", {}, "unknown"),
    ],
)
def test_what_can_not_be_shown_is_answered_all_the_same(kind: str, more: Json, named: str) -> None:
    said = message(kind, None, **more)
    assert (said.kind, said.text) == (
        InboundKind.OTHER,
        f"[a message that can't be shown: {named}]",
    )


def test_a_message_without_its_type_is_what_it_has() -> None:
    raw = payloads.message(WAMID, AT, "text", {"body": "hi"})
    del raw["type"]
    (payload,) = told(raw)
    (found,) = payload.events
    assert isinstance(found, Inbound)
    assert found.text == "hi"


@pytest.mark.parametrize(
    "kind", ["reaction", "request_welcome"], ids=["a reaction", "a chat that was opened"]
)
def test_what_says_nothing_is_kept_and_answered_by_nothing(kind: str) -> None:
    found = event(kind, {"message_id": "wamid.gone", "emoji": "\U0001f44d"})
    assert isinstance(found, Ignored)
    assert kind in found.reason


def test_an_edit_names_the_message_that_it_changes() -> None:
    said = {"type": "text", "text": {"body": "new words"}, "context": {"id": "M0"}}
    found = event("edit", {"original_message_id": "wamid.first", "message": said})
    assert isinstance(found, Edited)
    assert found.edited_at == AT
    assert found.message.request_id == request_id(NUMBER, "wamid.first")
    assert (found.message.text, found.message.quoted) == ("new words", None)


def test_a_deletion_names_the_message_that_goes() -> None:
    found = event("revoke", {"original_message_id": "wamid.first"})
    address = Address("+15550100181")
    assert found == Revoked(address, request_id(NUMBER, "wamid.first"), AT)


@pytest.mark.parametrize("kind", ["edit", "revoke"])
@pytest.mark.parametrize("raw", [None, {}, {"original_message_id": 7}, {"original_message_id": ""}])
def test_a_change_of_no_message_is_a_dead_letter(kind: str, raw: object) -> None:
    (payload,) = told(payloads.message(WAMID, AT, kind, raw))
    assert payload.error
    assert not payload.events


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "user_changed_number", "wa_id": "15550100777", "user_id": "US.2"},
        {"type": "user_changed_number", "new_wa_id": "15550100777", "user_id": "US.2"},
    ],
)
def test_who_has_a_new_number_is_found_under_both_new_names(raw: Json) -> None:
    (payload,) = told(payloads.message(WAMID, AT, "system", raw), contacts=[])
    old = Address("+15550100181")
    assert payload.events == (
        Migrated(old, Address("US.2")),
        Migrated(old, Address("+15550100777"), left=True),
    )


def test_who_has_a_new_id_is_still_reached_at_the_number() -> None:
    raw = {"type": "user_changed_user_id", "user_id": "US.2", "previous_user_id": "US.1"}
    (payload,) = told(payloads.message(WAMID, AT, "system", raw), contacts=[])
    last = payload.events[-1]
    assert isinstance(last, Migrated)
    assert last == Migrated(Address("US.1"), Address("+15550100181"))
    without = payloads.message(WAMID, AT, "system", raw, from_="")
    (payload,) = told(without, contacts=[])
    assert payload.events == (Migrated(Address("US.1"), Address("US.2")),)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        {"type": "customer_identity_changed", "identity": {"hash": "x"}, "user_id": "US.2"},
        {"type": "user_changed_number"},
        {"type": "user_changed_number", "wa_id": PERSON},
        {"type": 7, "wa_id": "15550100777"},
    ],
)
def test_other_news_of_a_person_moves_nobody(raw: object) -> None:
    found = event("system", raw)
    assert isinstance(found, Ignored)


def test_an_id_of_a_person_may_be_long_and_keeps_its_letters() -> None:
    person = f"De.{'aB7' * 60}"
    found = message("text", {"body": "hi"}, **{"from": "", "from_user_id": person})
    assert found.address.chat == found.person == person


def test_a_person_without_a_number_is_known_by_their_id() -> None:
    raw = payloads.message(WAMID, AT, "text", {"body": "hi"}, from_="", user_id=USER)
    named = payloads.contact("", user_id=USER)
    named["profile"]["username"] = "ada.l"
    (payload,) = told(raw, contacts=[payloads.contact("15550100999", "Eve"), named])
    (said,) = payload.events
    assert isinstance(said, Inbound)
    assert (said.address, said.aliases) == (Address(USER), (USER,))
    assert (said.sender.name, said.sender.username) == ("Ada", "ada.l")


@pytest.mark.parametrize("where", ["message", "contact"])
def test_number_and_id_of_one_person_lead_to_one_chat(where: str) -> None:
    raw = payloads.message(WAMID, AT, "text", {"body": "hi"})
    raw |= {"from_user_id": USER} if where == "message" else {}
    (payload,) = told(raw, contacts=[payloads.contact(user_id=USER)])
    (said,) = payload.events
    assert isinstance(said, Inbound)
    assert (said.address, said.aliases) == (Address("+15550100181"), (USER, "+15550100181"))


def test_contacts_are_matched_by_their_names_and_not_by_their_place() -> None:
    both = [payloads.contact("15550100182", "Bob"), payloads.contact()]
    raw = [payloads.message(f"{WAMID}{n}", AT, "text", {"body": "x"}) for n in range(2)]
    raw[0]["from"] = "15550100182"
    names = [p.events[0].sender.name for p in told(*raw, contacts=both)]  # type: ignore[union-attr]
    assert names == ["Bob", "Ada"]


def test_a_message_in_a_group_is_the_groups_and_nobody_elses() -> None:
    said = message("text", {"body": "hi"}, group_id="G1", from_user_id=USER)
    assert (said.address, said.aliases) == (Address("G1"), ())
    assert (said.chat_kind, said.addressing) == (ChatKind.GROUP, Addressing.NOT_US)
    asked = message("text", {"body": f"hi @{DISPLAY}"}, group_id="G1")
    assert asked.addressing is Addressing.MENTION
    context = {"id": "wamid.ours", "from": DISPLAY}
    answer = message("text", {"body": "yes"}, group_id="G1", context=context)
    assert answer.addressing is Addressing.REPLY


def test_a_reply_names_the_message_that_it_answers() -> None:
    said = message("text", {"body": "yes"}, context={"from": DISPLAY, "id": "wamid.gone"})
    assert said.quoted == Quoted("wamid.gone", from_us=True)
    assert said.quoted_request == request_id(NUMBER, "wamid.gone")
    theirs = message("text", {"body": "yes"}, context={"from": PERSON, "id": "wamid.gone"})
    assert theirs.quoted is not None
    assert not theirs.quoted.from_us


@pytest.mark.parametrize("flag", ["forwarded", "frequently_forwarded"])
def test_what_was_forwarded_says_so(flag: str) -> None:
    said = message("text", {"body": "news"}, context={flag: True})
    assert (said.forwarded_from, said.quoted, said.goes_on) == ("somebody", None, True)


def test_our_own_message_is_not_answered() -> None:
    raw = payloads.message(WAMID, AT, "text", {"body": "hi"}, from_=DISPLAY)
    (payload,) = told(raw)
    assert payload.events == (Ignored("our own message"),)


@pytest.mark.parametrize("at", [None, "", "soon", "0", -1, "99999999999999", 1.5, True, []])
def test_a_time_that_is_none_is_not_told(at: object) -> None:
    (payload,) = told(payloads.message(WAMID, AT, "text", {"body": "hi"}) | {"timestamp": at})
    (said,) = payload.events
    assert isinstance(said, Inbound)
    assert said.sent_at is None


@pytest.mark.parametrize(
    ("named", "state"),
    [
        ("sent", PartState.SENT),
        ("delivered", PartState.DELIVERED),
        ("read", PartState.READ),
        ("played", PartState.READ),
        ("failed", PartState.REFUSED),
    ],
)
def test_a_status_carries_the_name_of_our_attempt(named: str, state: PartState) -> None:
    ref = SendRef(part=41, attempt=3, started_at=AT + 0.7)
    raw = payloads.status(WAMID, named, AT, to="", tag=tag(ref), code=131026)
    body = payloads.raw(payloads.envelope(payloads.change(statuses=[raw])))
    (payload,) = parse(body, [NUMBER])
    assert not payload.events
    found = payload.status
    assert found is not None
    assert (found.receipt, found.state, found.provider_status) == (WAMID, state, named)
    assert (found.part, found.attempt, found.began, found.code) == (41, 3, AT, "131026")


@pytest.mark.parametrize(
    "text",
    ["", "ab1.unknown.1", "ab2.1.1.0", "ab1.1.1.zz", "ab1.9999999999999999999.1.0", "x" * 600],
)
def test_a_tag_of_somebody_else_names_no_part_of_ours(text: str) -> None:
    assert parse_tag(text) == (0, 0, 0.0)


def test_a_status_of_later_days_still_proves_that_the_message_was_taken() -> None:
    ref = SendRef(part=41, attempt=3, started_at=AT)
    raw = payloads.status(WAMID, "teleported", AT, tag=tag(ref))
    (payload,) = parse(payloads.raw(payloads.envelope(payloads.change(statuses=[raw]))), [NUMBER])
    assert payload.status is not None
    assert (payload.status.part, payload.status.state) == (41, None)
    assert payload.events == (Ignored("unknown status: teleported"),)


@pytest.mark.parametrize("member", ["recipient_participant_id", "recipient_participant_user_id"])
def test_a_failure_for_one_of_a_group_is_told_and_proves_that_the_message_was_taken(
    member: str,
) -> None:
    raw = payloads.status("wamid.x", "failed", 1, to="GR.1", tag="ab1.7.1.1", code=131000)
    found = status_of(raw | {"recipient_type": "group", member: "15550100182"}, "raw")
    assert found.events == (Ignored("failed for one of a group: 131000"),)
    assert found.status is not None
    assert (found.status.state, found.status.part, found.status.code) == (PartState.SENT, 7, "")
    whole = status_of(raw | {"recipient_type": "group"}, "raw").status
    assert whole is not None
    assert whole.state is PartState.REFUSED


@pytest.mark.parametrize(
    "errors", [[{"code": 131047}], [{"code": "131047"}], [None, {"code": 131047}], {"code": 131047}]
)
def test_a_code_is_found_however_it_is_spelled(errors: object) -> None:
    found = status_of(payloads.status("wamid.1", "failed", 1.0) | {"errors": errors}, "")
    assert found.status is not None
    assert found.status.code == "131047"


@pytest.mark.parametrize("wamid", [None, 7, "", "a b", "x" * 501, "wamid.\ud800"])
def test_a_status_that_names_no_message_is_kept(wamid: object) -> None:
    raw = payloads.status(WAMID, "sent", AT) | {"id": wamid}
    (payload,) = parse(payloads.raw(payloads.envelope(payloads.change(statuses=[raw]))), [NUMBER])
    assert payload.status is None
    assert payload.events == (Ignored("a status that names no message"),)
    assert '"status":"sent"' in payload.text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("standby", {"messages": [{"id": "wamid.x"}]}, "standby: another agent"),
        ("account_update", {"event": "ACCOUNT_RESTRICTION"}, "account_update ACCOUNT_RESTRICTION"),
        (
            "phone_number_quality_update",
            {"event": "FLAGGED"},
            "phone_number_quality_update FLAGGED",
        ),
        (
            "phone_number_quality_update",
            {"display_phone_number": DISPLAY, "event": "FLAGGED"},
            "phone_number_quality_update +1…0900 FLAGGED",
        ),
        ("account_alerts", None, "account_alerts"),
    ],
)
def test_news_of_the_account_is_for_its_operators(field: str, value: object, said: str) -> None:
    body = payloads.raw(payloads.envelope({"field": field, "value": value}))
    (payload,) = parse(body, [NUMBER])
    (found,) = payload.events
    assert isinstance(found, Reported)
    assert found.reason.startswith(said)


@pytest.mark.parametrize("field", ["calls", "history", "smb_message_echoes", "brand_new", "", None])
def test_other_fields_are_kept_and_alarm_nobody(field: object) -> None:
    body = payloads.raw(payloads.envelope({"field": field, "value": {"x": [1]}}))
    (payload,) = parse(body, [NUMBER])
    (found,) = payload.events
    assert isinstance(found, Ignored)
    assert '"x":[1]' in payload.text


def test_an_error_without_a_message_is_reported() -> None:
    (payload,) = told(errors=[{"code": 131000, "title": "Something went wrong"}])
    assert payload.events == (Reported("an error 131000: Something went wrong"),)


def test_what_a_person_of_ours_wrote_by_hand_is_told_with_whom_it_is_for() -> None:
    echo = payloads.message("wamid.1", 1_800_003_600, "text", {"body": "by hand"}, from_=DISPLAY)
    echo |= {"to": PERSON, "to_user_id": "US.1"}
    change = payloads.change(field="smb_message_echoes", message_echoes=[echo])
    (payload,) = parse(payloads.raw(payloads.envelope(change)), [NUMBER])
    assert payload.account == NUMBER
    assert payload.events == (
        AnsweredByHand(
            Address(f"+{PERSON}"), "by hand", "wamid.1", 1_800_003_600.0, (f"+{PERSON}", "US.1")
        ),
    )
