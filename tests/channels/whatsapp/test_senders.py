"""Pointing a sender at us, and what Twilio says about it."""

from __future__ import annotations

import pytest

from bot.domain.errors import ConfigurationError
from channels.whatsapp.records import TwilioUnavailable
from channels.whatsapp.settings import SANDBOX_SENDER
from tests.channels.whatsapp.kit import line
from tests.fakes.twilio import faults

HOOK = "https://bot.example/whatsapp/webhook"
STATUS = "https://bot.example/whatsapp/status"


async def test_the_webhook_is_set_with_retries_and_read_back() -> None:
    async with line() as at:
        before = await at.channel.webhook_info()
        assert not before.retried
        await at.channel.webhook_set(HOOK, "https://second.example/whatsapp", STATUS)
        after = await at.channel.webhook_info()
        assert after.callback_url == f"{HOOK}#rc=5&rp=all&ct=1500&rt=4000&tt=15000"
        assert at.fake.fallback_url.startswith("https://second.example/whatsapp#rc=5")
        assert at.fake.status_url.startswith(f"{STATUS}#rc=5")
        assert (after.status, after.retried) == ("ONLINE", True)
        assert at.fake.violations == []


async def test_overrides_that_the_operator_chose_are_kept() -> None:
    async with line() as at:
        await at.channel.webhook_set(f"{HOOK}#rc=2")
        assert (await at.channel.webhook_info()).callback_url == f"{HOOK}#rc=2"


async def test_a_sender_of_another_account_is_explained() -> None:
    async with line(twilio_whatsapp_from="+15550100098") as at:
        with pytest.raises(ConfigurationError, match="TWILIO_WHATSAPP_FROM"):
            await at.channel.webhook_info()


async def test_the_sandbox_is_explained_and_not_asked_for() -> None:
    async with line(twilio_whatsapp_from=SANDBOX_SENDER) as at:
        with pytest.raises(ConfigurationError, match="console"):
            await at.channel.webhook_set(HOOK)
        assert at.fake.calls == []


async def test_a_twilio_that_does_not_answer_is_unavailable() -> None:
    async with line() as at:
        at.fake.fail("senders", faults.server_error(), times=None)
        with pytest.raises(TwilioUnavailable):
            await at.channel.webhook_info()
        with pytest.raises(TwilioUnavailable):
            await at.channel.webhook_set(HOOK)


async def test_an_api_without_senders_leaves_the_webhook_to_the_console() -> None:
    async with line() as at:
        at.fake.fail("senders", faults.refused(20404), times=None)
        with pytest.raises(ConfigurationError, match="console"):
            await at.channel.webhook_info()
