"""Moves of a whole conversation, and every statement taken by both databases."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Double,
    Insert,
    Integer,
    SelectBase,
    Text,
    UpdateBase,
)
from sqlalchemy.sql.compiler import SQLCompiler

import storage
from bot.domain.ending import Ending
from bot.domain.message import ChatKind
from storage import chats
from storage.chats import NewChat
from storage.statements.tx import Tx
from storage.views.parts import PartFilter, parts_listed
from storage.views.runs import RunFilter, runs_listed
from tests.storage.kit import LEASE, Hand


def test_a_refused_send_parks_the_chat_whenever_the_person_wrote(hand: Hand) -> None:
    chat = hand.new_chat()
    assert hand.do(chats.park, chat, "blocked")
    hand.heard(chat, 1_000.0, "1")
    assert hand.do(chats.get, chat).unreachable_reason is None
    assert hand.do(chats.park, chat, "blocked")
    assert hand.do(chats.get, chat).unreachable_reason == "blocked"


def test_a_block_that_is_older_than_the_last_message_parks_nothing(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.heard(chat, 1_000.0, "1")
    assert not hand.do(chats.park, chat, "blocked", 999.0)
    assert hand.do(chats.park, chat, "blocked", 1_000.0)


def test_who_comes_to_an_address_that_was_left_gets_a_chat_of_their_own(hand: Hand) -> None:
    left = hand.do(chats.get, hand.new_chat())
    hand.do(chats.leave_address, left.account, left.address)
    new = NewChat(left.account, left.address, ChatKind.PRIVATE, "", "")
    hand.do(chats.create, [new])
    found = hand.do(chats.locate, left.account, [left.address])
    assert found not in (None, left.id)
    assert hand.do(chats.get, found).address == left.address
    assert hand.do(chats.get, left.id).address != left.address


def test_a_filter_that_names_nothing_lists_everything(hand: Hand) -> None:
    run = hand.running()
    [part] = hand.parts(run)
    assert [line.id for line in hand.do(runs_listed, RunFilter(), LEASE)] == [run.id]
    assert [line.id for line in hand.do(parts_listed, PartFilter())] == [part.id]
    assert hand.do(runs_listed, RunFilter(before=run.id), LEASE) == []
    named = RunFilter(states=(run.state,), chats=(run.chat,), older=-9.0, newer=9.0, error="")
    assert [line.id for line in hand.do(runs_listed, named, LEASE)] == [run.id]
    assert hand.do(runs_listed, RunFilter(endings=(Ending.EXPIRED,), error="x"), LEASE) == []
    assert hand.do(parts_listed, PartFilter(before=part.id)) == []


@pytest.mark.parametrize("odd", ["\udced\udca0", "\0", "a\0b"], ids=ascii)
def test_a_word_that_no_database_takes_matches_nothing(hand: Hand, odd: str) -> None:
    hand.parts(hand.running())
    assert hand.do(runs_listed, RunFilter(error=odd), LEASE) == []
    assert hand.do(parts_listed, PartFilter(error=odd)) == []


def statements() -> Iterator[tuple[str, SelectBase | UpdateBase]]:
    """The constants of storage that are statements. An INSERT names the columns it is given."""
    for module in pkgutil.walk_packages(storage.__path__, "storage."):
        if ".migrations" in module.name or ".engine." in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, SelectBase | UpdateBase) and not isinstance(value, Insert):
                yield f"{module.name}.{name}", value


_EXAMPLES = {BigInteger: 1, Integer: 1, Double: 1.0, Text: "x"}


def test_both_databases_take_every_statement(hand: Hand) -> None:
    refused = {}

    def explain(tx: Tx, statement: SelectBase | UpdateBase) -> None:
        compiled = statement.compile(
            dialect=tx.dialect, compile_kwargs={"render_postcompile": True}
        )
        assert isinstance(compiled, SQLCompiler)
        values = {
            name: [] if isinstance(bind.type, ARRAY) else _EXAMPLES.get(type(bind.type))
            for name, bind in compiled.binds.items()
            if bind.required
        }
        tx.run(f"EXPLAIN {compiled}", {**compiled.params, **values})

    for name, statement in statements():
        try:
            hand.do(explain, statement)
        except Exception as error:  # noqa: BLE001 - all that are refused are named together
            refused[name] = str(error)
    assert refused == {}
