"""The inbox: its list, replies that leave once, notes, and being answered in another way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.domain.concern import Concern
from bot.domain.errors import ConfigurationError, GiveUp
from bot.domain.ports import OutsideWindow
from bot.domain.turn import Turn
from bot.operations import chats, inbox
from bot.operations.actions import Acted, Operator, Result
from bot.operations.canned import canned_texts
from bot.operations.chats import Form
from bot.operations.inbox import inbox_page, open_chat
from bot.wiring import Role
from storage import chats as chat_rows
from storage.schema.tables import metadata
from storage.statements.tx import Tx
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.operating import ANN, act, runs_of
from tests.world import Running, World

ADA = 700100201
BEN = Operator("ben@desk")


async def reply(
    process: Running, text: str, form: Form = chats.NO_FORM, by: Operator = ANN
) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: chats.reply(tx, rt, by, 1, text, form=form))


async def last_said(process: Running) -> int:
    rt = process.process.rt
    opened = await rt.db.read(open_chat, rt, 1)
    assert opened is not None
    return opened.last_said


ada = Person(ADA)


async def greeted(world: World) -> Running:
    """A process with a chat in which a message was answered."""
    process = await world.start(agent=repeats)
    await process.post_update(ada.text("hello"))
    await world.settled()
    return process


async def apologised(world: World) -> Running:
    async def gives_up(turn: Turn) -> str:
        raise GiveUp("that is too much for me")

    process = await world.start(agent=gives_up)
    await process.post_update(ada.text("hello"))
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "apologised")]
    return process


async def test_a_form_that_is_handed_in_twice_is_one_reply(world: World) -> None:
    process = await greeted(world)
    form = Form("form-1")
    first, again = (
        await reply(process, "On its way.", form),
        await reply(process, "On its way.", form),
    )
    await world.settled()
    assert (first.result, again.result) == (Result.DONE, Result.DONE)
    assert "twice" in again.said
    assert world.telegram.texts(ADA) == ["hello", "On its way."]


async def test_a_form_with_other_words_than_it_had_is_refused_and_sends_nothing(
    world: World,
) -> None:
    process = await greeted(world)
    await reply(process, "On its way.", Form("form-1"))
    changed = await reply(process, "It is lost.", Form("form-1"))
    ben = Person(ADA + 1)
    await process.post_update(ben.text("hello"))
    rt = process.process.rt
    form = Form("form-1")
    elsewhere = await act(process, lambda tx: chats.reply(tx, rt, ANN, 2, "On its way.", form=form))
    await world.settled()
    assert (changed.result, elsewhere.result) == (Result.REFUSED, Result.REFUSED)
    assert world.telegram.texts(ADA + 1) == ["hello"]
    assert world.telegram.texts(ADA) == ["hello", "On its way."]


async def test_of_two_who_answer_at_once_one_sends_and_the_other_is_told_of_it(
    world: World,
) -> None:
    process = await greeted(world)
    seen = await last_said(process)
    acted = await asyncio.gather(
        reply(process, "Ann here.", Form("form-ann", seen), ANN),
        reply(process, "Ben here.", Form("form-ben", seen), BEN),
    )
    await world.settled()
    [won], [lost] = (
        [one for one in acted if one.result is result] for result in (Result.DONE, Result.TOO_LATE)
    )
    assert won.result is Result.DONE
    assert len(world.telegram.texts(ADA)) == 2
    winner = "ann@session" if "Ann here." in world.telegram.texts(ADA) else "ben@desk"
    assert f"{winner} answered meanwhile" in lost.said
    later = await reply(process, "Ben again.", Form("form-3", await last_said(process)), BEN)
    assert later.result is Result.DONE


async def test_an_answer_of_the_agent_meanwhile_is_told_too(world: World) -> None:
    process = await greeted(world)
    seen = await last_said(process)
    await process.post_update(ada.text("and now?"))
    await world.settled()
    acted = await reply(process, "Ann here.", Form("form-1", seen))
    assert acted.result is Result.TOO_LATE
    assert "the agent answered meanwhile" in acted.said


async def test_a_note_is_read_by_colleagues_and_by_nobody_else(world: World) -> None:
    heard: list[str] = []

    async def remembers(turn: Turn) -> str:
        heard.extend(message.text for message in turn.history)
        return turn.text

    process = await world.start(agent=remembers)
    rt = process.process.rt
    await process.post_update(ada.text("hello"))
    await world.settled()
    said = await act(process, lambda tx: chats.note(tx, ANN, 1, "  pays late\x00 "))
    assert said.result is Result.DONE
    await process.post_update(ada.text("more"))
    await world.settled()
    opened = await rt.db.read(open_chat, rt, 1)
    assert opened is not None
    [note] = opened.notes
    assert (note.who, note.text) == ("ann@session", "pays late\ufffd")
    assert "pays late" not in str([heard, *world.telegram.texts(ADA)])
    for empty in ("", " \n", "x" * 4_001):
        refused = await act(process, lambda tx, text=empty: chats.note(tx, ANN, 1, text))  # type: ignore[misc]
        assert refused.result is Result.REFUSED


async def test_a_forgotten_chat_leaves_no_word_of_its_notes_and_replies(world: World) -> None:
    process = await greeted(world)
    await act(process, lambda tx: chats.note(tx, ANN, 1, "swordfish"))
    await reply(process, "swordfish", Form("form-1"))
    await world.settled()
    digest = (await world.rows("SELECT digest FROM hand_replies"))[0][0]
    assert (await chats.forget(process.process.rt, ANN, 1)).result is Result.DONE
    for name in metadata.tables:
        left = str(await world.rows(f"SELECT * FROM {name}"))
        assert "swordfish" not in left, name
        assert digest not in left, name
    assert [tuple(row) for row in await world.rows("SELECT who FROM notes")] == [("ann@session",)]


async def test_what_was_answered_in_another_way_counts_as_answered(world: World) -> None:
    process = await apologised(world)
    rt = process.process.rt
    page = await rt.db.read(inbox_page, None, None, 10)
    assert [list(one.concerns) for one in page.chats] == [[Concern.APOLOGISED]]
    await act(process, lambda tx: chats.pause(tx, rt, ANN, 1, seconds=None))
    await process.post_update(ada.text("still there?"))
    acted = await act(process, lambda tx: inbox.mark_answered(tx, rt, ANN, 1))
    assert acted.result is Result.DONE
    assert [ending for _, _, ending in await runs_of(world)] == ["answered", "answered"]
    page = await rt.db.read(inbox_page, None, None, 10)
    assert [list(one.concerns) for one in page.chats] == [[Concern.PAUSED]]
    acted = await act(process, lambda tx: inbox.mark_answered(tx, rt, ANN, 1))
    assert acted.result is Result.TOO_LATE


async def test_what_comes_after_a_chat_was_marked_as_answered_is_answered(world: World) -> None:
    """Telegram tells whole seconds, and its clock may be behind ours."""
    process = await apologised(world)
    rt = process.process.rt
    acted = await act(process, lambda tx: inbox.mark_answered(tx, rt, ANN, 1))
    assert acted.result is Result.DONE
    await process.post_update(
        Person(ADA, first_message=900, at=int(world.clock.wall())).text("now")
    )
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "answered"), (2, "ended", "apologised")]


async def test_what_nobody_works_on_yet_is_marked_as_answered(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    await web.post_update(ada.text("hello"))
    rt = web.process.rt
    acted = await act(web, lambda tx: inbox.mark_answered(tx, rt, ANN, 1))
    assert acted.result is Result.DONE
    assert await runs_of(world) == [(1, "ended", "answered")]


async def test_the_list_holds_each_chat_once_at_its_first_reason(world: World) -> None:
    process = await world.start(agent=repeats)
    rt = process.process.rt
    for number in range(5):
        await process.post_update(Person(ADA + number).text("hello"))
    await world.settled()
    for chat in range(1, 6):
        await act(process, lambda tx, chat=chat: chats.pause(tx, rt, ANN, chat, seconds=None))  # type: ignore[misc]
    await rt.db.write(_hand_over, 2)
    await rt.db.write(_hand_over, 4)
    found, after = [], None
    for _ in range(3):
        page = await rt.db.read(inbox_page, None, after, 2)
        found += [one.line.id for one in page.chats]
        after = page.more
    assert after is None
    assert found[:2] == [2, 4]
    assert sorted(found) == [1, 2, 3, 4, 5]
    only = await rt.db.read(inbox_page, Concern.PAUSED, None, 10)
    assert [one.line.id for one in only.chats] == sorted(found)
    assert only.counts[Concern.ASKED] == 2


def _hand_over(tx: Tx, chat: int) -> None:
    chat_rows.hand_over(tx, chat, chat)


async def test_who_opens_a_chat_sees_its_window_and_what_leaves_after_it(world: World) -> None:
    process = await world.start(
        agent=repeats,
        twilio_template_sid="HX" + "0" * 32,
        twilio_template_variables={"1": "{reply}"},
        telegram_bot_token="",
        lease_seconds=1e9,
    )
    rt = process.process.rt
    world.stop_time()
    await world.twilio.inbound("hello")
    await world.settled()
    opened = await rt.db.read(open_chat, rt, 1)
    assert opened is not None
    assert opened.free_text.outside is OutsideWindow.ANSWER
    assert not opened.free_text.closed
    assert opened.free_text.until == pytest.approx(opened.now + 86_400, abs=120)
    world.advance(86_401.0)
    later = await rt.db.read(open_chat, rt, 1)
    assert later is not None
    assert later.free_text.closed
    assert later.refusal == ""


def test_canned_texts_are_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "canned.toml"
    assert canned_texts(None) == {}
    file.write_text('greeting = "Hello."\n"on its way" = """\nIt left today.\n"""\n')
    assert canned_texts(file) == {"greeting": "Hello.", "on its way": "It left today."}
    file.write_text('greeting = "Hi."\n')
    assert canned_texts(file) == {"greeting": "Hi."}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("greeting = 5", "greeting"),
        ('greeting = ""', "greeting"),
        ("greeting = Hello", "no TOML"),
        ("greeting = " + "9" * 5_000, "no TOML"),
        ("greeting = " + "[" * 5_000, "no TOML"),
        (None, "can't be read"),
    ],
    ids=["number", "empty", "bare", "digits", "depth", "missing"],
)
def test_a_file_of_canned_texts_that_is_wrong_says_how(
    tmp_path: Path, written: str | None, said: str
) -> None:
    file = tmp_path / "canned.toml"
    if written is not None:
        file.write_text(written)
    with pytest.raises(ConfigurationError, match=said):
        canned_texts(file)
