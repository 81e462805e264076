"""Telegram's refusals: for a while, for ever, or because of our token."""

from __future__ import annotations

from tests.fakes.telegram.faults import blocked, flood_wait, unauthorized
from tests.fakes.updates import Person, entity, forum
from tests.kit.agents import repeats
from tests.world import World

CHAT = 700100220
RUNS = "SELECT state, ending, detail FROM runs ORDER BY id"
DOWN = "SELECT down_reason FROM accounts WHERE channel = 'telegram'"


async def test_b43_a_flood_wait_is_waited_out_over_a_restart_and_other_chats_go_on(
    world: World,
) -> None:
    process = await world.start(agent=repeats)
    ada, bob = Person(CHAT), Person(CHAT + 1)
    flood = world.telegram.fail("sendMessage", flood_wait(37), chat=CHAT)
    await process.post_update(ada.text("hello"))
    await world.until(RUNS, lambda rows: [r[0] for r in rows] == ["ready"])
    await process.post_update(bob.text("me too"))
    await world.telegram.wait_for(lambda: world.telegram.texts(CHAT + 1) == ["me too"])
    [(wait,)] = await world.rows("SELECT max(not_before) - max(created_at) FROM runs")
    assert 36 <= wait <= 40
    await process.die()
    process = await world.start(agent=repeats)
    world.advance(12)
    await process.post_update(bob.text("and again"))
    await world.telegram.wait_for(lambda: len(world.telegram.texts(CHAT + 1)) == 2)
    assert len(world.telegram.calls_of("sendMessage", CHAT)) == 1
    await process.die()
    world.advance(26)
    await world.start(agent=repeats)
    await world.settled()
    first, second = world.telegram.calls_of("sendMessage", CHAT)
    assert second.at - first.at >= 37
    assert len(flood.hits) == 2
    assert world.telegram.texts(CHAT) == ["hello"]


async def test_a_limit_of_a_group_holds_for_all_its_topics(world: World) -> None:
    process = await world.start(agent=repeats)
    chat = forum(-1007000000403)
    text = "@relay_test_bot hi"
    marks = entity("mention", text, "@relay_test_bot")
    world.telegram.fail("sendMessage", flood_wait(12), chat=-1007000000403)
    one, other = (Person(CHAT + n, chat, topic=77 + n) for n in range(2))
    await process.post_update(other.text("only to be known"))
    await process.post_update(one.text(text, marks))
    await world.until(RUNS, lambda rows: [r[0] for r in rows] == ["ready"])
    await process.post_update(other.text(text, marks))
    await world.until(RUNS, lambda rows: [r[0] for r in rows] == ["ready", "ready"])
    assert len(world.telegram.calls_of("sendMessage", -1007000000403)) == 1
    world.advance(12.5)
    await world.settled()
    assert len(world.telegram.texts(-1007000000403)) == 2


async def test_b45_a_block_parks_the_chat_until_the_person_writes_again(world: World) -> None:
    process = await world.start(agent=repeats)
    ada, bob = Person(CHAT), Person(CHAT + 1)
    rule = world.telegram.fail("sendMessage", blocked(), chat=CHAT, times=None)
    await process.post_update(ada.text("hello"))
    await process.post_update(bob.text("hi"))
    await world.settled()
    assert len(world.telegram.calls_of("sendMessage", CHAT)) == 1
    assert world.telegram.texts(CHAT + 1) == ["hi"]
    [(state, ending, detail), _] = await world.rows(RUNS)
    assert (state, ending) == ("ended", "undeliverable")
    assert "blocked" in detail
    rule.cancel()
    await process.post_update(ada.text("I am back"))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["I am back"]


async def test_a_told_block_stops_what_was_on_its_way_and_an_unblock_frees_the_chat(
    world: World,
) -> None:
    process = await world.start(agent=repeats, quiet_ms=5000)
    ada = Person(CHAT)
    await process.post_update(ada.text("hello"))
    await process.post_update(ada.member("kicked"))
    world.advance(6)
    await world.settled()
    assert world.telegram.calls_of("sendMessage", CHAT) == []
    [(_, ending, detail)] = await world.rows(RUNS)
    assert (ending, detail) == ("undeliverable", "blocked by the person")
    await process.post_update(ada.member("member", "kicked"))
    assert await world.rows("SELECT unreachable_reason FROM chats") == [(None,)]


async def test_a_block_that_is_told_late_does_not_park_who_wrote_since(world: World) -> None:
    process = await world.start(agent=repeats)
    ada = Person(CHAT)
    block = ada.member("kicked")
    ada.at += 60
    await process.post_update(ada.text("hello"))
    await process.post_update(block)
    assert await world.rows("SELECT unreachable_reason FROM chats") == [(None,)]


async def test_a_refused_token_keeps_everything_until_it_works_again(world: World) -> None:
    process = await world.start(agent=repeats, lease_seconds=600)
    refusing = world.telegram.fail("*", unauthorized(), times=None)
    ada, bob = Person(CHAT), Person(CHAT + 1)
    await process.post_update(ada.text("hello"))
    await world.until(DOWN, lambda rows: rows[0][0] is not None)
    await process.post_update(bob.text("me too"))
    await process.post_update(bob.command("/status"))
    rows = await world.until(RUNS, lambda rows: [r[0] for r in rows] == ["ready", "ready"])
    assert len(rows) == 2
    calls = len(world.telegram.calls_of("sendMessage"))
    world.advance(5)
    assert len(world.telegram.calls_of("sendMessage")) == calls
    refusing.cancel()
    await process.process.introductions[0].probe()
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]
    assert "me too" in world.telegram.texts(CHAT + 1)
    assert await world.rows(DOWN) == [(None,)]


async def test_a_start_tries_a_token_again(world: World) -> None:
    process = await world.start(agent=repeats)
    refusing = world.telegram.fail("sendMessage", unauthorized(), times=None)
    await process.post_update(Person(CHAT).text("hello"))
    await world.until(DOWN, lambda rows: rows[0][0] is not None)
    await process.die()
    refusing.cancel()
    await world.start(agent=repeats)
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]
