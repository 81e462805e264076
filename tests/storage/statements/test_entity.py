"""Entities: rows read as the dataclasses that spell their columns."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

import pytest
from sqlalchemy import func, select

from bot.domain.delivery import PartState
from bot.domain.message import Address, Attachment, ChannelName, ChatKind
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Run, RunState
from storage import accounts
from storage.outbox import Part
from storage.schema.tables import chats, inbound, outbox, runs
from storage.statements.entity import Entity
from tests.storage.kit import Hand

RUN = Entity(Run, runs)
PART = Entity(Part, outbox, number=outbox.c.part)


@dataclass(frozen=True, slots=True)
class Place:
    id: int
    address: Address
    kind: ChatKind
    heard: bool
    wanted: tuple[str, ...] = ()


def test_the_dataclass_spells_the_columns() -> None:
    assert [column.name for column in RUN.columns] == [field.name for field in fields(Run)]


def test_a_run_is_read_with_its_enumerations_and_its_nothing(hand: Hand) -> None:
    run = hand.ready(hand.new_chat())
    read = hand.do(
        lambda tx: RUN.first(tx.execute(select(*RUN.columns).where(runs.c.id == run.id)))
    )
    assert read is not None
    assert read == run
    assert read.state is RunState.READY
    assert read.ending is None


def test_a_part_is_read_with_its_body_and_a_renamed_number(hand: Hand) -> None:
    chat = hand.new_chat()
    part = hand.post(chat, PartKind.OPERATOR)
    [read] = hand.do(lambda tx: PART.all(tx.execute(select(*PART.columns, outbox.c.run))))
    assert (read.id, read.kind, read.state) == (part, PartKind.OPERATOR, PartState.PENDING)
    assert (read.number, read.scope) == (1, None)
    assert read.body == PartBody("a note", "{}")


def test_a_checked_name_is_read_as_what_it_is(hand: Hand) -> None:
    hand.new_chat()
    [account, *_] = hand.do(accounts.listed)
    assert type(account.channel) is ChannelName


def test_an_expression_another_entity_and_a_default_are_spelled_out(hand: Hand) -> None:
    place = Entity(
        Place,
        chats,
        address=Entity(Address, chats, chat=chats.c.address),
        heard=chats.c.last_inbound_at.is_not(None).label("heard"),
    )
    chat = hand.new_chat("-100")
    [read] = hand.do(lambda tx: place.all(tx.execute(select(*place.columns))))
    assert read == Place(chat, Address("-100", ""), ChatKind.PRIVATE, heard=False)


def test_a_reader_turns_a_value_into_a_field() -> None:
    @dataclass(frozen=True, slots=True)
    class Message:
        attachments: tuple[Attachment, ...]

    def parsed(stored: str) -> tuple[Attachment, ...]:
        return tuple(Attachment(**one) for one in json.loads(stored))

    message = Entity(Message, inbound, attachments=(inbound.c.attachments, parsed))
    assert message.read(["[]", "left alone"]) == Message(())
    assert message.all([]) == []
    assert message.first([]) is None


def test_a_field_that_no_dataclass_has_is_refused() -> None:
    with pytest.raises(AssertionError, match="Run has no nonsense"):
        Entity(Run, runs, nonsense=func.now())
