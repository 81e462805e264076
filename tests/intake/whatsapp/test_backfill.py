"""Nothing is missed in an outage: Twilio's own records are read, once, to their end."""

from __future__ import annotations

from contextlib import suppress

import pytest

from bot.domain.turn import Turn
from bot.intake import accept
from bot.intake.backfill import YOUNG
from bot.wiring import Role
from storage import accounts
from tests.fakes.twilio import faults, forms
from tests.fakes.twilio.callbacks import StatusPlan
from tests.kit.agents import Held
from tests.kit.whatsapp import CALM, PERSON, echo, endings
from tests.world import World

MARK = "SELECT catchup_mark FROM accounts WHERE channel = 'whatsapp'"
COUNT = "SELECT count(*) FROM inbound"


async def caught_up(world: World) -> float:
    """Wait until the first listing is over; returns the mark."""
    rows = await world.until(MARK, lambda rows: rows[0][0] is not None)
    return float(rows[0][0])


async def next_look(world: World) -> None:
    """Let the time of the next listing come."""
    seen = len(world.twilio.calls_of("list"))
    while len(world.twilio.calls_of("list")) == seen:
        world.advance(130)
        with suppress(AssertionError):
            await world.twilio.wait_for(lambda: len(world.twilio.calls_of("list")) > seen, 0.5)


async def test_fifty_messages_of_an_outage_are_all_answered_once(world: World) -> None:
    first = await world.start(agent=echo, burst="each")
    await caught_up(world)
    await first.stop()
    people = [f"whatsapp:+1555010{1000 + n}" for n in range(10)]
    for number in range(50):
        world.advance(60)
        await world.twilio.inbound(f"word {number}", from_=people[number % 10], webhook=False)
    world.advance(YOUNG)
    await world.start(agent=echo, burst="each", **CALM)
    await world.until(COUNT, lambda rows: rows[0][0] == 50)
    await world.settled()
    for n, person in enumerate(people):
        said = [f"you said: word {number}" for number in range(n, 50, 10)]
        assert world.twilio.texts(person) == said
    assert set(await endings(world)) == {"answered"}
    await next_look(world)
    assert await world.rows(COUNT) == [(50,)]
    assert await world.rows("SELECT max(deliveries) FROM inbound") == [(1,)]


async def test_what_came_by_webhook_is_not_doubled(world: World) -> None:
    await world.start(agent=echo, **CALM)
    await caught_up(world)
    await world.twilio.inbound("by webhook")
    await world.settled()
    await world.twilio.inbound("without one", webhook=False)
    await next_look(world)
    await world.until(COUNT, lambda rows: rows[0][0] == 2)
    await world.settled()
    assert world.twilio.texts() == ["you said: by webhook", "you said: without one"]
    assert len(await endings(world)) == 2


async def test_the_first_start_answers_no_history(world: World) -> None:
    await world.twilio.inbound("last month", webhook=False)
    world.advance(3600)
    await world.start(agent=echo, **CALM)
    await caught_up(world)
    await next_look(world)
    assert await world.rows(COUNT) == [(0,)]


async def test_the_mark_stays_while_a_listing_breaks_off(world: World) -> None:
    await world.start(agent=echo, **CALM)
    mark = await caught_up(world)
    await world.twilio.wait_for(lambda: world.twilio.calls_of("list"))
    broken = world.twilio.fail("list", faults.bad_gateway(), times=None)
    world.advance(3600)
    await world.twilio.inbound("hello", webhook=False)
    await next_look(world)
    assert await world.rows(MARK) == [(mark,)]
    broken.cancel()
    await next_look(world)
    await world.until(COUNT, lambda rows: rows[0][0] == 1)
    await world.until(MARK, lambda rows: rows[0][0] > mark)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]


async def test_a_live_webhook_does_not_move_the_mark(world: World) -> None:
    await world.start(agent=echo)
    mark = await caught_up(world)
    await world.twilio.inbound("hello")
    await world.settled()
    assert await world.rows(MARK) == [(mark,)]


async def test_what_is_older_than_a_day_is_listed_and_not_answered(world: World) -> None:
    first = await world.start(agent=echo)
    await caught_up(world)
    await first.stop()
    await world.twilio.inbound("long ago", webhook=False)
    world.advance(25 * 3600)
    await world.start(agent=echo, **CALM)
    await world.until(COUNT, lambda rows: rows[0][0] == 1)
    await world.settled()
    assert await world.rows("SELECT ending, detail FROM runs") == [
        ("undeliverable", "window closed")
    ]
    assert world.twilio.calls_of("create") == []


async def test_a_message_of_this_moment_is_left_to_its_webhook(world: World) -> None:
    told = await world.twilio.inbound("1", webhook=False, fields={"ButtonPayload": "yes"})
    await world.start(agent=echo, **CALM)
    await world.twilio.wait_for(lambda: world.twilio.calls_of("list"))
    await world.twilio.deliver(told.form)
    await world.settled()
    assert await world.rows("SELECT button FROM inbound") == [("yes",)]


async def test_a_webhook_that_comes_later_enriches_what_has_not_begun(world: World) -> None:
    running = await world.start(agent=echo, quiet_ms=60_000, **CALM)
    await caught_up(world)
    place = forms.location(52.52, 13.405, "Alexanderplatz", "Berlin")
    told = await world.twilio.inbound("", webhook=False, fields=place)
    await next_look(world)
    await world.until(COUNT, lambda rows: rows[0][0] == 1)
    assert await world.rows("SELECT kind, sender_name FROM inbound") == [("other", "")]
    await world.twilio.deliver(told.form)
    world.advance(61)
    await world.settled()
    assert await world.rows("SELECT kind, sender_name FROM inbound") == [("location", "Ada")]
    assert "52.52" in world.twilio.texts()[0]
    assert len(await endings(world)) == 1
    assert running.process.lease.holds()


