"""Taking a chat over by hand, and forgetting what was said in it."""

from __future__ import annotations

import psycopg
import pytest

from bot.domain.errors import GiveUp
from bot.domain.reply import PartKind
from bot.domain.turn import Turn
from bot.operations import chats, parts
from bot.operations import runs as run_acts
from bot.operations.actions import Acted, Result
from bot.wiring import Role
from storage import chats as chat_rows
from storage.schema.tables import metadata
from storage.statements.tx import Tx
from storage.views.lookup import chats_named
from storage.views.parts import PartFilter, parts_listed
from tests.fakes import faults
from tests.fakes.telegram import faults as telegram_faults
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.kit.operating import ANN, act, runs_of
from tests.world import Running, World

ADA = 700100201


async def pause(process: Running, chat: int = 1) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: chats.pause(tx, rt, ANN, chat, seconds=None))


async def resume(process: Running, *, drop: bool = False) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: chats.resume(tx, rt, ANN, 1, drop=drop))


async def reply(process: Running, text: str) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: chats.reply(tx, rt, ANN, 1, text))


async def resolve(process: Running, part: int, *, arrived: bool) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: parts.resolve(tx, rt, ANN, part, arrived=arrived))


async def paused_with_two(world: World) -> tuple[Running, Held]:
    """A paused chat in which two messages wait behind an answered one."""
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent, burst="each")
    ada = Person(ADA)
    await process.post_update(ada.text("one"))
    await world.settled()
    assert (await pause(process)).result is Result.DONE
    await process.post_update(ada.text("two"))
    await process.post_update(ada.text("three"))
    return process, agent


async def test_a_paused_chat_waits_and_is_answered_when_it_is_resumed(world: World) -> None:
    process, agent = await paused_with_two(world)
    assert [state for _, state, _ in await runs_of(world)] == ["ended", "waiting", "waiting"]
    assert (await pause(process)).result is Result.TOO_LATE
    assert (await resume(process)).result is Result.DONE
    await world.settled()
    assert agent.texts == ["one", "two", "three"]
    assert (await resume(process)).result is Result.TOO_LATE


async def test_what_waited_can_be_dropped(world: World) -> None:
    process, agent = await paused_with_two(world)
    assert (await resume(process, drop=True)).result is Result.DONE
    await world.settled()
    assert agent.texts == ["one"]
    assert [ending for _, _, ending in await runs_of(world)] == [
        "answered",
        "cancelled",
        "cancelled",
    ]


async def test_what_somebody_answered_by_hand_is_not_answered_again(world: World) -> None:
    process, agent = await paused_with_two(world)
    assert (await reply(process, "Ann here: **done**.")).result is Result.DONE
    await world.until(
        "SELECT state FROM outbox WHERE kind = 'operator'", lambda rows: rows == [("sent",)]
    )
    assert (await resume(process)).result is Result.DONE
    await world.settled()
    assert agent.texts == ["one"]
    assert world.telegram.texts(ADA) == ["one", "Ann here: done."]
    assert [ending for _, _, ending in await runs_of(world)] == ["answered"] * 3


async def test_a_chat_that_nothing_reaches_takes_no_words(world: World) -> None:
    process = await world.start(agent=repeats)
    world.telegram.fail("sendMessage", telegram_faults.blocked())
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    acted = await reply(process, "hello?")
    assert acted.result is Result.REFUSED
    assert "until the person writes" in acted.said


async def test_words_leave_once_although_the_answer_to_their_commit_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await world.start(agent=repeats)
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    commit, lost = Tx.commit, list[str]()

    def loses_its_answer(tx: Tx) -> None:
        written = tx.run("SELECT 1 FROM outbox WHERE kind = 'operator'")
        commit(tx)
        if written and not lost:
            lost.append("an answer")
            tx.connection.close()
            raise psycopg.OperationalError("the server closed the connection")

    monkeypatch.setattr(Tx, "commit", loses_its_answer)
    acted = await reply(process, "your order left")
    await world.settled()
    assert acted.result is Result.DONE
    assert lost or world.database_url.startswith("sqlite")
    assert world.telegram.texts(ADA)[1:] == ["your order left"]


async def uncertain_part(world: World) -> Running:
    process = await world.start(agent=repeats, uncertain_delivery="hold")
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=1)
    await process.post_update(Person(ADA).text("hello"))
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "uncertain")]
    return process


async def test_a_part_that_somebody_saw_counts_as_sent(world: World) -> None:
    process = await uncertain_part(world)
    assert (await resolve(process, 1, arrived=True)).result is Result.DONE
    assert await runs_of(world) == [(1, "ended", "answered")]
    assert await world.rows("SELECT state, receipt FROM outbox") == [
        ("sent", "word-of-ann@session")
    ]
    assert (await resolve(process, 1, arrived=False)).result is Result.TOO_LATE
    await world.settled()
    assert len(world.telegram.calls_of("sendMessage")) == 1


async def test_a_part_that_is_lost_is_sent_once_more_on_its_own_row(world: World) -> None:
    process = await uncertain_part(world)
    assert (await resolve(process, 1, arrived=False)).result is Result.DONE
    await world.settled()
    assert len(world.telegram.calls_of("sendMessage")) == 2
    assert await world.rows("SELECT attempts, state FROM outbox") == [(2, "sent")]
    assert await runs_of(world) == [(1, "ended", "answered")]


