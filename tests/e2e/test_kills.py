"""kill -9 at the moments that matter; nobody writes again afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

import psycopg
import pysqlite3.dbapi2 as sqlite3

from tests.e2e.agent import asked
from tests.e2e.processes import CLOUD, NO_PLATFORM, Ground
from tests.fakes.meta.faults import refused as meta_refused
from tests.fakes.meta.server import StatusPlan
from tests.fakes.recording import Call
from tests.fakes.telegram.faults import held_after_storing, too_many
from tests.fakes.updates import Person
from tests.kit import web
from tests.kit.pages import Page
from tests.limits import moment, until

ADA, BOB, CYD, DAN = (Person(n) for n in (700_100_201, 700_100_202, 700_100_203, 700_100_204))
EVA = "whatsapp:+15550100015"
LONG = "long"


async def state(ground: Ground, text: str) -> list[str]:
    """The states of the reply's parts to the message with this text."""
    sql = (
        "SELECT o.state FROM outbox o JOIN inbound i ON i.run = o.run "
        "WHERE i.text = :text AND NOT o.standalone ORDER BY o.id"
    )
    return [row[0] for row in await ground.world.rows(sql, text=text)]


async def endings(ground: Ground) -> dict[str, str]:
    """The ending of each message's run."""
    sql = "SELECT i.text, r.ending FROM inbound i JOIN runs r ON r.id = i.run ORDER BY i.id"
    return {row[0]: row[1] for row in await ground.world.rows(sql)}


async def listed_as_uncertain(ground: Ground) -> int:
    """The number of parts that the operator is shown that may or may not have arrived."""
    shown = await ground.spawn("outbox", "list", "--json")
    assert await shown.ended() == 0
    return sum(part["state"] == "uncertain" for part in json.loads("\n".join(shown.printed)))


def three_parts(text: str) -> str:
    """An answer that is too long for one message when it is asked for."""
    return "\n\n".join(word * 900 for word in ("one ", "two ", "six ")) if text == LONG else text


async def test_b10_killed_right_after_the_acknowledgement_it_answers_after_a_restart(
    ground: Ground,
) -> None:
    first = await ground.serve("web")
    answered = await first.post_update(ADA.text("did you get this?"))
    await first.kill()
    assert answered.status_code == 200
    await ground.serve()
    await ground.world.settled()
    assert ground.world.telegram.texts(ADA.number) == ["re: did you get this?"]
    assert len(ground.agent.turns()) == 1


async def test_one_kill_finds_every_chat_somewhere_else_and_each_gets_one_answer(
    ground: Ground,
) -> None:
    world, agent = ground.world, ground.agent
    agent.words = three_parts
    first = await ground.serve()
    slow = agent.fail("turn", held_after_storing(), when=lambda c: asked(c.params) == "in it")
    limited = world.telegram.fail("sendMessage", too_many(3), chat=BOB.number)
    on_its_way = world.telegram.fail("sendMessage", held_after_storing(), chat=CYD.number)
    on_its_way_too = world.twilio.fail("create", held_after_storing())
    for update in (ADA.text("in it"), BOB.text(LONG), CYD.text("sending"), DAN.text("done")):
        assert (await first.post_update(update)).status_code == 200
    assert (await world.twilio.inbound("sending too", from_=EVA)).acknowledged
    await until(lambda: bool(slow.hits and on_its_way.hits and on_its_way_too.hits))
    await world.until(
        "SELECT count(*) FROM outbox WHERE state = 'pending' AND attempts > 0",
        lambda rows: rows[0][0] == 1,
    )
    await world.until("SELECT count(*) FROM runs WHERE state = 'ended'", lambda r: r[0][0] == 1)
    await first.kill()

    await ground.serve()
    await world.settled()
    assert world.telegram.texts(ADA.number) == ["in it"]
    assert [t.params["attempt"] for t in agent.turns("in it")] == [1, 2]
    assert [t[:3] for t in world.telegram.texts(BOB.number)] == ["one", "two", "six"]
    assert limited.hits
    assert len(agent.turns(LONG)) == 1
    answer, note = world.telegram.messages(CYD.number)
    assert answer.text == "sending"
    assert note.buttons
    assert await state(ground, "sending") == ["uncertain"]
    assert await listed_as_uncertain(ground) == 1
    assert world.telegram.texts(DAN.number) == ["done"]
    assert world.twilio.texts(EVA) == ["sending too"]
    assert await endings(ground) == {
        "in it": "answered",
        LONG: "answered",
        "sending": "uncertain",
        "done": "answered",
        "sending too": "answered",
    }


@asynccontextmanager
async def nothing_is_written(ground: Ground) -> AsyncIterator[None]:
    """Hold the locks that every move of a run needs."""
    url = ground.world.database_url
    if url.startswith("sqlite"):
        held = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        yield
        held.close()
        return
    with psycopg.connect(url) as lock:
        lock.execute("SELECT 1 FROM chats FOR UPDATE")
        yield


