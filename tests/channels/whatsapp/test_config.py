"""A sender's configuration says what is wrong and shows no secret."""

from __future__ import annotations

import pytest

from bot.domain.errors import ConfigurationError
from channels.whatsapp.settings import SANDBOX_SENDER
from tests.channels.whatsapp.kit import settings_with


@pytest.mark.parametrize(
    "given",
    ["whatsapp:+14155238886", "+14155238886", " WhatsApp:+1 (415) 523-8886 ", "+1 415 523 8886"],
)
def test_the_sender_is_taken_with_and_without_its_prefix(given: str) -> None:
    assert settings_with(twilio_whatsapp_from=given).twilio_whatsapp_from == "whatsapp:+14155238886"


@pytest.mark.parametrize("given", ["", "14155238886", "whatsapp:", "whatsapp:+", "+1415523x886"])
def test_what_is_not_a_number_is_refused_with_the_variable_and_the_fix(given: str) -> None:
    with pytest.raises(ConfigurationError, match="TWILIO_WHATSAPP_FROM"):
        settings_with(twilio_whatsapp_from=given)


def test_no_secret_is_shown() -> None:
    shown = repr(
        settings_with(twilio_second_auth_token="second-token", twilio_shared_key="shared-key")
    )
    for secret in (settings_with().twilio_auth_token, "second-token", "shared-key"):
        assert secret not in shown


def test_a_stand_in_for_twilio_serves_every_call() -> None:
    local = settings_with(twilio_api_url="http://127.0.0.1:4010/")
    assert local.twilio_api_url == local.twilio_messaging_base == "http://127.0.0.1:4010"
    assert settings_with().twilio_messaging_base == "https://messaging.twilio.com"


def test_the_sandbox_is_known_by_its_number() -> None:
    assert settings_with(twilio_whatsapp_from="+1 415 523 8886").twilio_senders == [SANDBOX_SENDER]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"twilio_auth_token": ""}, "TWILIO_AUTH_TOKEN"),
        ({"twilio_account_sid": "SK123"}, "TWILIO_ACCOUNT_SID"),
        ({"twilio_account_sid": "AC/../x"}, "TWILIO_ACCOUNT_SID"),
        ({"twilio_api_url": "api.twilio.com"}, "TWILIO_API_URL"),
        ({"public_url": "/whatsapp"}, "PUBLIC_URL"),
        ({"public_url": "https://my_bot.example"}, "PUBLIC_URL"),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        settings_with(**changes)
