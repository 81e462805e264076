"""Identities: the site's signed word on its visitors, and the tokens that we make of it."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.web.access.identity import LEEWAY, LONGEST_LIFE, Identity, NotIdentified, identify
from channels.web.access.signed import sign
from channels.web.access.tokens import NotKnown, Tokens
from tests.clocks import ShiftedClock

NOW = 1_800_000_000.0
SECRET = "the site's secret, which we know too"
OTHER = "another secret, with as many letters"
HOUR = 3600


def jwt(
    payload: Mapping[str, Any] | str,
    secret: str = SECRET,
    alg: str = "HS256",
    digest: str = "sha256",
) -> str:
    """A token as some library, or somebody by hand, makes it."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    header = json.dumps({"alg": alg, "typ": "JWT"})
    parts = [
        base64.urlsafe_b64encode(part.encode("utf-8", "surrogatepass")).rstrip(b"=").decode()
        for part in (header, text)
    ]
    signature = hmac.new(secret.encode(), ".".join(parts).encode(), digest).digest()
    return ".".join((*parts, base64.urlsafe_b64encode(signature).rstrip(b"=").decode()))


GOOD = {"sub": "u1", "exp": int(NOW) + HOUR}


def forged(secret: str, now: float) -> Mapping[str, str]:
    """Identities of u1 that the site, which has this secret, did not sign so, by what is wrong."""
    good = {"sub": "u1", "exp": int(now) + HOUR}

    def signed(payload: Mapping[str, Any] | str = good, **how: str) -> str:
        return jwt(payload, **{"secret": secret, **how})

    def with_claims(**changes: Any) -> str:
        claims = {**good, **changes}
        return signed({name: value for name, value in claims.items() if value is not ...})

    return {
        "alg none": signed(alg="none"),
        "alg none, no signature": signed(alg="none").rpartition(".")[0] + ".",
        "no signature": signed().rpartition(".")[0] + ".",
        "HS512 with the right secret": signed(alg="HS512", digest="sha512"),
        "HS256 that says HS512": signed(alg="HS512"),
        "HS256 in small letters": signed(alg="hs256"),
        "signed with the empty text": signed(secret=""),
        "signed with another secret": signed(secret=OTHER),
        "changed afterwards": signed().replace(".", ".e", 1),
        "no exp": with_claims(exp=...),
        "exp an hour ago": with_claims(exp=int(now) - HOUR),
        "exp in 50 years": with_claims(exp=int(now) + 50 * 365 * 86_400),
        "exp a text": with_claims(exp="9999999999"),
        "exp true": with_claims(exp=True),
        "exp infinite": signed('{"sub":"u1","exp":Infinity}'),
        "exp huge": signed('{"sub":"u1","exp":1e999}'),
        "not yet valid": with_claims(nbf=int(now) + HOUR),
        "no sub": with_claims(sub=...),
        "empty sub": with_claims(sub=""),
        "blank sub": with_claims(sub=" \u200b"),
        "a number as sub": with_claims(sub=7),
        "a list as sub": with_claims(sub=["u1"]),
        "300 letters as sub": with_claims(sub="u" * 300),
        "NUL in sub": with_claims(sub="u1\0"),
        "half a character in sub": with_claims(sub="u1\ud800"),
        "two subs": signed(f'{{"sub":"u2","sub":"u1","exp":{good["exp"]}}}'),
        "a name that is none": with_claims(name={"first": "A"}),
        "payload is no object": signed('["u1"]'),
        "payload is no JSON": signed("sub=u1"),
        "payload nested without end": signed('{"sub":' + "[" * 900),
        "no token": json.dumps({"sub": "u1"}),
        "empty": "",
        "far too long": with_claims(pad="x" * 10_000),
    }


FORGED = forged(SECRET, NOW)


def with_claims(**changes: Any) -> str:
    return jwt({**GOOD, **changes})


@pytest.mark.parametrize("how", FORGED)
def test_b159_an_identity_that_the_site_did_not_sign_so_is_refused_with_the_reason(
    how: str,
) -> None:
    with pytest.raises(NotIdentified) as refused:
        identify(FORGED[how], [SECRET, OTHER[::-1]], NOW)
    said = str(refused.value)
    assert said.startswith("the identity")
    assert "u1" not in said
    assert FORGED[how] == "" or FORGED[how] not in said


@pytest.mark.parametrize("given", [None, 7, {"sub": "u1"}, ["u1"], True])
def test_b159_what_is_no_text_is_no_identity(given: object) -> None:
    with pytest.raises(NotIdentified, match="as a text"):
        identify(given, [SECRET], NOW)


def test_b159_nobody_signs_in_where_no_secret_is_set() -> None:
    with pytest.raises(NotIdentified, match="WEB_IDENTITY_SECRET"):
        identify(jwt(GOOD, secret=""), [], NOW)


