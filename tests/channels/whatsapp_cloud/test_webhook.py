"""A number's webhook at Meta, as an operator sets, sees and deletes it, and the doctor."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.errors import RecordsUnavailable
from bot.domain.findings import Level
from bot.operations.webhooks import webhook_finding
from channels.whatsapp_cloud import webhook
from channels.whatsapp_cloud.examine import examine
from tests.channels.whatsapp_cloud.number import ELSEWHERE, HOOK, Line, number_line
from tests.fakes.meta import faults
from tests.fakes.meta.server import APP, NUMBER, SECRET, TOKEN


async def set_up(line: Line) -> str:
    return "\n".join(await line.webhook.set(drop_pending=False))


async def test_an_app_that_delivers_nowhere_is_set_up_whole() -> None:
    async with number_line() as line:
        line.fake.business.app.fields = []
        line.fake.business.subscribed.clear()
        assert await set_up(line) == f"whatsapp-cloud {NUMBER} delivers to {HOOK}"
        app = line.fake.business.app
        assert (app.callback, "messages" in app.fields) == (HOOK, True)
        assert APP in line.fake.business.subscribed
        assert line.fake.numbers[NUMBER].override == ""
        assert webhook_finding(await line.webhook.state()).level is Level.OK


async def test_an_app_that_delivers_elsewhere_is_left_alone_and_the_number_gets_its_own() -> None:
    async with number_line() as line:
        line.fake.business.app.callback = ELSEWHERE
        await set_up(line)
        assert line.fake.business.app.callback == ELSEWHERE
        assert line.fake.callback_of(NUMBER) == HOOK
        assert (await line.webhook.state()).url == HOOK


async def test_an_app_of_somebody_else_that_wants_no_messages_is_a_step_by_hand() -> None:
    async with number_line() as line:
        line.fake.business.app.callback, line.fake.business.app.fields = ELSEWHERE, []
        said = await set_up(line)
        assert "App Dashboard" in said
        assert line.fake.business.app.fields == []


async def test_a_secret_that_is_not_the_apps_leaves_the_app_to_a_person() -> None:
    async with number_line(secret="wrong") as line:
        said = await set_up(line)
        assert ("App Dashboard" in said, HOOK in said) == (True, True)
        assert line.fake.callback_of(NUMBER) == HOOK
        found = {finding.name: finding for finding in await examine(line.number)}
        fields = found[f"whatsapp-cloud {NUMBER} fields"]
        assert (fields.level, "META_APP_SECRET" in fields.fix) == (Level.WARNING, True)


async def test_while_the_secret_is_changed_either_serves() -> None:
    async with number_line(secret=f"newer,{SECRET}") as line:
        await set_up(line)
        assert line.fake.business.app.callback == HOOK


async def test_an_address_that_meta_does_not_reach_is_said_with_the_reason() -> None:
    async with number_line(reached=False) as line:
        with pytest.raises(RecordsUnavailable, match="verify token") as caught:
            await set_up(line)
    assert TOKEN not in str(caught.value)


async def test_deleting_takes_away_our_addresses_and_no_others() -> None:
    async with number_line() as line:
        await set_up(line)
        await line.webhook.delete()
        assert line.fake.callback_of(NUMBER) == ""
        line.fake.business.app.callback = ELSEWHERE
        await set_up(line)
        assert ELSEWHERE in "".join(await line.webhook.delete())
        assert line.fake.callback_of(NUMBER) == ELSEWHERE


async def test_an_account_that_our_app_does_not_hear_of_is_named_and_put_right() -> None:
    async with number_line() as line:
        await set_up(line)
        await line.webhook.state()
        line.fake.business.subscribed.clear()
        line.clock.advance(webhook.SUBSCRIPTIONS_EVERY)
        state = await line.webhook.state()
        assert state.missing == ("messages",)
        await set_up(line)
        assert (await line.webhook.state()).missing == ()


async def test_a_process_that_looks_every_second_asks_seldom() -> None:
    """Two hundred questions an hour are Meta's limit for an app that sends little."""
    async with number_line() as line:
        await set_up(line)
        before = len(line.fake.calls)
        for _ in range(3600):
            await line.webhook.state()
            line.clock.advance(1.0)
        assert len(line.fake.calls) - before <= 75


async def test_a_dead_token_is_noticed_within_a_minute_and_then_tried_twice_in_four() -> None:
    async with number_line() as line:
        await set_up(line)
        await line.webhook.state()
        line.fake.fail("*", faults.unauthorized(), times=None)
        line.clock.advance(webhook.REST)
        state = await line.webhook.state()
        assert state.refused
        said = webhook_finding(state).says
        assert all(word in said for word in (NUMBER, "190", "META_ACCESS_TOKEN"))
        assert TOKEN not in said
        before = len(line.fake.calls)
        for _ in range(240):
            line.clock.advance(1.0)
            await line.webhook.state()
        assert len(line.fake.calls) - before == 2


async def test_the_doctor_names_a_dead_token_and_the_step() -> None:
    async with number_line() as line:
        line.fake.fail("*", faults.unauthorized(), times=None)
        [finding] = await examine(line.number)
    assert finding.level is Level.PROBLEM
    assert (NUMBER in finding.name, "190" in finding.says) == (True, True)
    assert "META_ACCESS_TOKEN" in finding.says
    assert TOKEN not in repr(finding)


@pytest.mark.parametrize("code", [10, 200, 368, 131042, 131000])
async def test_a_refusal_that_is_no_dead_token_is_trouble_and_cuts_nobody_off(code: int) -> None:
    """A token that may send may lack the right to ask."""
    async with number_line() as line:
        line.fake.fail("number", faults.refused(code), times=None)
        state = await line.webhook.state()
    assert (state.refused, str(code) in state.trouble) == (False, True)


async def test_the_doctor_tells_of_a_number_that_is_well() -> None:
    async with number_line() as line:
        await set_up(line)
        found = await examine(line.number)
        assert {finding.level for finding in found} == {Level.OK}
        said = " ".join(finding.says for finding in found)
        assert all(word in said for word in ("GREEN", "TIER_2K", "STANDARD", "messages"))


async def test_the_doctor_tells_of_a_token_that_ends_soon_and_of_a_permission_that_is_missing() -> (
    None
):
    async with number_line() as line:
        business = line.fake.business
        business.expires = int(line.clock.wall()) + 2 * 86_400
        name = f"whatsapp-cloud {NUMBER} token"
        [token] = [f for f in await examine(line.number) if f.name == name]
        assert (token.level, "2 more day" in token.says) == (Level.WARNING, True)
        business.permissions.remove("whatsapp_business_messaging")
        [token] = [f for f in await examine(line.number) if f.name == name]
        assert (token.level, "whatsapp_business_messaging" in token.says) == (Level.PROBLEM, True)


async def test_the_doctor_reads_a_number_of_which_everything_is_odd() -> None:
    odd: dict[str, Any] = {
        "status": 7,
        "quality_rating": None,
        "throughput": "x",
        "health_status": {"can_send_message": [], "entities": [1, {"errors": [2, {}]}]},
        "webhook_configuration": [],
    }
    async with number_line() as line:
        line.fake.numbers[NUMBER].facts = odd
        assert await examine(line.number)
        assert (await line.webhook.state()).url == ""


async def test_the_doctor_tells_of_a_second_app_that_would_answer_too() -> None:
    async with number_line() as line:
        line.fake.business.subscribed["525650000000000"] = ""
        levels = {finding.level for finding in await examine(line.number)}
        assert Level.WARNING in levels
