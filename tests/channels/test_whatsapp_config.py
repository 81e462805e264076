"""A sender's configuration says what is wrong and shows no secret."""

from __future__ import annotations

import pytest

from bot.domain.errors import ConfigurationError
from channels.whatsapp.settings import SANDBOX_SENDER, sender_address
from tests.channels.whatsapp_kit import config


@pytest.mark.parametrize(
    "given",
    ["whatsapp:+14155238886", "+14155238886", " WhatsApp:+1 (415) 523-8886 ", "+1 415 523 8886"],
)
def test_the_sender_is_taken_with_and_without_its_prefix(given: str) -> None:
    assert sender_address(given) == "whatsapp:+14155238886"


@pytest.mark.parametrize("given", ["", "14155238886", "whatsapp:", "whatsapp:+", "+1415523x886"])
def test_what_is_not_a_number_is_refused_with_the_variable_and_the_fix(given: str) -> None:
    with pytest.raises(ConfigurationError, match=r"TWILIO_WHATSAPP_FROM .*\+14155238886"):
        sender_address(given)


def test_no_secret_is_shown() -> None:
    shown = repr(config(second_auth_token="second-token", shared_key="shared-key"))
    for secret in (config().auth_token, "second-token", "shared-key"):
        assert secret not in shown


def test_a_stand_in_for_twilio_serves_every_call() -> None:
    local = config(api_url="http://127.0.0.1:4010/")
    assert local.api_url == local.messaging_base == "http://127.0.0.1:4010"
    assert config().messaging_base == "https://messaging.twilio.com"
    assert config(messaging_url="http://127.0.0.1:1/").messaging_base == "http://127.0.0.1:1"


def test_the_sandbox_is_known_by_its_number() -> None:
    assert config(sender="+1 415 523 8886").sandbox
    assert config(sender=SANDBOX_SENDER).sandbox
    assert not config().sandbox


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"auth_token": ""}, "TWILIO_AUTH_TOKEN"),
        ({"account_sid": "SK123"}, "TWILIO_ACCOUNT_SID"),
        ({"account_sid": "AC/../x"}, "TWILIO_ACCOUNT_SID"),
        ({"api_url": "api.twilio.com"}, "TWILIO_API_URL"),
        ({"status_callback": "/whatsapp/status"}, "PUBLIC_URL"),
        ({"status_callback": "https://my_bot.example/whatsapp/status"}, "PUBLIC_URL"),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        config(**changes)
