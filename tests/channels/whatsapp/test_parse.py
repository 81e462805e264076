"""Every form that Twilio sends becomes one event, and none is lost over a detail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.message import (
    REQUEST_ID,
    Address,
    ChatKind,
    Ignored,
    Inbound,
    InboundKind,
    PayloadError,
    clean,
)
from channels.whatsapp.parse import TwilioMessage, parse, parse_message
from tests.channels.whatsapp.kit import PERSON, samples
from tests.fakes.twilio.forms import EVERY_KIND, inbound_form
from tests.fakes.twilio.server import ACCOUNT, SENDER

FORMS = samples()
SID = "SM00000000000000000000000000000a09"


def form(**fields: str) -> dict[str, str]:
    return dict(FORMS["text"]["form"]) | fields


def one(raw: dict[str, str]) -> Inbound:
    (event,) = parse(raw, SENDER)
    assert isinstance(event, Inbound)
    return event


@pytest.mark.parametrize("name", FORMS)
def test_a_recorded_form_becomes_the_message_that_it_is(name: str) -> None:
    raw, expect = FORMS[name]["form"], FORMS[name]["expect"]
    message = one(raw)
    sid = raw.get("MessageSid") or raw["SmsSid"]
    assert message.request_id == f"wa-{sid}"
    assert message.provider_id == sid
    assert (message.kind, message.text) == (InboundKind(expect["kind"]), expect["text"])
    assert message.chat_kind is ChatKind.PRIVATE
    assert [a.kind for a in message.attachments] == expect.get("files", [])
    assert message.address == Address(expect.get("address", PERSON))
    assert message.button == expect.get("button", "")
    assert message.forwarded_from == expect.get("forwarded", "")
    assert expect.get("extra", {}).items() <= message.extra.items()
    if "aliases" in expect:
        assert list(message.aliases) == expect["aliases"]
        assert message.sender.id == expect["sender"]
    if "quoted" in expect:
        assert message.quoted is not None
        assert message.quoted.provider_id == expect["quoted"]
        assert message.quoted.from_us == expect["from_us"]


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_kind_of_the_fake_is_a_message(name: str) -> None:
    fields = inbound_form(
        sid=SID, account=ACCOUNT, from_=PERSON, to=SENDER, body="", fields=EVERY_KIND[name]
    )
    assert one(dict(fields)).text.strip()


def test_a_file_keeps_its_address_and_type() -> None:
    raw = FORMS["image"]["form"]
    (file,) = one(raw).attachments
    assert (file.ref, file.mime) == (raw["MediaUrl0"], "image/jpeg")


def test_the_scoped_id_and_the_phone_are_names_of_one_person() -> None:
    raw = form()
    message = one(raw)
    assert message.aliases == (raw["ExternalUserId"], PERSON)
    assert message.sender.id == raw["ExternalUserId"]
    assert message.sender.name == "Ada"


def test_b04_another_order_and_a_new_field_make_the_same_message() -> None:
    raw = form(MessageSid="SM00000000000000000000000000000a02")
    again = dict(reversed(raw.items())) | {"BrandNew": "1"}
    assert one(again) == one(raw)


def test_b109_the_reply_goes_to_the_exact_address_of_the_message() -> None:
    raw = form(From="whatsapp:+5210055550012", WaId="5210055550012")
    message = one(raw | {"MessageSid": "SM00000000000000000000000000000a0f"})
    assert message.address == Address("whatsapp:+5210055550012")
    assert message.aliases[-1] == "whatsapp:+5210055550012"


def test_b37_nul_is_replaced_and_noted() -> None:
    message = one(form(Body="hi\x00there", ProfileName="Bo\x00b", MessageSid=SID))
    assert message.text == "hi\ufffdthere"
    assert message.sender.name == "Bo\ufffdb"
    assert message.extra["cleaned"] == "Body,ProfileName"


def test_b42_a_name_of_500_characters_is_kept_whole() -> None:
    name = "\U0001f468\u200d\U0001f469" * 166
    assert one(form(ProfileName=name)).sender.name == name


def test_b57_what_has_no_words_is_described() -> None:
    for name in ("voice", "sticker", "contacts", "location"):
        assert one(FORMS[name]["form"]).text.startswith("[a")


@pytest.mark.parametrize("name", samples("status_form"))
def test_a_status_on_the_message_url_makes_no_run(name: str) -> None:
    (event,) = parse(samples("status_form")[name]["status_form"], SENDER)
    assert isinstance(event, Ignored)


@pytest.mark.parametrize(
    "fields",
    [
        {"From": SENDER, "To": PERSON},
        {"From": SENDER},
        {"Direction": "outbound-api"},
        {"From": "+15550100015"},
        {"To": "whatsapp:+15550100098"},
    ],
)
def test_our_own_words_other_channels_and_other_senders_make_no_run(
    fields: dict[str, str],
) -> None:
    (event,) = parse(form(**fields), SENDER)
    assert isinstance(event, Ignored)


@pytest.mark.parametrize(
    "fields",
    [
        {"MessageSid": "", "SmsMessageSid": "", "SmsSid": ""},
        {"MessageSid": "../../etc"},
        {"MessageSid": "S" * 200},
        {"From": ""},
    ],
)
def test_what_can_not_be_named_or_answered_is_a_dead_letter(fields: dict[str, str]) -> None:
    with pytest.raises(PayloadError):
        parse(form(**fields), SENDER)


names = st.sampled_from(sorted({name for s in FORMS.values() for name in s["form"]}))
values = st.text(st.characters(), max_size=30)


@given(raw=st.dictionaries(names | values, values, max_size=12))
def test_no_form_raises_anything_but_a_dead_letter(raw: dict[str, str]) -> None:
    try:
        (event,) = parse(raw, SENDER)
    except PayloadError:
        return
    assert isinstance(event, Inbound | Ignored)
    if isinstance(event, Inbound):
        assert REQUEST_ID.fullmatch(event.request_id)


@given(changes=st.dictionaries(names, values, max_size=4))
def test_a_message_with_a_sid_and_a_sender_is_never_lost(changes: dict[str, str]) -> None:
    fixed = {"MessageSid": SID, "From": PERSON, "To": SENDER, "SmsStatus": "received"}
    message = one(form(**changes) | fixed)
    assert message.text.strip()
    assert message.text == clean(message.text)


def listed(**changes: Any) -> dict[str, Any]:
    row = {
        "sid": SID,
        "direction": "inbound",
        "from": PERSON,
        "to": SENDER,
        "body": "hello",
        "date_created": "Fri, 15 Jan 2027 08:00:00 +0000",
        "num_media": "0",
        "status": "received",
        "error_code": None,
    }
    return row | changes


def test_a_listed_message_has_the_same_name_as_its_form_and_a_time() -> None:
    message = parse_message(TwilioMessage.of(listed()))
    assert message.request_id == one(form(MessageSid=SID)).request_id
    assert (message.text, message.sent_at) == ("hello", 1_800_000_000.0)
    assert message.address == Address(PERSON)
    assert message.aliases == (PERSON,)


def test_a_listed_message_whose_file_is_gone_still_says_that_there_was_one() -> None:
    assert parse_message(TwilioMessage.of(listed(body="", num_media="1"))).kind is InboundKind.OTHER


@pytest.mark.parametrize("changes", [{"sid": None}, {"from": None}, {"sid": 5}, {"from": {}}])
def test_a_row_without_a_name_or_sender_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PayloadError):
        parse_message(TwilioMessage.of(listed(**changes)))


@pytest.mark.parametrize("date", [None, "", "yesterday", 17, "Fri, 99 Foo 2026"])
def test_a_row_without_a_usable_time_is_still_a_message(date: object) -> None:
    assert parse_message(TwilioMessage.of(listed(date_created=date))).sent_at is None


def test_the_name_of_a_field_that_no_database_takes_is_cleaned_like_its_value() -> None:
    [told] = parse(form(**{"a\ud800b": "\x00"}), SENDER)
    assert isinstance(told, Inbound)
    assert told.extra["cleaned"] == "a\ufffdb"
