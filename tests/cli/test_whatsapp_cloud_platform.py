"""Numbers at Meta, as an operator sets up, sees and examines them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bot.cli.output.shapes import chat_shape
from bot.domain.errors import RecordsUnavailable
from bot.domain.findings import Finding, Level
from bot.operations.reports.stuck import Trouble, find_stuck
from bot.operations.webhooks import (
    delete_webhooks,
    set_webhooks,
    webhook_finding,
    webhook_states,
)
from bot.wiring import operator_session
from bot.wiring.observability import refresh
from bot.wiring.operator import examine
from storage.views.chats import chats_listed
from tests.fakes.meta import faults, payloads
from tests.fakes.meta.server import NUMBER, OTHER_NUMBER
from tests.kit.whatsapp_cloud import ALONE, TWO
from tests.world import PUBLIC, World, open_world

HOOK = f"{PUBLIC}/whatsapp-cloud/webhook"


@pytest.fixture
async def world(sqlite_url: str) -> AsyncIterator[World]:
    async with open_world(sqlite_url) as world:
        yield world


async def test_setting_up_two_numbers_while_the_service_runs(world: World) -> None:
    """Meta asks the address for the verify token, and the running process answers."""
    await world.start(**TWO)
    world.meta.business.app.callback = ""
    async with operator_session(world.settings(**TWO)) as made, made.opened():
        said = await set_webhooks(made.endpoints, PUBLIC, drop_pending=False)
        assert said == [
            f"whatsapp-cloud {number} delivers to {HOOK}" for number in (NUMBER, OTHER_NUMBER)
        ]
        states = await webhook_states(made.endpoints)
        assert [webhook_finding(state).level for state in states] == [Level.OK, Level.OK]
        await delete_webhooks(made.endpoints)
        assert [state.url for state in await webhook_states(made.endpoints)] == ["", ""]


async def test_a_number_that_is_refused_keeps_no_other_from_being_set_up(world: World) -> None:
    await world.start(**TWO)
    world.meta.business.app.callback = ""
    world.meta.fail("*", faults.unauthorized(), times=None, when=lambda c: c.account == NUMBER)
    async with operator_session(world.settings(**TWO)) as made, made.opened():
        with pytest.raises(RecordsUnavailable) as caught:
            await set_webhooks(made.endpoints, PUBLIC, drop_pending=False)
    assert all(part in str(caught.value) for part in (NUMBER, "190", f"{OTHER_NUMBER} delivers"))
    assert world.meta.callback_of(OTHER_NUMBER) == HOOK


async def test_the_chats_of_one_person_with_two_numbers_can_be_told_apart(world: World) -> None:
    running = await world.start(**TWO)
    for number in (NUMBER, OTHER_NUMBER):
        await world.meta.person_writes("hello", number=number)
    found = await running.process.rt.db.read(chats_listed)
    assert len({chat.address for chat in found}) == 1
    assert {chat_shape(chat)["account"] for chat in found} == {NUMBER, OTHER_NUMBER}


async def examined(world: World, environment: pytest.MonkeyPatch) -> Sequence[Finding]:
    """The doctor's findings, in the environment of the running service."""
    asked = {*ALONE, "database_url", "public_url", "meta_api_url"}
    for name, value in world.settings(**ALONE).model_dump(include=asked).items():
        environment.setenv(name.upper(), str(value))
    return await examine()


async def test_b148_the_doctor_says_that_another_agent_has_the_number(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await world.start(**ALONE)
    change = payloads.change(
        messages=[payloads.message("wamid.1", 1.0, "text", {"body": "hi"})], field="standby"
    )
    assert (await world.meta.deliver(payloads.envelope(change))).acknowledged
    monkeypatch.chdir(tmp_path)
    found = [one for one in await examined(world, monkeypatch) if one.name == "platform report"]
    assert [one.level for one in found] == [Level.WARNING]
    assert "another agent" in found[0].says
    assert NUMBER in found[0].says


async def test_b147_the_doctor_and_stuck_name_what_a_send_met(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A payment that is not settled shows when something is sent, and nowhere else."""
    running = await world.start(**ALONE)
    world.meta.fail("send", faults.refused(131042), times=None)
    await world.meta.person_writes("hello")
    await world.until("SELECT down_reason FROM accounts", lambda rows: bool(rows[0][0]))
    await refresh(running.process.rt)
    told = (await running.client.get(f"{running.url}/metrics")).text
    assert "answerback_accounts_down 1.0" in told.splitlines()
    monkeypatch.chdir(tmp_path)
    [finding] = [one for one in await examined(world, monkeypatch) if one.name == "sending"]
    found = await running.process.rt.db.read(find_stuck, 0.0, 15.0)
    [down] = [item for item in found if item.kind is Trouble.CHANNEL_DOWN]
    for said in (finding.says, down.why):
        assert all(word in said for word in (NUMBER, "131042", "payment"))


async def test_numbers_that_meta_does_not_answer_for_are_waited_for_at_once(world: World) -> None:
    held = world.meta.fail("*", faults.held_before_storing(), times=None)
    async with operator_session(world.settings(**TWO)) as made, made.opened():
        asking = asyncio.create_task(webhook_states(made.endpoints))
        await world.meta.wait_for(lambda: len(held.hits) == len(made.endpoints))
        held.release()
        states = await asking
    assert {state.channel.split()[-1] for state in states} == {NUMBER, OTHER_NUMBER}
