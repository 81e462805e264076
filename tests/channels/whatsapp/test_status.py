"""Status callbacks about a part of ours."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.delivery import PartState
from bot.domain.message import PayloadError
from bot.domain.ports import SendRef
from channels.whatsapp.parse import callback_url, parse_status
from tests.channels.whatsapp.kit import samples

CALLBACKS = samples("status_form")
SID = "SM00000000000000000000000000000b03"


@pytest.mark.parametrize("name", CALLBACKS)
def test_a_recorded_callback_is_a_witness(name: str) -> None:
    raw, expect = CALLBACKS[name]["status_form"], CALLBACKS[name]["expect"]
    told = parse_status(raw, {"r": "71", "a": "2"})
    state = PartState(expect["state"]) if expect["state"] else None
    assert (told.receipt, told.part, told.attempt) == (SID, 71, 2)
    assert (told.state, told.code) == (state, expect["code"])
    assert told.provider_status == raw["MessageStatus"]


def test_b107_each_status_has_its_own_state_so_that_the_order_can_be_kept() -> None:
    states = [
        parse_status({"MessageSid": SID, "MessageStatus": status}, {}).state
        for status in ("delivered", "sent", "queued", "delivered", "read")
    ]
    delivered, sent, read = PartState.DELIVERED, PartState.SENT, PartState.READ
    assert states == [delivered, sent, None, delivered, read]


@pytest.mark.parametrize("status", ["queued", "accepted", "sending", "scheduled", "brand-new", ""])
def test_a_status_that_tells_nothing_is_kept_in_words_only(status: str) -> None:
    told = parse_status({"MessageSid": SID, "MessageStatus": status}, {"r": "5", "a": "1"})
    assert (told.state, told.provider_status, told.part) == (None, status, 5)


@pytest.mark.parametrize("sid", ["", "   ", "SM 1", "../../x", "S" * 100])
def test_a_callback_that_names_no_message_is_a_dead_letter(sid: str) -> None:
    with pytest.raises(PayloadError):
        parse_status({"MessageSid": sid, "MessageStatus": "sent"}, {})


@pytest.mark.parametrize("value", ["", "x", "-1", "1e9", "9" * 30, "9" * 19, "\u0665"])
def test_a_query_that_is_not_ours_names_no_part(value: str) -> None:
    told = parse_status({"MessageSid": SID, "MessageStatus": "sent"}, {"r": value, "a": value})
    assert (told.part, told.attempt) == (0, 0)


def test_a_code_that_is_not_a_number_is_no_code() -> None:
    form = {"MessageSid": SID, "MessageStatus": "failed", "ErrorCode": "<script>"}
    assert parse_status(form, {}).code == ""


def test_the_callback_url_carries_our_name_and_twilios_overrides() -> None:
    url = callback_url("https://bot.example/whatsapp/status#old", SendRef(71, 2, 0.0))
    assert url == "https://bot.example/whatsapp/status?r=71&a=2&t=0#rc=5&rp=all&ct=1500&rt=4000"
    assert callback_url("https://b.example/s?k=v", SendRef(1, 1, 0.0)).startswith(
        "https://b.example/s?k=v&r=1&a=1&t=0#"
    )


@given(part=st.integers(1, 2**63 - 1), attempt=st.integers(1, 10**6))
def test_our_name_survives_the_way_to_twilio_and_back(part: int, attempt: int) -> None:
    url = callback_url("https://b.example/s", SendRef(part, attempt, 1_800_000_000.7))
    query = dict(parse_qsl(urlsplit(url).query))
    told = parse_status({"MessageSid": SID, "MessageStatus": "sent"}, query)
    assert (told.part, told.attempt) == (part, attempt)
    assert told.began == 1_800_000_000


words = st.text(st.characters(), max_size=20)


@given(
    form=st.dictionaries(
        st.sampled_from(["MessageSid", "SmsSid", "MessageStatus", "ErrorCode", "x"]), words
    ),
    query=st.dictionaries(st.sampled_from(["r", "a", "b"]), words),
)
def test_no_callback_raises_anything_but_a_dead_letter(
    form: dict[str, str], query: dict[str, str]
) -> None:
    try:
        told = parse_status(form, query)
    except PayloadError:
        return
    assert told.receipt


def test_a_status_that_no_database_takes_is_cleaned() -> None:
    told = parse_status({"MessageSid": SID, "MessageStatus": "a\x00b\ud800"}, {})
    assert told.provider_status == "a\ufffdb\ufffd"
