"""Whatever keeps a number at Meta from hearing is noticed by the process: named, or put right."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.domain.findings import Check
from bot.operations import webhooks
from bot.operations.reports.stuck import Trouble
from channels.whatsapp_cloud import webhook
from tests.fakes.meta import faults
from tests.fakes.meta.server import APP, NUMBER, OTHER_NUMBER, TOKEN
from tests.kit.whatsapp_cloud import ALONE, TWO
from tests.limits import until
from tests.world import Running, World, open_world

ELSEWHERE = "https://other.example/hook"


@pytest.fixture
async def world(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(webhooks, "_LOOK_EVERY", 0.05)
    for name in ("REST", "REST_IN_TROUBLE", "SUBSCRIPTIONS_EVERY"):
        monkeypatch.setattr(webhook, name, 0.0)
    async with open_world(sqlite_url) as world:
        yield world


async def intake(running: Running) -> Check:
    checks = {check.name: check for check in await running.process.readiness()}
    return checks["intake"]


async def was_ours(running: Running) -> None:
    """Wait until each number was seen to deliver here."""
    watches = [d for d in running.process.doors if isinstance(d, webhooks.WebhookWatch)]
    assert watches
    await until(lambda: all(watch._was_ours for watch in watches))


async def test_a_number_that_leads_elsewhere_is_named(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    running = await world.start(**ALONE)
    await was_ours(running)
    world.meta.numbers[NUMBER].override = ELSEWHERE
    await until(lambda: running.process.cut_off)
    check = await intake(running)
    assert (check.well, ELSEWHERE in check.says) == (False, True)
    assert any(ELSEWHERE in r.getMessage() for r in caplog.records if r.levelname == "ERROR")


async def test_b147_a_dead_token_is_named_with_number_code_and_step_and_the_other_goes_on(
    world: World,
) -> None:
    running = await world.start(**TWO)
    await was_ours(running)
    world.meta.fail("*", faults.unauthorized(), times=None, when=lambda c: c.account == NUMBER)
    await until(lambda: running.process.cut_off)
    check = await intake(running)
    assert check.well, "the other number still hears"
    found = await webhooks.stuck_webhooks(list(running.process.endpoints.values()))
    assert [(item.kind, item.id) for item in found] == [
        (Trouble.WEBHOOK, f"whatsapp-cloud {NUMBER}")
    ]
    for said in (check.says, found[0].why):
        assert all(word in said for word in (NUMBER, "190", "META_ACCESS_TOKEN"))
        assert TOKEN not in said
        assert OTHER_NUMBER not in said


async def test_an_account_that_our_app_no_longer_hears_of_is_subscribed_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    running = await world.start(**ALONE)
    await was_ours(running)
    world.meta.business.subscribed.clear()
    await until(lambda: APP in world.meta.business.subscribed)
    await until(lambda: "did not deliver messages: its webhook was set again" in caplog.text)
    assert (await intake(running)).well
