"""Webhooks at the platforms, as an operator sets, sees and deletes them, and the doctor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding, Level
from bot.domain.plugin import WebhookState
from bot.operations.reports.stuck import Trouble
from bot.operations.webhooks import (
    delete_webhooks,
    set_webhooks,
    stuck_webhooks,
    webhook_finding,
    webhook_states,
)
from bot.wiring import OperatorSession, operator_session
from bot.wiring.operator import examine
from tests.cli.asking import call
from tests.e2e.processes import Ground
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio import faults as twilio_faults
from tests.limits import until
from tests.world import PUBLIC, SECRET, World, open_world

URL = f"{PUBLIC}/telegram/webhook"
SANDBOX = "whatsapp:+14155238886"


@pytest.fixture
async def world(sqlite_url: str) -> AsyncIterator[World]:
    async with open_world(sqlite_url) as world:
        yield world


@asynccontextmanager
async def session(world: World, **changes: Any) -> AsyncIterator[OperatorSession]:
    async with operator_session(world.settings(**changes)) as made, made.opened():
        yield made


async def test_setting_points_both_platforms_at_us_with_secret_and_retries(world: World) -> None:
    async with session(world) as made:
        before = {
            state.channel: webhook_finding(state) for state in await webhook_states(made.endpoints)
        }
        assert before["telegram"].level is Level.PROBLEM
        said = await set_webhooks(made.endpoints, PUBLIC, drop_pending=False)
        assert said[0] == f"telegram delivers to {PUBLIC}/telegram/webhook"
        after = [webhook_finding(state) for state in await webhook_states(made.endpoints)]
        assert [finding.level for finding in after] == [Level.OK, Level.OK]
        assert await stuck_webhooks(made.endpoints) == []
    (call,) = world.telegram.calls_of("setWebhook")
    assert call.params["secret_token"] == SECRET
    retries = "#rc=5&rp=all&ct=1500&rt=4000&tt=15000"
    assert world.twilio.webhook_url == f"{PUBLIC}/whatsapp/webhook{retries}"
    assert world.twilio.fallback_url == f"{PUBLIC}/whatsapp/fallback{retries}"
    assert world.twilio.status_url == f"{PUBLIC}/whatsapp/status{retries}"


async def test_deleting_takes_both_away(world: World) -> None:
    async with session(world) as made:
        await set_webhooks(made.endpoints, PUBLIC, drop_pending=False)
        await delete_webhooks(made.endpoints)
        assert [state.url for state in await webhook_states(made.endpoints)] == ["", ""]


async def test_the_sandbox_says_what_to_enter_by_hand(world: World) -> None:
    async with session(world, telegram_bot_token="", twilio_whatsapp_from=SANDBOX) as made:
        said = "\n".join(await set_webhooks(made.endpoints, PUBLIC, drop_pending=False))
        (state,) = await webhook_states(made.endpoints)
    assert "console" in said
    assert f"{PUBLIC}/whatsapp/webhook#rc=5&rp=all&ct=1500&rt=4000&tt=15000" in said
    assert webhook_finding(state).level is Level.WARNING


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"public_url": "", "twilio_account_sid": ""}, "PUBLIC_URL"),
        ({"telegram_mode": "polling"}, "TELEGRAM_MODE"),
    ],
)
async def test_what_can_not_be_set_names_the_variable(
    world: World, changes: dict[str, Any], names: str
) -> None:
    if "public_url" in changes:
        changes = {**changes, "telegram_mode": "polling"}
    async with session(world, **changes) as made:
        with pytest.raises(ConfigurationError, match=names):
            await set_webhooks(made.endpoints, made.settings.public_url, drop_pending=False)


async def test_a_platform_that_refuses_us_is_stuck_with_its_reason(world: World) -> None:
    world.telegram.fail("getWebhookInfo", telegram_faults.unauthorized(), times=None)
    world.twilio.fail("senders", twilio_faults.unauthorized(), times=None)
    async with session(world) as made:
        found = await stuck_webhooks(made.endpoints)
    assert [(item.kind, item.id) for item in found] == [
        (Trouble.WEBHOOK, "telegram"),
        (Trouble.WEBHOOK, "whatsapp"),
    ]
    assert all(TOKEN not in item.why for item in found)


def _state(**changes: Any) -> WebhookState:
    return WebhookState("telegram", **{"url": "https://a", "wanted": "https://a", **changes})


@pytest.mark.parametrize(
    ("state", "level", "word"),
    [
        (_state(pending=0), Level.OK, "https://a"),
        (_state(url="https://b"), Level.PROBLEM, "not https://a"),
        (_state(url=""), Level.PROBLEM, "not set"),
        (_state(wanted=""), Level.PROBLEM, "polled"),
        (_state(url="", wanted=""), Level.OK, "polled"),
        (_state(pending=51), Level.WARNING, "51"),
        (
            _state(error="Wrong response from the webhook: 403 Forbidden", error_age=9.0),
            Level.PROBLEM,
            "403",
        ),
        (_state(error="Connection refused", error_age=9999.0, pending=0), Level.OK, "https://a"),
    ],
)
def test_a_webhook_is_judged_by_what_matters_now(
    state: WebhookState, level: Level, word: str
) -> None:
    finding = webhook_finding(state)
    assert finding.level is level
    assert word in finding.says
    assert bool(finding.fix) == (level is not Level.OK)


async def test_b117_kinds_that_are_not_delivered_are_named_with_the_fix(
    sqlite_ground: Ground,
) -> None:
    ground = sqlite_ground
    assert (await call(ground, "webhook", "set")).code == 0
    narrowed = {"url": URL, "secret_token": SECRET, "allowed_updates": ["message"]}
    bot_api = f"{ground.world.telegram.url}/bot{TOKEN}"
    await ground.client.post(f"{bot_api}/setWebhook", json=narrowed)
    info, examined, stuck = await asyncio.gather(
        call(ground, "webhook", "info", "--json"),
        call(ground, "doctor", "--json"),
        call(ground, "stuck", "--json"),
    )
    assert (info.code, examined.code, stuck.code) == (1, 1, 1)
    kinds = ["callback_query", "edited_message", "my_chat_member"]
    assert info.json[0]["missing"] == kinds
    [found] = [f for f in examined.json if f["name"] == "telegram webhook"]
    assert (", ".join(kinds) in found["says"], found["fix"]) == (True, "answerback webhook set")
    assert [item["kind"] for item in stuck.json] == ["webhook fails"]
    program = await ground.serve()  # which puts it right by itself, and says so
    await until(lambda: "its webhook was set again" in program.output)
    assert (await call(ground, "webhook", "info")).code == 0


@pytest.fixture
def environment(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> pytest.MonkeyPatch:
    """The process's environment, as a service between the fakes has it."""
    monkeypatch.chdir(tmp_path)
    given = world.settings().model_dump(include=set(_VARIABLES))
    for name, value in given.items():
        monkeypatch.setenv(name.upper(), str(value))
    return monkeypatch


