"""The builders make updates that the description allows and our library can read."""

from __future__ import annotations

import json

import pytest
from telegram import Update

from tests.fakes.every_update import every_message, every_update
from tests.fakes.recording import Json
from tests.fakes.telegram import spec
from tests.fakes.updates import (
    Person,
    anonymous_admin,
    bot_user,
    channel,
    entity,
    forum,
    group,
    supergroup,
    user,
)

DESCRIBED = spec.load()
needs_description = pytest.mark.skipif(
    DESCRIBED is None, reason="no description of the Bot API beside the project"
)


@pytest.fixture(autouse=True)
def durations_as_timedelta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the library warns of its future whenever it meets a duration."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


def built() -> list[Json]:
    ada = Person(700_100_201)
    first = ada.text("book a table")
    team = supergroup(-1_007_000_000_501)
    origin = {"type": "user", "date": 1_800_000_000, "sender_user": user(5)}
    return [
        first,
        ada.text("👍 see @bot", entity("mention", "👍 see @bot", "@bot")),
        ada.command("/start now"),
        ada.reply("yes", first["message"], quote="book"),
        ada.forward("look", origin),
        ada.edit(first, "book a table for two"),
        *ada.album("mg-900001", "which one is cheaper?"),
        ada.voice(),
        ada.document(),
        ada.audio(),
        ada.video(),
        ada.video_note(),
        ada.animation(),
        ada.sticker(),
        ada.location(),
        ada.venue(),
        ada.contact(),
        ada.poll(),
        ada.dice(),
        ada.rich(),
        ada.press("opt:2"),
        ada.press("opt:2", on=first["message"]),
        ada.member("kicked"),
        ada.member("member", before="kicked"),
        Person(7, group(-700_301)).migrated_to(-1_007_000_000_301),
        Person(7, supergroup(-1_007_000_000_301)).migrated_from(-700_301),
        Person(-1_007_000_000_701, channel(-1_007_000_000_701)).post("news"),
        anonymous_admin(team).text("hi", sender_chat=team),
        Person(8, forum(-1_007_000_000_401), topic=77).text("in a topic"),
        Person(9, team, sender=bot_user(7_000_000_055, "other_bot")).text("beep"),
    ]


def problems(update: Json) -> list[str]:
    assert DESCRIBED is not None
    return DESCRIBED.type_problems("Update", update)


@needs_description
def test_every_builder_makes_what_the_description_allows() -> None:
    assert [found for update in built() if (found := problems(update))] == []


def test_every_builder_makes_what_the_library_reads() -> None:
    for update in built():
        read = Update.de_json(json.loads(json.dumps(update)), None)
        assert read.update_id == update["update_id"]


def test_no_two_updates_share_an_id_and_no_two_messages_of_a_chat() -> None:
    updates = built()
    assert len({u["update_id"] for u in updates}) == len(updates)
    ids = [
        (u["message"]["chat"]["id"], u["message"]["message_id"]) for u in updates if "message" in u
    ]
    assert len(set(ids)) == len(ids)


def test_two_members_of_a_group_write_messages_with_different_ids() -> None:
    team = group(-5)
    ada, grace = Person(1, team), Person(2, team)
    first, second = ada.text("a"), grace.text("b")
    assert first["message"]["message_id"] != second["message"]["message_id"]
    assert first["update_id"] != second["update_id"]


def test_an_entity_is_measured_in_utf16_units() -> None:
    assert entity("bold", "👍 big", "big") == {"type": "bold", "offset": 3, "length": 3}


@needs_description
def test_there_is_one_valid_update_of_every_kind() -> None:
    assert DESCRIBED is not None
    made = dict(every_update(DESCRIBED))
    assert set(made) == set(DESCRIBED.types["Update"]) - {"update_id"}
    assert [found for update in made.values() if (found := problems(update))] == []
    for update in made.values():
        Update.de_json(json.loads(json.dumps(update)), None)


@needs_description
def test_there_is_one_valid_message_with_every_content() -> None:
    assert DESCRIBED is not None
    made = dict(every_message(DESCRIBED))
    contents = {name.partition(":")[0] for name in made}
    assert contents == set(DESCRIBED.types["Message"]) - {"message_id", "date", "chat", "from"}
    assert {n for n in made if n.startswith("forward_origin:")} == {
        f"forward_origin:MessageOrigin{kind}" for kind in ("User", "HiddenUser", "Chat", "Channel")
    }
    assert [found for update in made.values() if (found := problems(update))] == []
    for update in made.values():
        Update.de_json(json.loads(json.dumps(update)), None)


@needs_description
def test_a_broken_update_is_seen_as_one() -> None:
    whole = Person(5).text("hi")
    assert problems(whole) == []
    broken = {**whole, "message": {**whole["message"], "date": "today"}}
    assert problems(broken) == ["Update.message.date: Integer expected, got str"]
    del broken["message"]["date"]
    assert problems(broken) == ["Update.message: date is missing"]
