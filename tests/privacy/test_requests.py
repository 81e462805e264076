"""A person's wish about their own data: asked back once, then done once, whatever dies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bot.domain.turn import Turn
from bot.operations import chats as chat_acts
from bot.privacy import requests
from bot.privacy.forget import erase
from bot.texts import Text, Words
from storage.chats import requests as rows
from tests.fakes.telegram.spec import Upload
from tests.fakes.updates import Person, entity, group
from tests.kit.agents import Held, repeats
from tests.kit.operating import ANN, act, runs_of
from tests.kit.web import WEB, Visitor, client
from tests.storage.test_retention import SECRET
from tests.world import Running, World

ADA = 700100201
WORDS = Words.load()


def say(text: Text, **values: str | int) -> str:
    return WORDS.say(text, "en", **values)


def asked(text: Text) -> str:
    return say(text, word="/forget" if text is Text.FORGET_ASKED else "/export")


async def twice(world: World, process: Running, ada: Person, command: str) -> None:
    """Say it, read the question, and say it again."""
    await process.post_update(ada.command(command))
    await world.until("SELECT state FROM outbox ORDER BY id DESC LIMIT 1", _is_sent)
    await process.post_update(ada.command(command))


def _is_sent(rows: Sequence[Any]) -> bool:
    return bool(rows == [("sent",)])


async def breaks(turn: Turn) -> str:
    raise ValueError(turn.text)


async def holding(world: World) -> set[str]:
    """Every table in which the secret stands."""
    catalog = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if world.database_url.startswith("sqlite")
        else "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    names = [name for (name,) in await world.rows(catalog)]
    return {name for name in names if SECRET in str(await world.rows(f"SELECT * FROM {name}"))}


def by_hand(process: Running) -> Running:
    """The process, in which nobody does what people ask for but the test."""
    process.process.tasks.tasks["data requests"].cancel()
    return process


async def test_who_says_it_once_or_twice_too_slowly_is_only_asked(world: World) -> None:
    process = by_hand(await world.start(agent=repeats))
    ada = Person(ADA)
    await process.post_update(ada.command("/forget"))
    await world.settled()
    world.advance(601)
    await process.post_update(ada.command("/forget"))
    assert await requests.fulfil(process.process.rt) == 0
    await world.settled()
    assert world.telegram.texts(ADA) == [asked(Text.FORGET_ASKED)] * 2


async def test_what_is_worked_on_ends_first_and_only_the_confirmation_is_sent(world: World) -> None:
    agent = Held()
    process = by_hand(await world.start(agent=agent))
    ada = Person(ADA)
    await process.post_update(ada.text(SECRET))
    await agent.begun.wait()
    await process.post_update(ada.text(f"and {SECRET}"))
    await twice(world, process, ada, "/forget")
    agent.go.set()
    assert await requests.fulfil(process.process.rt) == 1
    await world.settled()
    assert {ending for _, _, ending in await runs_of(world)} == {"withdrawn"}
    assert [cause for (cause,) in await world.rows("SELECT DISTINCT cause FROM runs")] == [
        "stopped"
    ]
    assert world.telegram.texts(ADA) == [asked(Text.FORGET_ASKED), say(Text.FORGOTTEN)]
    assert await holding(world) == set()


async def test_wishes_that_wait_for_their_chats_hold_up_nobody_elses(world: World) -> None:
    agent = Held()
    process = by_hand(await world.start(agent=agent))
    rt, many = process.process.rt, 11
    busy = [Person(ADA + number) for number in range(1, 1 + many)]
    for one in busy:
        await twice(world, process, one, "/forget")
    for one in busy:
        await process.post_update(one.text("what is worked on all the time"))
    # As if it had been written before, and could not be ended.
    last = sa.text("UPDATE data_requests SET last_message = (SELECT max(id) FROM inbound)")
    await rt.db.write(lambda tx: tx.execute(last))
    await twice(world, process, Person(ADA), "/forget")
    assert await requests.fulfil(rt) == 1
    agent.go.set()
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == say(Text.FORGOTTEN)
    assert await requests.fulfil(rt) == many


async def test_a_death_between_the_erasure_and_its_confirmation_costs_neither(
    world: World,
) -> None:
    first = by_hand(await world.start(agent=repeats))
    ada = Person(ADA)
    await first.post_update(ada.text(SECRET))
    await world.settled()
    await twice(world, first, ada, "/forget")
    await world.settled()
    rt = first.process.rt
    [request] = await rt.db.read(rows.to_do, rt.mine, 10)
    await erase(rt, request.chat, request.until)
    await first.die()
    second, third = [by_hand(await world.start(agent=repeats)) for _ in range(2)]
    done = [requests.fulfil(process.process.rt) for process in (second, third)]
    assert sum(await asyncio.gather(*done)) == 1
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == say(Text.FORGOTTEN)
    assert world.telegram.texts(ADA).count(say(Text.FORGOTTEN)) == 1
    assert await holding(world) == set()


async def test_a_process_does_it_by_itself(world: World) -> None:
    process = await world.start(agent=repeats)
    await twice(world, process, Person(ADA), "/forget")
    await world.until("SELECT state FROM data_requests", lambda found: found == [("done",)])
    await world.settled()
    assert world.telegram.texts(ADA) == [asked(Text.FORGET_ASKED), say(Text.FORGOTTEN)]


async def test_what_is_on_its_way_out_is_not_tried_again(world: World) -> None:
    process = by_hand(await world.start(agent=breaks, max_failures=1))
    ada = Person(ADA)
    await process.post_update(ada.text(SECRET))
    await world.settled()
    await twice(world, process, ada, "/forget")
    for command in ("/retry", "/forget"):
        await process.post_update(ada.command(command))
        await world.settled()
    assert world.telegram.texts(ADA)[-2:] == [
        say(Text.NOTHING_TO_RETRY),
        say(Text.DATA_UNDER_WAY),
    ]
    assert await requests.fulfil(process.process.rt) == 1
    assert await holding(world) == set()


async def test_a_copy_comes_as_a_file_where_the_platform_has_files(world: World) -> None:
    process = by_hand(await world.start(agent=repeats))
    ada = Person(ADA)
    await process.post_update(ada.text("one\ntwo"))
    await world.settled()
    rt = process.process.rt
    await act(process, lambda tx: chat_acts.reply(tx, rt, ANN, 1, "Ann here"))
    await world.settled()
    export = ada.command("/export")
    for update in (ada.command("/export"), export):
        await process.post_update(update)
        await world.settled()
    assert await requests.fulfil(rt) == 1
    await process.post_update(export)
    assert await requests.fulfil(rt) == 0
    await world.settled()
    [*_, shown] = world.telegram.messages(ADA)
    assert shown.text == say(Text.EXPORTED)
    assert isinstance(shown.file, Upload)
    lines = re.sub(r"(?m)^[\d-]{10} [\d:]{5}Z  ", "", shown.file.data.decode()).splitlines()
    assert lines == [
        *("You: one", "    two", "Assistant: one", "    two", "Our team: Ann here"),
        *("You: /export", f"Assistant: {asked(Text.EXPORT_ASKED)}", "You: /export"),
    ]


async def test_a_copy_comes_as_words_where_it_has_none_and_not_if_they_are_too_many(
    world: World,
) -> None:
    process = by_hand(await world.start(agent=repeats))
    rt = process.process.rt
    await world.twilio.inbound("hello")
    await world.settled()
    for _ in range(2):
        await world.twilio.inbound("Export my data!")
    assert await requests.fulfil(rt) == 1
    await world.settled()
    ours = world.twilio.texts()
    assert "export my data" in ours[1]
    assert "You: hello" in "\n".join(ours[2:])
    long = "many words " * 140
    for _ in range(12):
        await world.twilio.inbound(long)
        await world.settled()
    for _ in range(2):
        await world.twilio.inbound("/export")
    assert await requests.fulfil(rt) == 1
    await world.settled()
    assert world.twilio.texts()[-1] == say(Text.EXPORT_TOO_LARGE)


async def test_of_the_copies_that_a_person_asks_for_one_is_kept(world: World) -> None:
    process = by_hand(await world.start(agent=repeats))
    ada = Person(ADA)
    await process.post_update(ada.text(SECRET))
    await world.settled()
    for _ in range(2):
        await twice(world, process, ada, "/export")
        assert await requests.fulfil(process.process.rt) == 1
        await world.settled()
    kept = await world.rows("SELECT wire FROM outbox WHERE part >= 1000 ORDER BY id")
    assert [SECRET in wire for (wire,) in kept] == [False, True]


async def test_a_copy_on_a_page_is_a_file_of_its_chat(world: World) -> None:
    process = by_hand(await world.start(agent=repeats, **WEB))
    async with client() as http:
        visitor = await Visitor(process.url, http).begin()
        await visitor.post("/messages", {"request_id": "m1", "text": "hello"})
        await visitor.answered("m1")
        for number in (2, 3):
            await visitor.post("/messages", {"request_id": f"m{number}", "text": "/export"})
        assert await requests.fulfil(process.process.rt) == 1
        await world.settled()
        [*_, copy] = await visitor.history()
        [file] = copy["files"]
        assert "You: hello\n" in (await visitor.get(f"/files/{file['ref']}")).text


async def test_in_a_group_nobody_takes_along_or_deletes_what_others_wrote(world: World) -> None:
    process = by_hand(await world.start(agent=repeats))
    friends, sent = Person(ADA, group(-100200300)), "/forget@relay_test_bot"
    for _ in range(2):
        await process.post_update(friends.text(sent, entity("bot_command", sent, sent)))
        await world.settled()
    assert world.telegram.texts(-100200300) == [say(Text.DATA_NOT_HERE)] * 2
    assert await world.rows("SELECT * FROM data_requests") == []


async def test_switched_off_they_are_words_for_the_agent(world: World) -> None:
    process = by_hand(await world.start(agent=repeats, data_commands=False))
    await twice(world, process, Person(ADA), "/forget")
    await process.post_update(Person(ADA + 1).command("/help"))
    await world.settled()
    assert set(world.telegram.texts(ADA)) <= {"/forget", "/forget\n/forget"}
    assert world.telegram.texts(ADA + 1) == [WORDS.help("en", by_words=False)]
    assert await world.rows("SELECT * FROM data_requests") == []
