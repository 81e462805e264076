"""One way to run a statement, the same on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import (
    BigInteger,
    Double,
    Text,
    and_,
    bindparam,
    insert,
    select,
    text,
    update,
)

from storage.schema.tables import chats, events, runs
from storage.statements.clock import now
from storage.statements.sets import Rows, among, within
from storage.statements.tx import StatementFailed, Tx
from tests.storage.cost.plans import BIG, fill, reading
from tests.storage.kit import Hand, connected

SECRET = "secret-text-XYZ"
_NOTE = insert(events).values(at=now, who="test")
_WHAT = select(events.c.id, events.c.what, events.c.run).order_by(events.c.id)
_GIVEN = Rows("given", run_id=BigInteger(), said=Text(), at=Double())


@pytest.fixture
def tx(hand: Hand) -> Iterator[Tx]:
    """A transaction that ends with the test."""
    with connected(hand.url, hand.clock) as tx:
        tx.run("BEGIN")
        yield tx
        tx.connection.rollback()


def test_an_insert_names_the_columns_that_it_is_given(tx: Tx) -> None:
    tx.execute(_NOTE, {"what": "one", "run": 7})
    tx.execute(_NOTE, {"what": "two"})
    assert [(row.what, row.run) for row in tx.execute(_WHAT)] == [("one", 7), ("two", None)]


def test_values_within_a_statement_go_with_those_beside_it(tx: Tx) -> None:
    tx.execute(_NOTE, {"what": "one"})
    changed = update(events).where(events.c.what == bindparam("which")).values(why="because")
    assert tx.execute(changed, {"which": "one"}).rowcount == 1
    assert tx.execute(changed, {"which": "another"}).rowcount == 0
    assert tx.scalar(select(events.c.why).where(events.c.who == "test")) == "because"


def test_a_value_that_is_not_given_is_a_fault_and_never_null(tx: Tx) -> None:
    with pytest.raises(Exception, match=r"which|value for binding"):
        tx.execute(select(events.c.id).where(events.c.what == bindparam("which")))


def test_a_row_is_its_values_and_has_their_names(tx: Tx) -> None:
    [row] = tx.execute(text("SELECT 1 AS one, NULL, 'x' AS x"))
    assert (tuple(row), row.one, row.x) == ((1, None, "x"), 1, "x")


def test_a_truth_is_a_bool_also_where_the_database_has_none(hand: Hand, tx: Tx) -> None:
    hand.running()
    tx.run("COMMIT")
    told = select(runs.c.replied, (runs.c.fence > 0).label("claimed"), runs.c.ending.is_(None))
    assert tx.execute(told).all() == [(False, True, True)]
    moved = update(runs).values(replied=True).returning(runs.c.replied)
    assert tx.scalars(moved).all() == [True]


def test_the_last_value_and_no_value(tx: Tx) -> None:
    assert tx.scalar(_WHAT) is None
    assert tx.execute(_WHAT).first() is None
    assert tx.scalars(_WHAT).all() == []
    with pytest.raises(ValueError, match="not enough values"):
        tx.execute(_WHAT).one()


def test_an_error_tells_the_statement_and_no_value(hand: Hand) -> None:
    def twice(tx: Tx) -> None:
        for _ in range(2):
            tx.execute(
                insert(chats).values(created_at=now),
                {"account": hand.account, "address": SECRET, "kind": "private"},
            )

    with pytest.raises(StatementFailed, match="INSERT INTO chats") as failed:
        hand.do(twice)
    assert SECRET not in str(failed.value)
    assert failed.value.__suppress_context__


def test_what_is_no_unicode_gets_in_by_no_bind(hand: Hand) -> None:
    with pytest.raises(UnicodeEncodeError):
        hand.do(Tx.execute, _NOTE, {"what": "half \ud83d"})
    with pytest.raises(UnicodeEncodeError):
        hand.do(Tx.execute, select(_GIVEN.c.said), _GIVEN.of([(1, "half \ud83d", 1.0)]))


def test_a_list_is_selected_from_in_its_order(tx: Tx) -> None:
    rows = [(3, "drei", 1), (1, None, None), (2, 'quo"ted, {and} braced', 2.5)]
    listed = select(_GIVEN.table).order_by(_GIVEN.c.place)
    assert tx.execute(listed, _GIVEN.of(rows)).all() == [
        (3, "drei", 1.0, 1),
        (1, None, None, 2),
        (2, 'quo"ted, {and} braced', 2.5, 3),
    ]
    assert tx.execute(listed, _GIVEN.of([])).all() == []


def test_one_update_moves_every_row_of_a_list(hand: Hand, tx: Tx) -> None:
    made = [hand.ready(hand.new_chat()).id for _ in range(3)]
    move = (
        update(runs)
        .where(runs.c.id == _GIVEN.c.run_id, runs.c.state == "ready")
        .values(detail=_GIVEN.c.said, not_before=_GIVEN.c.at)
        .returning(runs.c.id, runs.c.detail, runs.c.not_before)
    )
    tx.run("COMMIT")
    given = [(made[0], "one", 1.0), (made[2], "three", 3.0), (4711, "nobody", 0.0)]
    assert sorted(tx.execute(move, _GIVEN.of(given))) == sorted(given[:2])


def test_a_column_is_among_a_list_or_within_a_query(tx: Tx) -> None:
    for what in ("one", "two", "three"):
        tx.execute(_NOTE, {"what": what})
    named = select(events.c.what).where(among(events.c.what, "names")).order_by(events.c.id)
    assert tx.scalars(named, {"names": ["three", "one"]}).all() == ["one", "three"]
    assert tx.scalars(named, {"names": []}).all() == []
    newest = select(events.c.id).order_by(events.c.id.desc()).limit(1)
    assert tx.scalars(select(events.c.what).where(within(events.c.id, newest))).all() == ["three"]


def test_the_rows_of_a_list_are_looked_up_by_index(hand: Hand) -> None:
    fill(hand, ended=2_000, waiting=100)
    here = and_(chats.c.account == hand.account, chats.c.address == _GIVEN.c.said)
    found = select(chats.c.id).select_from(_GIVEN.join(chats, here)).order_by(_GIVEN.c.place)
    moved = update(runs).where(runs.c.id == _GIVEN.c.run_id).values(detail=_GIVEN.c.said)
    listed = select(runs.c.id).where(among(runs.c.id, "ids"))
    given = _GIVEN.of([(n, f"past-{n}", 0.0) for n in range(3)])
    for statement, values in ((found, given), (moved, given), (listed, {"ids": [1, 2, 3]})):
        assert not reading(hand, Tx.execute, statement, values).whole_tables & BIG
