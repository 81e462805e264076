"""Bodies that hold much, little or nonsense: each member stands by itself, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.message import REQUEST_ID, Edited, Inbound, Revoked, clean
from bot.domain.plugin import Payload
from channels.text import is_blank
from channels.whatsapp_cloud.envelope import parse
from tests.fakes.meta import payloads
from tests.fakes.meta.payloads import NUMBER
from tests.fakes.recording import Json

OTHER = "106540352242933"
NUMBERS = (NUMBER, OTHER)
AT = 1_800_003_600.0


def text(n: int, words: object = "hi", at: float = AT) -> Json:
    return payloads.message(f"wamid.{n}", at, "text", {"body": words})


def read(body: object) -> Sequence[Payload]:
    return parse(json.dumps(body).encode(), NUMBERS)


def words_of(payloads: Sequence[Payload]) -> list[str]:
    return [e.text for p in payloads for e in p.events if isinstance(e, Inbound)]


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        "text",
        [],
        {},
        {"text": None},
        {"text": {"body": 7}},
        {"text": 7},
        {"id": None},
        {"id": 7},
        {"id": ""},
        {"id": "a b"},
        {"id": "x" * 501},
        {"from": None},
        {"from": []},
        {"from": " "},
        {"from": "1" * 200},
        {"group_id": "G 1"},
    ],
    ids=repr,
)
def test_one_bad_member_costs_nobody_else_anything(bad: object) -> None:
    member = text(2) | bad if isinstance(bad, dict) and bad else bad
    change = payloads.change()
    change["value"]["messages"] = [text(1, "one"), member, text(3, "three")]
    found = read(payloads.envelope(change))
    assert words_of(found) == ["one", "three"]
    (dead,) = (payload for payload in found if payload.error)
    assert dead.account == NUMBER
    assert json.dumps(member, separators=(",", ":")) in dead.text


def test_each_member_has_a_piece_of_its_own_with_its_own_contact() -> None:
    known = [payloads.contact(), payloads.contact("15550100182", "Bob")]
    messages = [text(n, "x" * 100) for n in range(50)]
    found = read(payloads.envelope(payloads.change(messages=messages, contacts=known)))
    assert len(found) == 50
    assert all(len(payload.text) < 600 for payload in found)
    assert all("Ada" in payload.text and "Bob" not in payload.text for payload in found)
    again = [parse(payload.text.encode(), NUMBERS) for payload in found]
    assert [list(one) for one in again] == [[payload] for payload in found]


def test_what_stands_around_a_thousand_messages_is_kept_once() -> None:
    members = [text(n, f"message {n}") for n in range(1000)]
    change = payloads.change(messages=members)
    change["value"] |= {"new": "n" * 5000, "metadata": {**change["value"]["metadata"]}}
    body = payloads.envelope(change | {"later": "l" * 5000}, payloads.change(messages=[text(1001)]))
    body["entry"][0]["other"] = "o" * 5000
    told = read(body | {"around": "a" * 5000})
    assert len(words_of(told)) == 1001
    for kept in ("n", "l", "o", "a"):
        assert [kept * 5000 in payload.text for payload in told].count(True) == 1


def test_messages_come_in_the_order_in_which_they_were_written() -> None:
    late, early = text(1, "late", AT + 9), text(2, "early", AT)
    bodies = [payloads.change(messages=[late]), payloads.change(messages=[early])]
    assert words_of(read(payloads.envelope(*bodies))) == ["early", "late"]


def test_what_is_done_to_a_message_within_one_second_comes_behind_it() -> None:
    name = {"original_message_id": "wamid.1"}
    gone = payloads.message("wamid.3", AT, "revoke", name)
    new = payloads.message("wamid.2", AT, "edit", name | {"message": text(1, "new")})
    found = read(payloads.envelope(payloads.change(messages=[gone, new, text(1, "old")])))
    assert [type(payload.events[0]) for payload in found] == [Inbound, Edited, Revoked]


def test_every_entry_and_every_change_is_read() -> None:
    one = payloads.envelope(payloads.change(messages=[text(1, "one")]))
    two = payloads.change(messages=[text(2, "two")], number=OTHER)
    one["entry"] += payloads.envelope(two, payloads.change(messages=[text(3, "three")]))["entry"]
    found = read(one)
    assert words_of(found) == ["one", "two", "three"]
    assert [payload.account for payload in found] == [NUMBER, OTHER, NUMBER]


def test_a_message_for_a_number_that_is_not_ours_says_for_which() -> None:
    (found,) = read(payloads.envelope(payloads.change(messages=[text(1)], number="1999")))
    assert found.account == "1999"
    status = payloads.status("wamid.1", "sent", AT)
    (found,) = read(payloads.envelope(payloads.change(statuses=[status], number="1999")))
    assert (found.account, found.status) == ("", None)


def test_a_change_that_names_no_number_is_for_the_only_one() -> None:
    change = payloads.change(messages=[text(1)])
    del change["value"]["metadata"]
    body = json.dumps(payloads.envelope(change)).encode()
    (found,) = parse(body, [NUMBER])
    assert (found.account, found.error) == (NUMBER, "")
    (found,) = parse(body, NUMBERS)
    assert found.error
    assert "wamid.1" in found.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b"1" * 5_000,
        b"null",
        b"7",
        b'"x"',
        b"[]",
        b"[1]",
        b"{}",
        b'{"object":"whatsapp_business_account"}',
        b'{"object":"whatsapp_business_account","entry":null}',
        b'{"object":"whatsapp_business_account","entry":[{"changes":[]}]}',
        b'{"object":"whatsapp_business_account","entry":7}',
        b'{"object":"whatsapp_business_account","entry":[null,[],"x",{"changes":"x"}]}',
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_body_that_is_none_is_kept_as_it_came(body: bytes) -> None:
    found = parse(body, NUMBERS)
    assert found
    assert all(payload.error for payload in found)
    assert not any(payload.events or payload.status for payload in found)


def test_something_that_is_not_about_whatsapp_is_kept_and_answered_by_nothing() -> None:
    body = payloads.envelope(payloads.change(messages=[text(1)])) | {"object": "page"}
    (found,) = read(body)
    assert not words_of([found])
    assert found.events
    assert not found.error


def test_what_stands_twice_is_read_once_and_kept_whole() -> None:
    body = payloads.raw(payloads.envelope(payloads.change(messages=[text(1, "second")])))
    first = payloads.raw({"m": [text(2, "first")]})[5:-1]
    twice = body.replace(b'"messages":', b'"messages":' + first + b',"messages":')
    found = parse(twice, NUMBERS)
    assert words_of(found) == ["second"]
    (dead,) = (payload for payload in found if payload.error)
    assert "first" in dead.text
    assert "messages" in dead.error


def test_marks_that_no_database_stores_are_replaced_and_a_broken_byte_costs_a_letter() -> None:
    body = payloads.raw(payloads.envelope(payloads.change(messages=[text(1, "a\x00b\ud800c-")])))
    (found,) = parse(body.replace(b"c-", b"c\xff"), NUMBERS)
    assert words_of([found]) == ["a\ufffdb\ufffdc\ufffd"]
    assert clean(found.text) == found.text


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        ("[" * 400 + "]" * 400, 0),
        ("[" * 100_000 + "]" * 100_000, 1),
        ('{"]":' * 2_000 + '"[\\""' + "}" * 2_000, 1),
        ("9" * 5_000, 0),
        ("-" + "9" * 5_000, 0),
        ("1e999", 0),
        ("NaN", 0),
        ('"a\tb\n"', 0),
    ],
    ids=lambda value: repr(value)[:8],
)
def test_b141_a_value_that_no_reader_likes_costs_nobody_else_anything(odd: str, kept: int) -> None:
    body = payloads.raw(
        payloads.envelope(payloads.change(messages=[text(1, "one"), text(2, "two")]))
    )
    whole = body.replace(b'"wamid.2",', b'"wamid.2","odd":' + odd.encode() + b",")
    found = parse(whole, NUMBERS)
    assert words_of(found) == ["one", "two"]
    assert [payload.text == whole.decode() for payload in found if payload.error] == [True] * kept


def test_a_body_of_three_megabytes_is_read() -> None:
    messages = [text(n, "x" * 2_700) for n in range(1_000)]
    body = payloads.raw(payloads.envelope(payloads.change(messages=messages)))
    assert len(body) > 2_700_000
    found = parse(body, NUMBERS)
    assert len(words_of(found)) == 1_000
    assert sum(len(payload.text) for payload in found) < 2 * len(body)


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
_KINDS = (
    "text", "image", "audio", "document", "sticker", "location", "contacts", "interactive",
    "button", "reaction", "order", "system", "edit", "revoke", "unsupported", "referral",
    "context", "errors", "type", "id", "from", "from_user_id", "timestamp", "group_id",
)  # fmt: skip
_INNER = (
    "body", "id", "latitude", "longitude", "name", "phones", "button_reply", "list_reply",
    "nfm_reply", "response_json", "title", "payload", "product_items", "type", "wa_id", "user_id",
    "original_message_id", "message", "headline", "forwarded", "sha256", "caption",
)  # fmt: skip
_MEMBER = st.dictionaries(
    st.sampled_from(_KINDS),
    _ODD
    | st.sampled_from([*_KINDS, "wamid.1", "15550100181"])
    | st.dictionaries(st.sampled_from(_INNER), _ODD, max_size=4),
    max_size=6,
)


@given(st.lists(_MEMBER | _ODD, max_size=3), st.lists(_MEMBER | _ODD, max_size=2), _ODD)
def test_whatever_comes_is_told_or_kept(
    messages: list[object], statuses: list[object], contacts: object
) -> None:
    change = payloads.change()
    change["value"] |= {"messages": [*messages, text(9, "mine")], "statuses": statuses}
    change["value"]["contacts"] = contacts
    found = read(payloads.envelope(change))
    assert "mine" in words_of(found)
    for payload in found:
        assert clean(payload.text) == payload.text
        assert payload.events or payload.error or payload.status is not None
        for event in payload.events:
            said = event.message if isinstance(event, Edited) else event
            if isinstance(said, Inbound):
                assert REQUEST_ID.fullmatch(said.request_id)
                assert not is_blank(said.text)
                assert clean(said.text) == said.text
                assert said.address.chat


@given(_ODD)
def test_whatever_stands_for_a_body_is_kept(body: object) -> None:
    found = read({"object": "whatsapp_business_account", "entry": body})
    assert found
    assert not words_of(found)
    assert read(body)


def test_a_mark_before_the_body_is_no_part_of_it() -> None:
    body = payloads.raw(payloads.envelope(payloads.change(messages=[text(1)])))
    assert words_of(parse(b"\xef\xbb\xbf" + body, NUMBERS)) == ["hi"]


@pytest.mark.parametrize("where", ["messages", "changes", "entries"])
def test_a_body_of_very_many_things_is_one_dead_letter(where: str) -> None:
    many: list[list[object]] = [[]] * 20_000
    change = payloads.change()
    change["value"]["messages"] = many
    body = payloads.envelope(change)
    if where == "changes":
        body["entry"][0]["changes"] = many
    elif where == "entries":
        body["entry"] = [{"changes": [[]]}] * 20_000
    [told] = read(body)
    assert "10000 things" in told.error
    thousand = [text(n) for n in range(1000)]
    assert len(read(payloads.envelope(payloads.change(messages=thousand)))) == 1000


_LARGE = "x" * 1_000_000


@pytest.mark.parametrize(
    "body",
    [
        {"object": "whatsapp_business_account", "entry": [[[]] * 9_000]},
        [[[]] * 9_000],
        {"object": _LARGE, "entry": [{"changes": [{}] * 9_000}]},
        {"object": "whatsapp_business_account", "entry": [{"id": _LARGE, "changes": [7] * 9_000}]},
    ],
    ids=["lists for objects", "a list of lists", "a long object", "a long id"],
)
def test_the_pieces_of_a_body_are_never_many_times_as_large(body: object) -> None:
    told = read(body)
    assert 1 <= sum(len(payload.text) for payload in told) < 30_000_000
    assert all(payload.error or payload.events for payload in told)


def test_a_long_id_beside_many_messages_keeps_the_body_as_one_dead_letter() -> None:
    body = payloads.envelope(payloads.change(messages=[text(n) for n in range(900)]))
    body["entry"][0]["id"] = _LARGE
    [told] = read(body)
    assert told.text == json.dumps(body)
    assert "many times as large" in told.error
