"""WhatsApp's variables reach the channel, or are refused with the fix."""

from __future__ import annotations

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.ports import OutsideWindow
from bot.texts import Words
from bot.wiring import read_settings
from bot.wiring.channels import connect
from channels.whatsapp.channel import WhatsAppChannel
from tests.clocks import ShiftedClock

NEEDED = {
    "TWILIO_ACCOUNT_SID": "AC1",
    "TWILIO_AUTH_TOKEN": "secret-of-twilio",
    "TWILIO_WHATSAPP_FROM": "+14155238886",
    "PUBLIC_URL": "https://bot.example.test/hooks/",
}


def configured_channel() -> WhatsAppChannel:
    """The channel that the environment asks for."""
    [endpoint] = connect(read_settings(_env_file=None), ShiftedClock(), Words.load())
    assert isinstance(endpoint.channel, WhatsAppChannel)
    return endpoint.channel


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)


def test_a_template_with_a_place_for_the_reply_carries_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TWILIO_TEMPLATE_SID", "HX1")
    channel = configured_channel()
    assert channel.traits.outside_window is OutsideWindow.INVITATION
    monkeypatch.setenv("TWILIO_TEMPLATE_VARIABLES", '{"1": "{reply}"}')
    channel = configured_channel()
    assert channel.traits.outside_window is OutsideWindow.ANSWER


def test_choices_have_content_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWILIO_CHOICE_TEMPLATES", '{"2": "HX2", "3": "HX3"}')
    channel = configured_channel()
    assert channel.settings.twilio_choice_templates == {2: "HX2", 3: "HX3"}


def test_statuses_come_to_the_public_url(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = configured_channel()
    assert (
        channel.settings.twilio_status_callback == "https://bot.example.test/hooks/whatsapp/status"
    )
    assert channel.sandbox


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TWILIO_TEMPLATE_VARIABLES", "{reply}"),
        ("TWILIO_TEMPLATE_VARIABLES", "[" * 100_000),
        ("TWILIO_CHOICE_TEMPLATES", '{"two": "HX2"}'),
        ("TWILIO_FALLBACK_URL", "bot.example.test"),
        ("PUBLIC_URL", ""),
        ("PUBLIC_URL", "https://bot.example.test/a path"),
        ("PUBLIC_URL", "https://bot.example.test /"),
        ("LEASE_SECONDS", "inf"),
        ("RUN_DEADLINE", "nan"),
        ("ANSWER_MAX_AGE", "infinity"),
    ],
)
def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as refused:
        read_settings(_env_file=None)
    assert "secret-of-twilio" not in str(refused.value)


def test_variables_need_their_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWILIO_TEMPLATE_VARIABLES", '{"1": "{reply}"}')
    with pytest.raises(ConfigurationError, match="TWILIO_TEMPLATE_SID"):
        read_settings(_env_file=None)