async def test_a_forgotten_chat_keeps_what_happened_and_none_of_its_words(world: World) -> None:
    secret = "my-password-is-swordfish"

    async def chatty(turn: Turn) -> str:
        await turn.step("look", lambda: f"{secret} looked up")
        return f"I know {secret}"

    process = await world.start(agent=chatty)
    ada = Person(ADA)
    await process.post_update(ada.text(secret))
    await world.settled()
    rt = process.process.rt
    assert (await chats.forget(rt, ANN, 1)).result is Result.DONE
    for table, columns in (
        ("inbound", "text, sender_name, extra, payload"),
        ("outbox", "text, reply, wire"),
        ("steps", "result"),
        ("chats", "name"),
    ):
        rows = await world.rows(f"SELECT {columns} FROM {table}")
        assert secret not in str(rows), table
        assert len(rows) == 1
    assert await runs_of(world) == [(1, "ended", "answered")]
    sent = await rt.db.read(parts_listed, PartFilter(kinds=(PartKind.REPLY,)))
    assert [part.receipt is not None for part in sent] == [True]
    assert ("ann@session", "forgotten") in [
        tuple(row) for row in await world.rows("SELECT who, what FROM events")
    ]


async def test_a_forgotten_chat_leaves_no_word_anywhere(world: World) -> None:
    secret = "my-password-is-swordfish"

    async def gives_up(turn: Turn) -> str:
        if turn.text == "mine":
            return "yours"
        await turn.reminders.add("in 3 hours", f"say {secret}", key="one")
        await turn.step("look", lambda: secret)
        raise GiveUp("that is too much for me", reason=f"they said {secret}")

    process = await world.start(agent=gives_up)
    ada, ben = Person(ADA), Person(ADA + 1)
    said = ada.text(secret)
    for update in (said, ada.edit(said, f"{secret}!"), ben.text("mine")):
        await process.post_update(update)
    await world.settled()
    unknown = ada.edit(ada.text("never delivered"), f"{secret}, edited")
    broken = {**ada.text(secret), "message": {"chat": {"id": ADA}, "text": secret}}
    for update in (unknown, broken):
        await process.post_update(update)
    rt = process.process.rt
    tables = [name for name in metadata.tables if name != "alembic_version"]
    before = [name for name in tables if secret in str(await world.rows(f"SELECT * FROM {name}"))]
    assert {"inbound", "payloads", "edits", "reminders", "runs", "steps", "events"} <= set(before)
    assert await world.rows("SELECT count(*) FROM payloads WHERE error IS NOT NULL") == [(1,)]
    assert (await chats.forget(rt, ANN, 1)).result is Result.DONE
    after = [name for name in tables if secret in str(await world.rows(f"SELECT * FROM {name}"))]
    assert after == []
    await process.post_update(ada.edit(said, f"{secret}, once more"))
    after = [name for name in tables if secret in str(await world.rows(f"SELECT * FROM {name}"))]
    assert after == [], "an edit of it brings nothing back"
    assert "mine" in str(await world.rows("SELECT payload FROM inbound"))
    acted = await act(process, lambda tx: run_acts.requeue(tx, rt, ANN, 1))
    assert acted.result is Result.REFUSED


async def test_an_open_chat_is_not_forgotten(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    assert (await chats.forget(web.process.rt, ANN, 1)).result is Result.REFUSED
    assert await world.rows("SELECT text FROM inbound") == [("hello",)]


async def two_that_are_one(world: World) -> Running:
    """A process, and chat 2 that turned out to be chat 1."""
    process = await world.start(agent=repeats)
    for address in (ADA, ADA + 1):
        await process.post_update(Person(address).text(f"hello from {address}"))
    await world.settled()

    def unite(tx: Tx) -> None:
        both = [chat_rows.get(tx, chat) for chat in (1, 2)]
        chat_rows.link(tx, both[0].account, 1, [chat.address for chat in both])

    await process.process.rt.db.write(unite)
    return process


async def test_an_act_on_a_chat_that_is_part_of_another_is_one_on_that(world: World) -> None:
    process = await two_that_are_one(world)
    rt = process.process.rt
    paused = "SELECT count(*) FROM chats WHERE id = 1 AND paused_until IS NOT NULL"
    assert (await pause(process, 2)).result is Result.DONE
    assert await world.rows(paused) == [(1,)]
    resumed = await act(process, lambda tx: chats.resume(tx, rt, ANN, 2, drop=False))
    assert resumed.result is Result.DONE
    assert await world.rows(paused) == [(0,)]
    assert await rt.db.read(chats_named, "2") == [1]


async def test_a_chat_is_forgotten_by_the_number_that_it_had_before_it_became_part_of_another(
    world: World,
) -> None:
    process = await two_that_are_one(world)
    assert (await chats.forget(process.process.rt, ANN, 2)).result is Result.DONE
    for table in ("inbound", "outbox"):
        assert "hello" not in str(await world.rows(f"SELECT * FROM {table}"))