async def test_killed_between_the_answer_of_the_provider_and_its_commit(ground: Ground) -> None:
    world = ground.world
    first = await ground.serve()
    held = [
        world.telegram.fail("sendMessage", held_after_storing()),
        world.twilio.fail("create", held_after_storing()),
    ]
    await first.post_update(ADA.text("hello"))
    await world.twilio.inbound("hello there", from_=EVA)
    await until(lambda: all(rule.hits for rule in held))
    calls: list[Call] = [rule.hits[0] for rule in held]
    async with nothing_is_written(ground):
        for rule in held:
            rule.release()
        await until(lambda: all(call.status is not None for call in calls))
        await first.kill()

    await ground.serve()
    await world.settled()
    answer, note = world.telegram.messages(ADA.number)
    assert answer.text == "re: hello"
    assert note.buttons
    assert world.twilio.texts(EVA) == ["re: hello there"]
    assert await endings(ground) == {"hello": "uncertain", "hello there": "answered"}


async def test_b143_killed_between_metas_answer_and_its_commit_a_status_tells_the_next_process(
    ground: Ground,
) -> None:
    world = ground.world
    world.meta.plan = lambda _message: StatusPlan.nothing()
    first = await ground.serve(**CLOUD)
    held = world.meta.fail("send", held_after_storing())
    assert (await world.meta.person_writes("hello")).acknowledged
    await until(lambda: bool(held.hits))
    async with nothing_is_written(ground):
        held.release()
        await until(lambda: held.hits[0].status is not None)
        await first.kill()
        [message] = world.meta.messages()
        told = await world.meta.report(message.wamid, "sent")
        assert told is not None
        assert not told.acknowledged

    await ground.serve(**CLOUD)
    await world.meta.courier.hurry()
    assert told.acknowledged
    await world.settled()
    assert world.meta.texts() == ["re: hello"]
    assert len(world.meta.calls_of("send")) == 1
    assert await endings(ground) == {"hello": "answered"}


async def test_b146_killed_while_a_pair_waits_the_part_goes_once_and_not_early(
    ground: Ground,
) -> None:
    world = ground.world
    first = await ground.serve(**CLOUD)
    refused = world.meta.fail("send", meta_refused(131056), times=2)
    await world.meta.person_writes("hello")
    await world.until(
        "SELECT attempts, state FROM outbox", lambda rows: [*map(tuple, rows)] == [(2, "pending")]
    )
    await first.kill()
    await ground.serve(**CLOUD)
    await world.settled()
    one, two, three = (call.at for call in world.meta.calls_of("send"))
    assert (two - one >= 1, three - two >= 4) == (True, True)
    assert len(refused.hits) == 2
    assert world.meta.texts() == ["re: hello"]
    assert await endings(ground) == {"hello": "answered"}


async def test_b115_killed_between_two_pieces_of_a_text_it_answers_both_as_one(
    ground: Ground,
) -> None:
    """Start the worker last: the wait for the rest is over in seconds, whatever a machine does."""
    piece, tail = "x" * 4096, "tail: what do you think?"
    ground.agent.words = lambda text: f"{len(text)} characters"
    first = await ground.serve("web")
    await first.takes(ADA.text(piece))
    await first.kill()
    second = await ground.serve("web")
    await second.takes(ADA.text(tail))
    await ground.serve("worker")
    await ground.world.settled()
    both = len(f"{piece}\n{tail}")
    assert ground.world.telegram.texts(ADA.number) == [f"{both} characters"]
    assert len(ground.agent.turns()) == 1


async def test_pages_miss_nothing_while_the_processes_are_killed_that_serve_them(
    postgres_ground: Ground,
) -> None:
    ground, turns = postgres_ground, count()
    settings = {**NO_PLATFORM, "WEB": "true", "BURST": "each", "WEB_ADDRESS_PER_MINUTE": "100000"}
    programs = [await ground.serve(**settings) for _ in range(2)]
    texts = [f"message {number}" for number in range(6)]
    async with web.client() as http:

        def somewhere() -> str:
            return programs[next(turns) % 2].url

        async def speak(page: Page) -> None:
            for text in texts:
                while not await page.send(text.replace(" ", "-"), text):
                    await moment()

        async def rage() -> None:
            for victim, after in enumerate((4, 12, 20, 28)):
                await until(partial(_has_asked, ground, after))
                await programs[victim % 2].kill()
                programs[victim % 2] = await ground.serve(**settings)

        guests = [await web.Visitor(programs[0].url, http).begin() for _ in range(6)]
        pages = [Page(somewhere, http, guest.token) for guest in guests]
        following = [asyncio.create_task(page.follow()) for page in pages]
        await asyncio.gather(rage(), *(speak(page) for page in pages))
        await until(
            lambda: all(page.has_ended(t.replace(" ", "-")) for page in pages for t in texts)
        )
        for page, task in zip(pages, following, strict=True):
            task.cancel()
            assert page.shown == [f"re: {text}" for text in texts]
            assert not page.numbers_missing
            assert not page.begun_anew
            visitor = web.Visitor(programs[0].url, http, page.token)
            said = [one["text"] for one in await visitor.history() if one["kind"] == "message"]
            assert said == page.shown
        await asyncio.gather(*following, return_exceptions=True)


def _has_asked(ground: Ground, times: int) -> bool:
    return len(ground.agent.turns()) >= times
