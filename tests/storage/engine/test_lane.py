"""Lanes: shared transactions, their order, and the safety of neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from bot.domain.errors import DatabaseUnavailable
from storage.engine.lane import Lane, LeftOut, _Member
from storage.statements.tx import Tx
from tests.limits import PATIENCE
from tests.storage.kit import Hand

NOTE = text("INSERT INTO events (at, who, what) VALUES (1, 'lane', :what)")
NOTED = "SELECT what FROM events WHERE who = 'lane' ORDER BY id"
POISON = "poison"


class Word(NamedTuple):
    """A member: a word of a chat."""

    chat: str
    what: str


class Words:
    """A lane that notes words; `hold` keeps its next transaction from beginning."""

    def __init__(self, hand: Hand, **bounds: int) -> None:
        self.hand = hand
        self.lists: list[list[str]] = []
        self.alone: list[str] = []
        self.leave: dict[str, list[LeftOut]] = {}
        self.breaks = {POISON}
        self.begun = asyncio.Event()
        self.free = asyncio.Event()
        self.lane: Lane[Word, str] = Lane(
            self._write, self._together, self._alone, lambda word: word.chat, **bounds
        )

    async def _write(self, move: Callable[..., Any], *args: Any) -> Any:
        self.begun.set()
        await self.free.wait()
        return await self.hand.db.write(move, *args)

    async def held(self) -> asyncio.Future[str]:
        """A first word, whose transaction begins when the lane is let go."""
        first = asyncio.ensure_future(self.lane.do(Word("0", "first")))
        await self.begun.wait()
        return first

    def let_go(self) -> None:
        """Once those who begin to wait in this turn of the loop wait."""
        asyncio.get_running_loop().call_soon(self.free.set)

    def _together(self, tx: Tx, words: Sequence[Word]) -> Sequence[str | Exception | LeftOut]:
        self.lists.append([word.what for word in words])
        return [self._moved(tx, word) for word in words]

    def _moved(self, tx: Tx, word: Word) -> str | Exception | LeftOut:
        if self.leave.get(word.what):
            return self.leave[word.what].pop(0)
        if word.what == "lost":
            return LookupError(word.what)
        if word.what in self.breaks:
            raise ValueError(POISON)
        tx.execute(NOTE, {"what": word.what})
        return word.what.upper()

    def _alone(self, tx: Tx, word: Word) -> str:
        self.alone.append(word.what)
        if word.what == POISON:
            raise ValueError(POISON)
        tx.execute(NOTE, {"what": word.what})
        return word.what

    async def all_at_once(self, *words: tuple[str, str]) -> list[str | BaseException]:
        """Hand in these words while the lane is held, then let it go."""
        first = await self.held()
        others = [asyncio.ensure_future(self.lane.do(Word(*word))) for word in words]
        self.let_go()
        async with asyncio.timeout(PATIENCE):
            await first
            return await asyncio.gather(*others, return_exceptions=True)

    def noted(self) -> list[str]:
        return [what for (what,) in self.hand.rows(NOTED)]


async def test_who_waits_shares_the_next_transaction_and_gets_its_own_answer(hand: Hand) -> None:
    words = Words(hand)
    assert await words.all_at_once(("1", "a"), ("2", "b"), ("3", "c")) == ["A", "B", "C"]
    assert words.lists == [["first"], ["a", "b", "c"]]


async def test_words_of_one_chat_come_one_a_list_and_in_their_order(hand: Hand) -> None:
    words = Words(hand)
    await words.all_at_once(("1", "a"), ("1", "b"), ("2", "c"), ("1", "d"))
    assert words.lists == [["first"], ["a", "c"], ["b"], ["d"]]


async def test_a_member_that_breaks_its_list_is_found_and_hurts_nobody(hand: Hand) -> None:
    words = Words(hand)
    told = await words.all_at_once(("1", "a"), ("2", POISON), ("3", "c"), ("4", "d"), ("5", "e"))
    assert isinstance(told.pop(1), ValueError)
    assert told == ["A", "C", "D", "E"]
    assert words.noted() == ["first", "a", "c", "d", "e"]


async def test_an_error_for_one_member_is_told_to_its_caller_alone(hand: Hand) -> None:
    words = Words(hand)
    told = await words.all_at_once(("1", "a"), ("2", "lost"), ("3", "c"))
    assert isinstance(told.pop(1), LookupError)
    assert told == ["A", "C"]
    assert len(words.lists) == 2


async def test_a_locked_member_comes_along_in_the_next_lists_and_then_by_itself(
    hand: Hand,
) -> None:
    words = Words(hand)
    words.leave = {"a": [LeftOut.LOCKED], "b": [LeftOut.LOCKED] * 10_000}
    told = await words.all_at_once(("1", "a"), ("2", "b"), ("3", "c"), ("3", "d"))
    assert told == ["A", "b", "C", "D"]
    assert words.lists[:3] == [["first"], ["a", "b", "c"], ["a", "b", "d"]]
    assert len(words.lists) >= 10
    assert all(members == ["b"] for members in words.lists[3:])
    assert words.alone == ["b"]


async def test_a_member_rides_on_for_some_lists_and_for_some_time() -> None:
    quick, slow = (_Member("word", "chat", asyncio.Future[str]()) for _ in range(2))
    assert all(quick.rides_on(7.0 + n / 100) for n in range(50))
    assert not quick.rides_on(7.5)
    assert all(slow.rides_on(7.0 + n) for n in range(8))
    assert not slow.rides_on(16.0)


async def test_what_breaks_a_list_of_one_is_moved_by_itself(hand: Hand) -> None:
    words = Words(hand)
    words.breaks = {"a"}
    assert await words.all_at_once(("1", "a"), ("2", "b")) == ["a", "B"]
    assert words.alone == ["a"]


class Stuck(Words):
    """A lane whose members can't be moved by themselves until `freed`: somebody has their rows."""

    def __init__(self, hand: Hand) -> None:
        super().__init__(hand)
        self.free.set()
        self.stuck = asyncio.Event()
        self.freed = asyncio.Event()
        self.waiting = 0

    async def _write(self, move: Callable[..., Any], *args: Any) -> Any:
        if move == self._alone:
            self.waiting += 1
            self.stuck.set()
            await self.freed.wait()
        return await super()._write(move, *args)


