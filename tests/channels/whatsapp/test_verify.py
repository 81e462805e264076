"""Only what Twilio signed for our public URL gets in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.whatsapp.endpoint import signature_matches
from tests.channels.whatsapp.kit import settings_with
from tests.fakes.twilio.courier import Form
from tests.fakes.twilio.signing import SETTINGS, SIGNATURE, SharedKey, signature, signed_headers

URL = "https://bot.example.test/whatsapp/webhook"
TOKEN = settings_with().twilio_auth_token
FORM: Form = [("MessageSid", "SM" + "1" * 32), ("Body", "hello"), ("From", "whatsapp:+15550100020")]

B59_FORM: Form = [
    ("AccountSid", "AC00000000000000000000000000000001"),
    ("Body", "hello"),
    ("From", "whatsapp:+15550100020"),
    ("MessageSid", "SM00000000000000000000000000000a0b"),
    ("NumMedia", "0"),
    ("To", "whatsapp:+15550100099"),
]


def signed(form: Form, url: str = URL, token: str = TOKEN) -> dict[str, str]:
    return signed_headers(url, form, token, None)


def test_b59_the_signature_is_checked_over_the_public_url() -> None:
    public = "https://bot.example.test/hooks/whatsapp"
    good = {SIGNATURE: "zLudjy9zh9oRe8iBZ+trTLRx5+M="}
    inner = {SIGNATURE: "iOFUKeMKyzNlXmjYDWWg4GiQKNs="}
    elsewhere = signed(B59_FORM, "https://other.example/hooks/whatsapp")
    assert signature_matches(public, B59_FORM, good, settings_with())
    assert not signature_matches(public, B59_FORM, inner, settings_with())
    assert not signature_matches(
        public, B59_FORM, elsewhere | {"X-Forwarded-Host": "other.example"}, settings_with()
    )


def test_b04_another_order_and_a_new_field_do_not_break_the_check() -> None:
    form = [("Brand new", "1"), *reversed(FORM)]
    assert signature_matches(URL, form, signed(form), settings_with())
    assert signature_matches(URL, list(reversed(form)), signed(form), settings_with())


def test_b37_the_raw_value_is_checked_before_any_cleaning() -> None:
    form = [*FORM, ("ProfileName", "Bo\x00b")]
    assert signature_matches(URL, form, signed(form), settings_with())
    cleaned = [*FORM, ("ProfileName", "Bo\ufffdb")]
    assert not signature_matches(URL, cleaned, signed(form), settings_with())


def test_blank_values_and_repeated_names_are_part_of_what_is_signed() -> None:
    form = [*FORM, ("Label", ""), ("MediaUrl0", "b"), ("MediaUrl0", "a"), ("MediaUrl0", "a")]
    assert signature_matches(URL, form, signed(form), settings_with())
    without_blank = [pair for pair in form if pair[1]]
    assert signature_matches(URL, without_blank, signed(without_blank), settings_with())
    assert not signature_matches(URL, form[:-2], signed(form), settings_with())


def test_the_query_is_signed_and_the_fragment_is_not() -> None:
    url = "https://bot.example.test/whatsapp/status?r=7&a=1"
    headers = signed(FORM, url)
    assert signature_matches(url + "#rc=5&rp=all", FORM, headers, settings_with())
    assert not signature_matches(url.partition("?")[0], FORM, headers, settings_with())


def test_header_names_are_read_without_regard_to_case() -> None:
    headers = {name.lower(): value for name, value in signed(FORM).items()}
    assert signature_matches(URL, FORM, headers, settings_with())


def test_the_old_and_the_new_token_are_both_good_while_they_change() -> None:
    rotating = settings_with(twilio_second_auth_token="the-new-token")
    assert signature_matches(URL, FORM, signed(FORM), rotating)
    assert signature_matches(URL, FORM, signed(FORM, token="the-new-token"), rotating)
    assert not signature_matches(URL, FORM, signed(FORM, token="a-third"), rotating)


def test_a_shared_key_signs_with_sha256_and_says_so() -> None:
    headers = signed_headers(URL, FORM, TOKEN, SharedKey("key-1", "the-shared-secret"))
    assert signature_matches(
        URL, FORM, headers, settings_with(twilio_shared_key="the-shared-secret")
    )
    assert not signature_matches(URL, FORM, headers, settings_with(twilio_shared_key="another"))
    assert not signature_matches(URL, FORM, headers, settings_with())


def test_an_empty_secret_never_signs_anything() -> None:
    empty = {SIGNATURE: signature(URL, FORM, "", "sha256"), SETTINGS: "algorithm=HMAC_SHA256"}
    assert not signature_matches(URL, FORM, empty, settings_with(twilio_shared_key=""))
    assert not signature_matches(
        URL,
        FORM,
        {SIGNATURE: signature(URL, FORM, "", "sha1")},
        settings_with(twilio_second_auth_token=""),
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {SIGNATURE: ""},
        {SIGNATURE: "é" * 28},
        {SIGNATURE: "A" * 28, SETTINGS: "key=1,algorithm=ROT13"},
        {SIGNATURE: "A" * 28, SETTINGS: "nonsense"},
    ],
)
def test_a_missing_or_broken_header_is_a_no_and_not_an_error(headers: dict[str, str]) -> None:
    assert not signature_matches(URL, FORM, headers, settings_with(twilio_shared_key="k"))


text = st.text(st.characters(), max_size=20)


@given(url=text, form=st.lists(st.tuples(text, text), max_size=5), given_signature=text)
def test_nothing_that_can_be_posted_raises_or_passes_unsigned(
    url: str, form: Form, given_signature: str
) -> None:
    assert not signature_matches(url, form, {SIGNATURE: given_signature}, settings_with())


storable = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(form=st.lists(st.tuples(storable, storable), max_size=6))
def test_whatever_is_signed_passes(form: Form) -> None:
    assert signature_matches(URL, form, signed(form), settings_with())