async def test_a_webhook_that_comes_after_the_answer_changes_nothing(world: World) -> None:
    await world.start(agent=echo, **CALM)
    await caught_up(world)
    told = await world.twilio.inbound("hello", webhook=False, fields=forms.forwarded())
    await next_look(world)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    before = await world.rows("SELECT text, forwarded_from, extra FROM inbound")
    await world.twilio.deliver(told.form)
    await world.settled()
    assert await world.rows("SELECT text, forwarded_from, extra FROM inbound") == before
    assert await world.rows("SELECT count(*) FROM payloads") == [(1,)]
    assert world.twilio.texts() == ["you said: hello"]


async def test_a_webhook_that_was_turned_away_is_caught_up_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await world.start(agent=echo, lease_seconds=1e9, heartbeat_seconds=0.2)
    await caught_up(world)
    await world.twilio.wait_for(lambda: world.twilio.calls_of("list"))
    monkeypatch.setattr(accept, "COMMIT_WITHIN", 0.0)
    told = await world.twilio.inbound("hello")
    assert not told.acknowledged
    assert running.process.intake.turned_away > 0
    monkeypatch.undo()
    world.advance(YOUNG)
    await world.until(COUNT, lambda rows: rows[0][0] == 1)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]


async def test_two_processes_record_each_message_once(world: World) -> None:
    for _ in range(2):
        await world.start(agent=echo, **CALM)
    await caught_up(world)
    for number in range(5):
        await world.twilio.inbound(f"{number}", from_=f"{PERSON}{number}", webhook=False)
    await next_look(world)
    await world.until(COUNT, lambda rows: rows[0][0] == 5)
    await world.settled()
    assert sorted(world.twilio.texts()) == [f"you said: {number}" for number in range(5)]


@pytest.mark.parametrize("kind", ["image/jpeg", "audio/ogg"])
async def test_a_file_is_caught_up_and_can_be_read(world: World, kind: str) -> None:
    async def measure(turn: Turn) -> str:
        return f"{len(await turn.messages[0].attachments[0].read())} bytes"

    await world.start(agent=measure, **CALM)
    await caught_up(world)
    await world.twilio.inbound("", media=[(kind, b"x" * 1234)], webhook=False)
    await next_look(world)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    assert world.twilio.texts() == ["1234 bytes"]
    assert world.twilio.violations == []


async def test_a_failure_that_no_callback_told_of_is_found(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("failed",), 63013, told=False)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    await next_look(world)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("undeliverable",)])


async def test_a_channel_that_was_down_goes_on_when_its_token_works_again(world: World) -> None:
    refusing = world.twilio.fail("*", faults.unauthorized(), times=None)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    down = "SELECT down_reason FROM accounts WHERE channel = 'whatsapp'"
    await world.until(down, lambda rows: bool(rows[0][0]))
    await next_look(world)
    assert (await world.rows(down))[0][0]
    assert len(world.twilio.calls_of("create")) == 1
    refusing.cancel()
    await next_look(world)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]
    assert await world.rows(down) == [(None,)]


async def test_a_stop_that_is_caught_up_does_not_withdraw_what_was_written_after_it(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent, **CALM)
    await caught_up(world)
    await world.twilio.inbound("/stop", webhook=False)
    world.advance(60)
    await world.twilio.inbound("never mind, go on")
    await agent.begun.wait()
    await next_look(world)
    await world.until(COUNT, lambda rows: rows[0][0] == 2)
    agent.go.set()
    await world.settled()
    assert "never mind, go on" in world.twilio.texts()
    assert await endings(world) == ["answered"]


async def test_what_waits_is_read_in_the_order_in_which_it_was_written(world: World) -> None:
    agent = Held()
    await world.start(agent=agent, **CALM)
    await caught_up(world)
    await world.twilio.inbound("one")
    await agent.begun.wait()
    world.advance(60)
    await world.twilio.inbound("two", webhook=False)
    world.advance(60)
    await world.twilio.inbound("three")
    await next_look(world)
    await world.until(COUNT, lambda rows: rows[0][0] == 3)
    agent.go.set()
    await world.settled()
    assert agent.texts == ["one", "two\nthree"]


async def test_an_account_that_is_reported_down_in_the_middle_of_a_look_stays_so(
    world: World,
) -> None:
    looking = world.twilio.fail("list", faults.held_before_storing())
    process = await world.start(agent=echo, **CALM)
    await world.twilio.wait_for(lambda: len(looking.hits) == 1)
    [(account,)] = await world.rows("SELECT id FROM accounts WHERE channel = 'whatsapp'")
    await world._beside().write(accounts.mark_down, account, "the account is suspended")
    looking.release()
    await caught_up(world)
    await process.stop()
    down = "SELECT down_reason FROM accounts WHERE channel = 'whatsapp'"
    assert await world.rows(down) == [("the account is suspended",)]


async def test_a_lease_that_lapsed_is_a_gap_and_is_caught_up_at_once(world: World) -> None:
    await world.start(agent=echo, lease_seconds=2, heartbeat_seconds=0.2)
    await caught_up(world)
    await world.twilio.wait_for(lambda: world.twilio.calls_of("list"))
    await world.twilio.inbound("hello", webhook=False)
    world.advance(YOUNG + 5)
    await world.settled()
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    assert world.twilio.texts() == ["you said: hello"]


async def test_a_worker_catches_up_while_nobody_takes_webhooks(world: World) -> None:
    await world.start(agent=echo, role=Role.WORKER, **CALM)
    await caught_up(world)
    await world.twilio.inbound("hello", webhook=False)
    await next_look(world)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    assert world.twilio.texts() == ["you said: hello"]