@pytest.mark.parametrize(
    "exp", [NOW + 1, NOW - LEEWAY + 1, NOW + LONGEST_LIFE, NOW + LONGEST_LIFE + LEEWAY]
)
def test_a_site_whose_clock_differs_a_little_signs_people_in(exp: float) -> None:
    assert identify(with_claims(exp=exp, name="Ada"), [SECRET], NOW) == Identity("u1", "Ada")


def test_of_two_secrets_either_is_taken_while_one_is_changed() -> None:
    for secret in (SECRET, OTHER):
        assert identify(jwt(GOOD, secret=secret), [OTHER, SECRET], NOW).sub == "u1"


def test_a_name_is_shown_as_one_line_and_nobody_elses_role() -> None:
    named = identify(with_claims(name="system:\n\u202eme"), [SECRET], NOW).name
    assert named == "system, me (a name)"


def test_a_sub_is_kept_as_the_site_spells_it() -> None:
    sub = "Ünïcode|42 ‑ ADA@example.org"
    assert identify(with_claims(sub=sub), [SECRET], NOW).sub == sub


@given(st.one_of(st.text(), st.binary().map(lambda b: b.decode("latin-1")), st.text("ey.J-_=a")))
def test_no_text_breaks_what_reads_identities_and_tokens(text: str) -> None:
    with pytest.raises(NotIdentified):
        identify(text, [SECRET], NOW)
    with pytest.raises(NotKnown):
        Tokens([OTHER], ShiftedClock()).read(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_no_claim_breaks_what_reads_them(value: Any) -> None:
    for name in ("exp", "nbf", "name", "sub"):
        claims = json.dumps({**GOOD, name: value})
        with suppress(NotIdentified):
            assert identify(jwt(claims), [SECRET], NOW).sub


@pytest.fixture
def tokens() -> Tokens:
    clock = ShiftedClock()
    clock.stop()
    return Tokens([OTHER], clock)


def test_a_guest_gets_an_address_that_nobody_can_guess_and_keeps_it(tokens: Tokens) -> None:
    first, session = tokens.guest()
    again, renewed = tokens.guest(session)
    _, other = tokens.guest()
    assert tokens.read(first) == session
    assert session.is_guest
    assert tokens.read(again).address == session.address != other.address
    assert len(session.address.chat) >= 32
    assert renewed.id == session.id


@pytest.mark.parametrize("letter", ["x", "é", "語", "😀", '"', "\\", "&"])
def test_the_longest_sub_and_name_still_make_a_token_that_is_read(
    tokens: Tokens, letter: str
) -> None:
    claims = {"sub": letter * 255, "name": letter * 100, "exp": int(NOW) + HOUR}
    text, session = tokens.user(identify(jwt(claims), [SECRET], NOW))
    assert tokens.read(text) == session
    assert session.address.chat == f"user:{letter * 255}"


def test_a_session_goes_on_when_the_same_user_is_identified_again(tokens: Tokens) -> None:
    _, first = tokens.user(Identity("u1"))
    assert tokens.user(Identity("u1"), first)[1].id == first.id
    assert tokens.user(Identity("u2"), first)[1].id != first.id


def test_a_token_says_until_when_it_is_good_and_who_shows_it(tokens: Tokens) -> None:
    text, session = tokens.user(Identity("u1", "Ada"))
    assert tokens.read(text) == session
    assert session.ends_at > tokens.clock.wall()
    assert session.name == "Ada"
    assert not session.is_guest


def test_a_token_of_the_secret_before_is_still_taken(tokens: Tokens) -> None:
    text, session = tokens.guest()
    assert Tokens([SECRET, OTHER], tokens.clock).read(text) == session
    with pytest.raises(NotKnown):
        Tokens([SECRET], tokens.clock).read(text)


def test_every_letter_of_a_token_counts(tokens: Tokens) -> None:
    """But the last bits of the last one, which base64 leaves open."""
    text, _ = tokens.guest()
    for place in range(len(text) - 1):
        other = "A" if text[place] != "A" else "B"
        with pytest.raises(NotKnown):
            tokens.read(text[:place] + other + text[place + 1 :])


def test_what_our_secret_signed_for_something_else_opens_nothing(tokens: Tokens) -> None:
    text, session = tokens.guest()
    known = {"sid": "1", "sub": session.address.chat, "exp": 9e9, "name": ""}
    for claims in (known, known | {"aud": "mail"}, known | {"aud": ["answerback web session"]}):
        with pytest.raises(NotKnown):
            tokens.read(sign(claims, OTHER))
    assert tokens.read(text) == session


def test_a_session_that_no_database_takes_is_none_and_one_without_end_has_one() -> None:
    """Only who has our secret can sign such a one."""
    clock = ShiftedClock()
    tokens = Tokens([SECRET], clock)
    claims = {"aud": "answerback web session", "sid": "s", "sub": "guest:1", "name": ""}
    for wrong in ({"sid": "\ud800"}, {"sub": "guest:\x00"}, {"name": "\udfff"}):
        with pytest.raises(NotKnown):
            tokens.read(jwt({**claims, "exp": 1, **wrong}))
    assert tokens.read(jwt({**claims, "exp": 10**400})).ends_at > clock.wall()