_VARIABLES = (
    "database_url",
    "public_url",
    "telegram_bot_token",
    "telegram_mode",
    "telegram_webhook_secret",
    "telegram_api_url",
    "twilio_account_sid",
    "twilio_auth_token",
    "twilio_whatsapp_from",
    "twilio_api_url",
)


async def examined() -> dict[str, Finding]:
    return {finding.name: finding for finding in await examine()}


async def test_the_doctor_finds_a_well_service_well(
    world: World, environment: pytest.MonkeyPatch
) -> None:
    async with session(world) as made:
        await set_webhooks(made.endpoints, PUBLIC, drop_pending=False)
    found = await examined()
    assert [f for f in found.values() if f.level is Level.PROBLEM] == []
    expected = {
        "database",
        "disk",
        "telegram",
        "twilio",
        "twilio clock",
        "telegram webhook",
        "agent",
    }
    assert expected <= set(found)
    assert all(f.fix for f in found.values() if f.level is not Level.OK)


async def test_the_doctor_names_what_is_wrong_and_the_fix(
    world: World, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    environment.setenv("AGENT", "no.such.module:agent")
    world.telegram.fail("getMe", telegram_faults.unauthorized(), times=None)
    world.twilio.fail("list", twilio_faults.unauthorized(), times=None)
    found = await examined()
    broken = {name for name, f in found.items() if f.level is Level.PROBLEM}
    assert broken >= {"redis", "agent", "telegram"}
    assert TOKEN not in str(found)


async def test_the_doctor_names_the_processes_that_an_upgrade_has_not_come_to(
    world: World, environment: pytest.MonkeyPatch
) -> None:
    await world.start()
    await world.start()
    assert "versions" not in await examined()
    ids = await world.rows("SELECT id, name FROM holders ORDER BY id")
    old = f"UPDATE holders SET version = '' WHERE id = {ids[0][0]}"
    await world._beside().write(lambda tx: tx.run(old))
    found = (await examined())["versions"]
    assert found.level is Level.WARNING
    assert found.says.startswith(f"{ids[0][1]} (before 0.2.0) beside this")


async def test_the_doctor_names_a_platform_that_is_set_up_by_half(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("TWILIO_ACCOUNT_SID", "")
    environment.setenv("META_ACCESS_TOKEN", "EAAtoken")
    found = await examined()
    for name, missing, given in (
        ("whatsapp", "TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN"),
        ("whatsapp-cloud", "META_PHONE_NUMBER_ID", "META_ACCESS_TOKEN"),
    ):
        assert found[name].level is Level.WARNING
        assert given in found[name].says
        assert missing in found[name].fix
    assert "EAAtoken" not in str(found)


async def test_the_doctor_reads_an_old_schema(
    environment: pytest.MonkeyPatch, blank_sqlite_url: str, tmp_path: Path
) -> None:
    Path(blank_sqlite_url.removeprefix("sqlite:///")).touch()
    environment.setenv("DATABASE_URL", blank_sqlite_url)
    found = await examined()
    assert found["schema"].fix == "answerback db upgrade"


async def test_the_doctor_tells_of_files_that_everybody_may_read(
    environment: pytest.MonkeyPatch, sqlite_url: str, tmp_path: Path
) -> None:
    environment.chdir(tmp_path)
    environment.setenv("DATABASE_URL", sqlite_url)
    database, env = Path(sqlite_url.removeprefix("sqlite:///")), tmp_path / ".env"
    env.touch()
    for mode, told in ((0o600, False), (0o640, False), (0o644, True)):
        for file in (database, env):
            file.chmod(mode)
        found = await examined()
        assert [name in found for name in (".env", database.name)] == [told, told]
        if told:
            assert found[".env"].level is Level.WARNING
            assert found[".env"].fix == "chmod o= .env"
