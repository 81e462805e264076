"""The bot itself: configuration, the secret, polling, the webhook, the command menu."""

from __future__ import annotations

import asyncio

import pytest

from bot.domain.errors import ConfigurationError
from channels.telegram.account import WebhookInfo
from channels.telegram.endpoint import secret_matches
from channels.telegram.errors import (
    TelegramConflict,
    TelegramMethodUnknown,
    TelegramRefused,
    TelegramTokenInvalid,
    TelegramUnavailable,
)
from channels.telegram.parse import ALLOWED_UPDATES, BotIdentity
from tests.channels.telegram.kit import ME, line, message, settings_with
from tests.fakes.faults import Answer, Fault
from tests.fakes.telegram import faults
from tests.fakes.telegram.server import TOKEN


def test_the_account_is_the_bots_id_and_a_bad_token_is_not_repeated() -> None:
    assert settings_with().telegram_bot_id == "7000000001"
    for bad in ("secretpart", "12:", ":secretpart", "1:secret part", "x1:secretpart"):
        with pytest.raises(ConfigurationError, match="BotFather") as caught:
            settings_with(telegram_bot_token=bad)
        assert "secret" not in str(caught.value)


def test_the_configuration_never_shows_the_token() -> None:
    assert "TEST-token" not in repr(settings_with())


@pytest.mark.parametrize(
    "header", [None, "", "wrong", "SECRET-1", "secret-1 ", "sécret-1", "\ud800"]
)
def test_b61_only_the_exact_secret_opens_the_webhook(header: str | None) -> None:
    assert not secret_matches(header, "secret-1")
    assert not secret_matches(header, "")
    assert secret_matches("secret-1", "secret-1")


async def test_we_learn_who_we_are() -> None:
    async with line() as at:
        assert await at.channel.me() == BotIdentity(ME.id, ME.username)
        assert at.channel.account == str(ME.id)


async def test_updates_come_raw_and_are_confirmed_by_the_next_offset() -> None:
    async with line() as at:
        update = message(text="hi", holo={"odd": 1})
        at.fake.enqueue(update)
        (got,) = await at.channel.updates(None, 0)
        assert got["message"] == update["message"]
        number = got["update_id"]
        assert isinstance(number, int)
        assert await at.channel.updates(number + 1, 0) == []
        asked = at.fake.calls_of("getUpdates")
        assert "offset" not in asked[0].params
        assert asked[0].params["allowed_updates"] == list(ALLOWED_UPDATES)
        assert at.fake.violations == []


async def test_channel_posts_are_asked_for_only_when_they_are_served() -> None:
    async with line(telegram_channel_posts=True) as at:
        assert {"channel_post", "edited_channel_post"} <= set(at.channel.allowed_updates)
    async with line() as at:
        assert not {"channel_post", "edited_channel_post"} & set(at.channel.allowed_updates)


async def test_a_long_poll_ends_as_soon_as_something_comes() -> None:
    async with line() as at:
        polling = asyncio.ensure_future(at.channel.updates(None, 50))
        await at.fake.wait_for(lambda: at.fake.main.poller)
        at.fake.enqueue(message(text="hi"))
        assert len(await polling) == 1


async def test_a_poll_that_stalls_notices_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("channels.telegram.account.POLL_MARGIN", 0.2)
    async with line() as at:
        at.fake.fail("getUpdates", faults.hang_before_storing())
        with pytest.raises(TelegramUnavailable, match="ReadTimeout"):
            await at.channel.updates(None, 0)
        assert await at.channel.updates(None, 0) == []