@pytest.mark.parametrize(
    ("left", "at_once"), [([LeftOut.LOCKED] * 10_000, 2), ([LeftOut.ALONE], 4)]
)
async def test_those_who_are_moved_by_themselves_leave_connections_to_the_others(
    hand: Hand, left: list[LeftOut], at_once: int
) -> None:
    words = Stuck(hand)
    words.leave = {what: [*left] for what in "abcdefgh"}
    locked = [asyncio.ensure_future(words.lane.do(Word(what, what))) for what in words.leave]
    async with asyncio.timeout(PATIENCE):
        await words.stuck.wait()
        assert await words.lane.do(Word("9", "free")) == "FREE"
        assert words.waiting <= at_once
        locked.pop().cancel()
        words.freed.set()
        assert await asyncio.gather(*locked) == list("abcdefg")
    assert "h" not in words.noted()


async def test_nobody_overtakes_a_member_that_is_moved_by_itself(hand: Hand) -> None:
    words = Words(hand)
    words.leave = {"a": [LeftOut.ALONE]}
    await words.all_at_once(("1", "a"), ("1", "b"), ("2", "c"))
    noted = words.noted()
    assert noted.index("a") < noted.index("b")


async def test_a_caller_that_leaves_before_its_list_begins_takes_its_word_along(
    hand: Hand,
) -> None:
    words = Words(hand)
    first = await words.held()
    gone, stays = (asyncio.ensure_future(words.lane.do(Word(c, c))) for c in "ab")
    asyncio.get_running_loop().call_soon(gone.cancel)
    words.let_go()
    assert [await first, await stays] == ["FIRST", "B"]
    assert gone.cancelled()
    assert words.noted() == ["first", "b"]


async def test_past_its_bound_a_lane_says_that_the_database_can_t_follow(hand: Hand) -> None:
    words = Words(hand, bound=2)
    told = await words.all_at_once(("1", "a"), ("2", "b"), ("3", "c"))
    assert told[:2] == ["A", "B"]
    assert isinstance(told[2], DatabaseUnavailable)


async def test_a_list_is_no_longer_than_its_longest(hand: Hand) -> None:
    words = Words(hand, longest=2)
    await words.all_at_once(("1", "a"), ("2", "b"), ("3", "c"))
    assert words.lists == [["first"], ["a", "b"], ["c"]]


async def test_nobody_waits_for_a_lane_whose_process_ends(hand: Hand) -> None:
    words = Words(hand)
    first = await words.held()
    waiting = [asyncio.ensure_future(words.lane.do(Word(c, c))) for c in "abc"]
    assert words.lane._runs is not None
    asyncio.get_running_loop().call_soon(words.lane._runs.cancel)
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(first, *waiting, return_exceptions=True)
    assert all(told.cancelled() for told in (first, *waiting))


async def test_everybody_is_told_when_the_database_is_away(hand: Hand) -> None:
    words = Words(hand)
    first = await words.held()
    waiting = [asyncio.ensure_future(words.lane.do(Word(c, c))) for c in "abc"]
    hand.db.close()
    words.let_go()
    for told in await asyncio.gather(first, *waiting, return_exceptions=True):
        assert isinstance(told, DatabaseUnavailable | RuntimeError)
