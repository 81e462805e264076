"""Answering by hand on the command line: all that the operator's page can."""

from __future__ import annotations

import pytest

from tests.cli.asking import call
from tests.e2e.processes import Ground
from tests.fakes.updates import Person

pytestmark = pytest.mark.alternating(1)
ADA = 700100201


async def test_a_chat_is_taken_over_answered_once_and_given_back_by_commands(
    ground: Ground,
) -> None:
    service, world = await ground.serve(), ground.world
    ada = Person(ADA)
    await service.takes(ada.text("hello"))
    await world.settled()
    canned, bill = ground.folder / "canned.toml", ground.folder / "bill.csv"
    canned.write_text('later = "We call you **later**."\n')
    bill.write_text("a,b\n1,2\n")
    file = {"CANNED_TEXTS": str(canned)}
    assert (await call(ground, "chats", "pause", "1")).code == 0
    await service.takes(ada.text("anybody there?"))
    listed = await call(ground, "chats", "inbox", "--json")
    assert [(one["id"], list(one["concerns"])) for one in listed.json] == [(1, ["paused"])]
    noted = ("chats", "note", "1", "-", "--key", "note-1")
    for _ in range(2):
        assert (await call(ground, *noted, given="pays late\n")).code == 0
    shown = await call(ground, "chats", "show", "1", "--json")
    [note] = shown.json["notes"]
    assert "text" not in note
    seen = str(shown.json["last_said"])
    keyed = ("chats", "reply", "1", "--canned", "later", "--key", "reply-1", "--file", str(bill))
    for _ in range(2):
        assert (await call(ground, *keyed, **file)).code == 0
    bill.write_text("")
    empty = await call(ground, "chats", "reply", "1", "this", "--file", str(bill))
    assert (empty.code, "bill.csv is empty" in empty.out) == (1, True)
    late = await call(ground, "chats", "reply", "1", "me too", "--seen", seen)
    assert (late.code, "answered meanwhile" in late.out) == (1, True)
    wrong = await call(ground, "chats", "reply", "1", "--canned", "sooner", **file)
    assert (wrong.code, "later" in wrong.err) == (2, True)
    assert (await call(ground, "chats", "answered", "1", "--reason", "by phone")).code == 0
    assert (await call(ground, "chats", "resume", "1")).code == 0
    await world.settled()
    assert world.telegram.texts(ADA).count("We call you later.") == 1
    assert len(world.telegram.calls_of("sendDocument")) == 1
    assert len(ground.agent.turns()) == 1
    again = await call(ground, "chats", "inbox")
    assert "no chat wants a person" in again.out