async def test_a_hanging_poll_does_not_keep_messages_from_going_out() -> None:
    async with line() as at:
        at.fake.fail("getUpdates", faults.hang_before_storing(), times=None)
        polls = [asyncio.ensure_future(at.channel.updates(None, 50)) for _ in range(8)]
        await at.fake.wait_for(lambda: len(at.fake.calls_of("getUpdates")) == 8)
        await at.send("hello")
        assert at.fake.texts(700100201) == ["hello"]
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faults.unauthorized(), TelegramTokenInvalid),
        (faults.refused(409, "Conflict: terminated by other getUpdates request"), TelegramConflict),
        (faults.refused(400, "Bad Request: no"), TelegramRefused),
        (faults.server_error(), TelegramUnavailable),
        (faults.bad_gateway(), TelegramUnavailable),
        (faults.drop_unread(), TelegramUnavailable),
        (faults.not_json(), TelegramUnavailable),
        (faults.no_result(), TelegramUnavailable),
        (Fault("odd", stores=False, answer=Answer.of(200, {"result": 7})), TelegramUnavailable),
    ],
)
async def test_trouble_is_named_for_what_the_caller_can_do(
    fault: Fault, error: type[Exception]
) -> None:
    async with line() as at:
        for call in (at.channel.me, lambda: at.channel.updates(None, 0), at.channel.webhook_info):
            at.fake.fail("*", fault)
            with pytest.raises(error) as caught:
                await call()
            assert TOKEN not in str(caught.value)


async def test_a_rate_limit_tells_the_poller_how_long_to_wait() -> None:
    async with line() as at:
        at.fake.fail("getUpdates", faults.too_many(5))
        with pytest.raises(TelegramUnavailable) as caught:
            await at.channel.updates(None, 0)
        assert caught.value.retry_after == 5.0


async def test_polling_beside_a_webhook_is_a_conflict_that_says_so() -> None:
    async with line() as at:
        await at.channel.set_webhook("https://bot.example/telegram/webhook", "s3cret")
        with pytest.raises(TelegramConflict, match="webhook is active"):
            await at.channel.updates(None, 0)
        await at.channel.delete_webhook()
        assert await at.channel.updates(None, 0) == []


async def test_the_webhook_is_set_with_everything_named_and_nothing_dropped() -> None:
    async with line() as at:
        await at.channel.set_webhook("https://bot.example/hook", "s3cret")
        (call,) = at.fake.calls
        assert call.params == {
            "url": "https://bot.example/hook",
            "secret_token": "s3cret",
            "allowed_updates": list(ALLOWED_UPDATES),
            "max_connections": 40,
        }
        assert at.fake.violations == []
        with pytest.raises(TelegramRefused, match="secret token"):
            await at.channel.set_webhook("https://bot.example/hook", "not allowed!")


async def test_what_telegram_sees_of_the_webhook() -> None:
    async with line() as at:
        await at.channel.set_webhook("https://bot.example/hook", "s3cret")
        at.fake.main.webhook.last_error = (1800003600, "Wrong response from the webhook: 403")
        assert await at.channel.webhook_info() == WebhookInfo(
            url="https://bot.example/hook",
            pending=0,
            last_error="Wrong response from the webhook: 403",
            last_error_at=1800003600.0,
        )


async def test_the_command_menu_is_set_for_every_language_and_for_the_rest() -> None:
    async with line() as at:
        await at.channel.show_menu({"": [("help", "What I do")], "de": [("help", "Hilfe")]})
        assert [call.params for call in at.fake.calls] == [
            {"commands": [{"command": "help", "description": "What I do"}]},
            {
                "commands": [{"command": "help", "description": "Hilfe"}],
                "language_code": "de",
            },
        ]
        assert at.fake.violations == []


async def test_a_method_that_the_server_lacks_says_nothing_about_the_token() -> None:
    async with line() as at:
        lacking = faults.refused(404, "Not Found")
        at.fake.fail("getWebhookInfo", lacking)
        at.fake.fail("setMyCommands", lacking)
        with pytest.raises(TelegramMethodUnknown, match="no getWebhookInfo"):
            await at.channel.webhook_info()
        with pytest.raises(TelegramRefused):
            await at.channel.show_menu({"": [("help", "What I can do")]})
        at.fake.fail("getMe", lacking)
        with pytest.raises(TelegramTokenInvalid, match=r"\(Not Found\): ask @BotFather for it"):
            await at.channel.me()
