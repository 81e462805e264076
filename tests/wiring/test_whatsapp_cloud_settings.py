"""Our numbers at Meta, as a process reads them."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.errors import ConfigurationError
from bot.texts import Words
from bot.wiring.channels import connect, read_settings
from channels.whatsapp_cloud.settings import Number
from tests.clocks import ShiftedClock

GIVEN: dict[str, Any] = {
    "public_url": "https://bot.example.test",
    "meta_phone_number_id": "106540352242922, 106540352242933",
    "meta_access_token": "EAAtokenA,EAAtokenB",
    "meta_app_secret": "s3cret-new,s3cret-old",
    "meta_verify_token": "a-long-word",
}


def given(**values: Any) -> Any:
    return read_settings(_env_file=None, **GIVEN | values)


def test_each_number_has_its_token_or_all_have_the_one() -> None:
    assert given().numbers == [
        Number("106540352242922", "EAAtokenA"),
        Number("106540352242933", "EAAtokenB"),
    ]
    assert {n.token for n in given(meta_access_token="one").numbers} == {"one"}


def test_each_number_is_an_account_and_the_first_has_the_path() -> None:
    found = connect(given(), ShiftedClock(), Words.load())
    numbers = [e for e in found if e.channel.name == "whatsapp-cloud"]
    assert [e.channel.account for e in numbers] == ["106540352242922", "106540352242933"]
    assert [[r.path for r in e.routes] for e in numbers] == [["/whatsapp-cloud/webhook"], []]


def test_each_sender_at_twilio_is_an_account_and_the_first_has_the_paths() -> None:
    settings = read_settings(
        _env_file=None,
        public_url="https://bot.example.test",
        twilio_account_sid="AC0",
        twilio_auth_token="token",
        twilio_whatsapp_from="+14155238886, whatsapp:+14155238887",
    )
    found = [e for e in connect(settings, ShiftedClock(), Words.load()) if e.routes or e.records]
    assert [e.channel.account for e in found] == [
        "whatsapp:+14155238886",
        "whatsapp:+14155238887",
    ]
    assert [len(e.routes) for e in found] == [3, 0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"meta_access_token": "a,b,c"}, "META_ACCESS_TOKEN"),
        ({"meta_access_token": ""}, "META_ACCESS_TOKEN is empty"),
        ({"meta_access_token": "to ken,b"}, "META_ACCESS_TOKEN"),
        ({"meta_access_token": "tökén"}, "META_ACCESS_TOKEN"),
        ({"meta_phone_number_id": "+15550100900"}, "META_PHONE_NUMBER_ID"),
        ({"meta_phone_number_id": "1,1"}, "META_PHONE_NUMBER_ID"),
        ({"meta_app_secret": ""}, "META_APP_SECRET"),
        ({"meta_app_secret": " , "}, "META_APP_SECRET"),
        ({"meta_verify_token": ""}, "META_VERIFY_TOKEN"),
        ({"meta_api_version": "26"}, "META_API_VERSION"),
        ({"meta_template_parameters": "{reply}"}, "META_TEMPLATE_PARAMETERS"),
        ({"meta_template_parameters": "[" * 100_000}, "META_TEMPLATE_PARAMETERS"),
        ({"meta_template_parameters": '["{reply}"]'}, "META_TEMPLATE_NAME"),
        ({"public_url": ""}, "PUBLIC_URL"),
    ],
)
def test_b142_what_is_wrong_or_missing_is_named_without_the_value(
    changes: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named) as told:
        given(**changes)
    assert "tökén" not in str(told.value)
    assert "EAAtoken" not in str(told.value)


def test_b142_no_secret_is_shown() -> None:
    for secret in ("EAAtokenA", "EAAtokenB", "s3cret-new", "s3cret-old", "a-long-word"):
        assert secret not in repr(given())
