"""Whatever keeps messages from coming in is noticed by the process itself: named, or repaired."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.domain.findings import Check
from bot.operations import webhooks
from bot.operations.reports.stuck import Stuck, Trouble, find_stuck
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio import faults as twilio_faults
from tests.fakes.updates import Person
from tests.limits import until
from tests.world import PUBLIC, SECRET, Running, World, open_world

URL = f"{PUBLIC}/telegram/webhook"
ELSEWHERE = "https://other.example/hook"
NO_TWILIO: dict[str, Any] = {"twilio_account_sid": ""}
POLLS: dict[str, Any] = {**NO_TWILIO, "public_url": "", "telegram_mode": "polling"}
CONFLICT = telegram_faults.refused(409, "Conflict: terminated by other getUpdates request")


@pytest.fixture
async def world(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(webhooks, "_LOOK_EVERY", 0.05)
    async with open_world(sqlite_url) as world:
        yield world


async def another_sets(world: World, client: Any, **given: object) -> None:
    """Another program with the bot's token sets the webhook."""
    params = {"url": URL, "secret_token": SECRET, **given}
    answer = await client.post(f"{world.telegram.url}/bot{TOKEN}/setWebhook", json=params)
    assert answer.json()["ok"]


async def intake(running: Running) -> Check:
    checks = {check.name: check for check in await running.process.readiness()}
    return checks["intake"]


async def cut_off(running: Running) -> Check:
    """The check, once it names something."""

    await until(lambda: running.process.cut_off)
    return await intake(running)


async def metric(running: Running) -> str:
    text = (await running.client.get(f"{running.url}/metrics")).text
    [line] = [x for x in text.splitlines() if x.startswith("answerback_accounts_cut_off ")]
    return line.split()[1]


async def stuck(running: Running) -> list[Stuck]:
    found = [*await running.process.rt.db.read(find_stuck, 0.0, 15.0)]
    return [*found, *await webhooks.stuck_webhooks(list(running.process.endpoints.values()))]


async def test_b117_update_kinds_that_another_program_narrowed_are_wanted_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    running = await world.start()
    await another_sets(world, running.client, allowed_updates=["message"])

    async def repaired() -> bool:
        states = await webhooks.webhook_states(list(running.process.endpoints.values()))
        return states[0].url == URL and not states[0].missing

    await until(repaired)
    told = "did not deliver callback_query, edited_message, my_chat_member: its webhook was set"
    assert told in caplog.text
    assert (await intake(running)).well


async def test_b117_a_webhook_that_leads_elsewhere_is_named_within_a_look(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    running = await world.start(**NO_TWILIO)
    assert (await intake(running)).well, "it was not ours yet: whoever starts us may set it now"
    await another_sets(world, running.client)
    [watch] = running.process.doors
    assert isinstance(watch, webhooks.WebhookWatch)
    await until(lambda: watch._was_ours)
    await another_sets(world, running.client, url=ELSEWHERE)
    check = await cut_off(running)
    assert (check.well, ELSEWHERE in check.says) == (False, True)
    assert await metric(running) == "1.0"
    assert any(ELSEWHERE in r.getMessage() for r in caplog.records if r.levelname == "ERROR")
    assert [(s.kind, ELSEWHERE in s.why) for s in await stuck(running)] == [(Trouble.WEBHOOK, True)]
    assert (await running.client.get(f"{running.url}/readyz")).status_code == 503
    await another_sets(world, running.client)
    await until(lambda: not running.process.cut_off)
    assert await metric(running) == "0.0"


async def test_a_process_that_still_hears_one_platform_stays_ready(world: World) -> None:
    running = await world.start()
    world.telegram.fail("getWebhookInfo", telegram_faults.unauthorized(), times=None)
    check = await cut_off(running)
    assert check.well
    assert "token" in check.says
    assert TOKEN not in check.says
    world.twilio.fail("senders", twilio_faults.unauthorized(), times=None)
    await until(lambda: len(running.process.cut_off) == 2)
    assert not (await intake(running)).well
    assert {item.id for item in await stuck(running)} == {"telegram", "whatsapp"}


async def test_a_webhook_that_another_program_took_away_is_named(world: World) -> None:
    running = await world.start(**NO_TWILIO)
    await another_sets(world, running.client)
    [watch] = running.process.doors
    assert isinstance(watch, webhooks.WebhookWatch)
    await until(lambda: watch._was_ours)
    await another_sets(world, running.client, url="")
    assert "is not set" in (await cut_off(running)).says


async def test_a_webhook_of_twilios_that_leads_elsewhere_is_named(world: World) -> None:
    running = await world.start()
    watch = running.process.doors[1]
    assert isinstance(watch, webhooks.WebhookWatch)
    await until(lambda: watch._was_ours)
    world.twilio.webhook_url = ELSEWHERE
    check = await cut_off(running)
    assert (check.well, ELSEWHERE in check.says) == (True, True)


async def test_a_token_that_is_taken_back_while_it_is_polled_is_named(world: World) -> None:
    running = await world.start(**POLLS)
    world.telegram.fail("getUpdates", telegram_faults.unauthorized(), times=None)
    world.telegram.enqueue(Person(700_100_262).text("ends the poll that is under way"))
    check = await cut_off(running)
    assert (check.well, "token" in check.says) == (False, True)
    assert {item.kind for item in await stuck(running)} >= {Trouble.CHANNEL_DOWN}


async def test_a_delivery_that_failed_is_named_and_turns_nobody_away(world: World) -> None:
    running = await world.start(**NO_TWILIO)
    await another_sets(world, running.client, secret_token="another-secret")
    world.telegram.enqueue(Person(700_100_261).text("hello"))
    check = await cut_off(running)
    assert (check.well, "403" in check.says) == (True, True)
    assert "403" in (await stuck(running))[0].why


async def test_another_poller_is_named_to_whoever_asks(world: World) -> None:
    world.telegram.fail("getUpdates", CONFLICT, times=None)
    running = await world.start(**POLLS)
    check = await cut_off(running)
    assert (check.well, "another program polls" in check.says) == (False, True)
    assert await metric(running) == "1.0"

    async def noted() -> list[Stuck]:
        return [s for s in await stuck(running) if s.kind.value == "nothing comes in"]

    [found] = await until(noted)
    assert "another program polls" in found.why


async def test_a_webhook_set_beside_polling_is_named(world: World) -> None:
    running = await world.start(**POLLS)
    await another_sets(world, running.client, url=ELSEWHERE)
    assert "webhook" in (await cut_off(running)).says
