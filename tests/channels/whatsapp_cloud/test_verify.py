"""Only Meta gets in: its signature over the very bytes, and the word that it asks for."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from pydantic import ValidationError

from bot.domain.plugin import NotAuthentic, Posted
from channels.whatsapp_cloud.endpoint import Posts, signature_matches
from channels.whatsapp_cloud.settings import PATH, MetaSettings
from tests.fakes.meta import payloads
from tests.fakes.meta.payloads import NUMBER


def configured(**more: str) -> MetaSettings:
    given = {
        "public_url": "https://bot.example.org",
        "meta_phone_number_id": NUMBER,
        "meta_access_token": "token",
        "meta_app_secret": "s3cret-new, s3cret-old",
        "meta_verify_token": "the word",
    } | more
    return MetaSettings(**given)  # type: ignore[arg-type]


def signed(body: bytes, secret: str) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


BODY = payloads.raw(
    payloads.envelope(
        payloads.change(messages=[payloads.message("wamid.1", 1.0, "text", {"body": "é@/"})])
    )
)


@pytest.mark.parametrize("secret", ["s3cret-new", "s3cret-old"])
def test_a_post_signed_with_either_secret_is_read(secret: str) -> None:
    headers = {"X-Hub-Signature-256": signed(BODY, secret)}
    (payload,) = Posts(configured(meta_verify_token="word")).read(Posted(PATH, {}, headers, BODY))
    assert payload.events


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256=",
        "sha256=0",
        signed(BODY, "s3cret-foreign"),
        signed(BODY, ""),
        signed(BODY, "s3cret-new").removeprefix("sha256="),
        signed(BODY, "s3cret-new").replace("sha256", "sha1"),
        signed(json.dumps(json.loads(BODY)).encode(), "s3cret-new"),
        "sha256=\ud800",
    ],
    ids=["none", "empty", "short", "foreign", "unkeyed", "bare", "sha1", "rewritten", "odd"],
)
def test_a_post_that_is_not_signed_for_us_is_refused(signature: str) -> None:
    posts = Posts(configured(meta_verify_token="word"))
    with pytest.raises(NotAuthentic):
        posts.read(Posted(PATH, {}, {"X-Hub-Signature-256": signature}, BODY))


def test_without_a_secret_nothing_is_taken() -> None:
    assert not signature_matches(BODY, signed(BODY, ""), [])
    with pytest.raises(ValidationError, match="META_APP_SECRET is empty"):
        configured(meta_verify_token="word", meta_app_secret=" , ")


def test_the_challenge_is_answered_to_who_knows_the_word() -> None:
    posts = Posts(configured(meta_verify_token="word"))
    asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": "word"}
    assert posts.challenge(asked) == "1158201444"
    for wrong in (
        asked | {"hub.verify_token": "other"},
        asked | {"hub.verify_token": ""},
        asked | {"hub.mode": "unsubscribe"},
        {"hub.mode": "subscribe", "hub.challenge": "1"},
        {},
    ):
        with pytest.raises(NotAuthentic):
            posts.challenge(wrong)
