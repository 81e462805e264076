"""SIGTERM at the moments that matter: code 0 within the grace, and nothing waits for a lease."""

from __future__ import annotations

import asyncio
import signal

import psycopg

from bot.clock import SystemClock
from tests.e2e.processes import Ground, Program
from tests.fakes.faults import Rule
from tests.fakes.telegram.faults import held_after_storing, held_before_storing, too_many
from tests.fakes.updates import Person
from tests.limits import until
from tests.ports import own_port

ADA = Person(700_100_211)
OTHERS = [Person(n) for n in range(700_100_212, 700_100_215)]


async def asks(ground: Ground, program: Program, rule: Rule, text: str = "hello") -> None:
    """Post a message and wait until the rule holds what it leads to."""
    assert (await program.post_update(ADA.text(text))).status_code == 200
    await until(lambda: bool(rule.hits))


async def leaving(program: Program) -> None:
    """Tell it to stop, and wait until it does."""
    program.signal(signal.SIGTERM)
    await until(lambda: any("handing over" in line for line in program.said))


async def test_b69_a_turn_under_way_ends_and_what_comes_meanwhile_is_for_the_next(
    postgres_ground: Ground,
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    leaver = await ground.serve()
    slow = ground.agent.fail("turn", held_after_storing())
    await asks(ground, leaver, slow)
    web = await ground.serve("web")
    await leaving(leaver)
    for person in OTHERS:
        assert (await web.post_update(person.text("hi"))).status_code == 200
    for person in OTHERS:
        assert (await leaver.post_update(person.text("you too?"))).status_code == 200
    assert len(ground.agent.turns()) == 1
    slow.release()
    assert await leaver.ended() == 0
    assert len(ground.agent.turns()) == 1
    assert world.telegram.texts(ADA.number) == ["re: hello"]
    await ground.serve("worker")
    await world.settled()
    assert [world.telegram.texts(p.number) for p in OTHERS] == [["re: hi\nyou too?"]] * 3


async def test_a_send_under_way_keeps_its_receipt(ground: Ground) -> None:
    program = await ground.serve()
    sending = ground.world.telegram.fail("sendMessage", held_after_storing())
    await asks(ground, program, sending)
    await leaving(program)
    sending.release()
    assert await program.ended() == 0
    rows = await ground.world.rows("SELECT state, receipt IS NOT NULL FROM outbox")
    assert [tuple(row) for row in rows] == [("sent", True)]
    assert [r[0] for r in await ground.world.rows("SELECT ending FROM runs")] == ["answered"]


async def test_a_send_that_outlasts_the_grace_is_uncertain_and_not_lost(ground: Ground) -> None:
    program = await ground.serve(SHUTDOWN_GRACE="1")
    sending = ground.world.telegram.fail("sendMessage", held_after_storing())
    await asks(ground, program, sending)
    assert await program.stop() == 0
    assert [
        r[0] for r in await ground.world.rows("SELECT state FROM outbox WHERE NOT standalone")
    ] == ["uncertain"]
    await ground.serve()
    await ground.world.settled()
    answer, note = ground.world.telegram.messages(ADA.number)
    assert answer.text == "re: hello"
    assert note.buttons


async def test_stopped_between_the_reply_and_its_send_another_process_sends_it(
    ground: Ground,
) -> None:
    program = await ground.serve(SHUTDOWN_GRACE="1")
    limited = ground.world.telegram.fail("sendMessage", too_many(4))
    await asks(ground, program, limited)
    await ground.world.until("SELECT state FROM outbox", lambda rows: rows[0][0] == "pending")
    assert await program.stop() == 0
    await ground.serve()
    await ground.world.settled()
    assert ground.world.telegram.texts(ADA.number) == ["re: hello"]
    assert len(ground.agent.turns()) == 1


async def test_told_twice_it_gives_back_at_once_and_counts_nothing(ground: Ground) -> None:
    program = await ground.serve(SHUTDOWN_GRACE="60")
    slow = ground.agent.fail("turn", held_before_storing())
    await asks(ground, program, slow)
    await leaving(program)
    program.signal(signal.SIGINT)
    assert await program.ended() == 0
    rows = await ground.world.rows("SELECT state, failures, deaths FROM runs")
    assert [tuple(row) for row in rows] == [("ready", 0, 0)]
    await ground.serve()
    await ground.world.settled()
    assert ground.world.telegram.texts(ADA.number) == ["re: hello"]


async def test_a_second_instance_takes_over_what_is_handed_over(postgres_ground: Ground) -> None:
    """The time from the leaver's end to the other's turn is printed: under a second."""
    ground, clock = postgres_ground, SystemClock()
    leaver = await ground.serve(SHUTDOWN_GRACE="2")
    await ground.serve("worker", HEARTBEAT_SECONDS="20")
    slow = ground.agent.fail("turn", held_before_storing())
    await asks(ground, leaver, slow)
    leaver.signal(signal.SIGTERM)
    taken = asyncio.create_task(until(lambda: len(ground.agent.turns()) == 2))
    assert await leaver.ended() == 0
    left_at = clock.monotonic()
    await taken
    print(f"taken over {clock.monotonic() - left_at:+.3f} s after the leaver's end")
    await ground.world.settled()
    assert ground.world.telegram.texts(ADA.number) == ["re: hello"]


async def test_while_it_starts_it_is_alive_and_not_ready_and_may_be_told_to_stop(
    postgres_ground: Ground,
) -> None:
    ground, world = postgres_ground, postgres_ground.world
    with psycopg.connect(world.database_url) as held:
        held.execute("LOCK accounts IN ACCESS EXCLUSIVE MODE")
        port = own_port()
        early = await ground.spawn("serve", PORT=str(port))
        await early.accepts(port)
        assert (await early.get("/healthz")).status_code == 200
        assert (await early.get("/readyz")).status_code == 503
        posted = await early.post_update(ADA.text("too early"))
        assert (posted.status_code, posted.headers["retry-after"]) == (503, "1")
        early.signal(signal.SIGTERM)
    assert await early.ended() == 0
    assert "told to stop while starting" in early.output
    assert "Traceback" not in early.output


STUBBORN = """
import asyncio, pathlib
async def stubborn(turn):
    pathlib.Path(f"at work on {turn.run_id}").touch()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
"""


async def test_an_agent_that_ignores_its_end_keeps_neither_its_chat_nor_the_process(
    sqlite_ground: Ground,
) -> None:
    ground, world = sqlite_ground, sqlite_ground.world
    (ground.folder / "my_bot.py").write_text(STUBBORN)
    wanted = {"AGENT": "my_bot:stubborn", "RUN_DEADLINE": "2", "SHUTDOWN_GRACE": "1"}
    program = await ground.serve(**wanted)
    assert (await program.post_update(ADA.text("hello"))).status_code == 200
    await until(lambda: len(world.telegram.texts(ADA.number)) == 1)
    assert (await program.post_update(OTHERS[0].text("hi"))).status_code == 200
    await until((ground.folder / "at work on 2").exists)
    assert await program.stop() == 0
    assert any("left without 2 tasks" in line for line in program.said)
