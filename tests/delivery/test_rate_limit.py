"""Rate limits, kept by one process, by many, with and without Redis."""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise

import pytest
from _pytest.mark import ParameterSet

from bot.api import Turn
from bot.clock import SystemClock
from bot.delivery.rate_limit import RateLimiter
from bot.domain.decisions.terms import Burst
from bot.domain.delivery import LimitOf
from bot.domain.message import Address, ChatKind
from bot.domain.ports import Pace, Recipient
from bot.wiring import Role
from storage.notify import READY
from storage.rate_limit import SharedRateLimit
from tests.clocks import ShiftedClock
from tests.fakes.updates import Person, entity, forum
from tests.kit.agents import repeats
from tests.limits import until
from tests.servers import Valkey
from tests.world import World

TELEGRAM = Pace(per_chat=1, overall=30, per_group_minute=20)


def chat(number: int, topic: str = "") -> Recipient:
    kind = ChatKind.GROUP if number < 0 else ChatKind.PRIVATE
    return Recipient(Address(str(number), topic), kind)


class SleepersClock(SystemClock):
    """Time that moves on to the next sleeper when everybody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._order), woken))
        await woken

    async def run(self, *everybody: Coroutine[None, None, None]) -> None:
        """Let time pass until all of them are done."""
        tasks = [asyncio.create_task(one) for one in everybody]
        while not all(task.done() for task in tasks):
            await others()
            if self._sleepers:
                at, _, woken = heapq.heappop(self._sleepers)
                self.now = max(self.now, at)
                if not woken.done():
                    woken.set_result(None)
        await asyncio.gather(*tasks)


async def others() -> None:
    """Let every other task go on until it waits."""
    loop = asyncio.get_running_loop()
    for _ in range(10):
        turn: asyncio.Future[None] = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


def fullest(times: Iterable[float]) -> int:
    """The most moments within one second."""
    moments = sorted(times)
    return max(bisect_left(moments, at + 1) - n for n, at in enumerate(moments))


async def leaving(limiter: RateLimiter, to: Recipient, left: list[float]) -> None:
    permit = await limiter.permit(to, 1e6)
    assert permit.taken
    left.append(limiter._clock.monotonic())


async def test_one_chat_gets_one_message_a_second_and_a_group_twenty_a_minute() -> None:
    for to, first, last in ((chat(1), 9, 10), (chat(-1), 160, 190)):
        clock, left = SleepersClock(), list[float]()
        limiter = RateLimiter(TELEGRAM, clock)
        await clock.run(*(leaving(limiter, to, left) for _ in range(10 if to == chat(1) else 50)))
        assert first <= left[-1] <= last
        assert fullest(left) <= 3


async def test_a_hot_group_uses_up_nothing_of_the_others() -> None:
    clock, left = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)
    hot = [asyncio.create_task(leaving(limiter, chat(-1, str(n)), [])) for n in range(50)]
    await others()
    await clock.run(leaving(limiter, chat(2), left))
    assert left[0] < 0.2
    for task in hot:
        task.cancel()


async def test_a_hundred_waiters_leave_one_after_the_other() -> None:
    clock, left = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)
    await clock.run(*(leaving(limiter, chat(n), left) for n in range(100)))
    assert left[-1] == pytest.approx(99 / 29.1, abs=0.01)
    gaps = [after - before for before, after in pairwise(left)]
    assert min(gaps) == pytest.approx(1 / 29.1, abs=1e-6)


async def test_calls_that_wake_late_together_are_kept_apart() -> None:
    clock, began = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)

    async def call() -> None:
        await limiter.even_out()
        began.append(clock.now)

    async def stand_still() -> None:
        await clock.sleep(1.0)
        clock.now += 0.5

    await clock.run(stand_still(), *(call() for _ in range(90)))
    assert fullest(began) <= 32
    assert began[-1] == pytest.approx(89 / 30 + 0.45, abs=0.05)


async def test_a_permit_that_was_not_used_is_given_back() -> None:
    limiter = RateLimiter(TELEGRAM, ShiftedClock())
    (await limiter.permit(chat(1))).refund()
    assert (await limiter.permit(chat(1))).taken


async def test_who_is_cancelled_leaves_its_permit_to_the_next() -> None:
    clock, left = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)
    waiting = [asyncio.create_task(leaving(limiter, chat(n), [])) for n in range(80)]
    await others()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await clock.run(leaving(limiter, chat(99), left))
    assert left[0] < 0.2


async def test_who_only_tries_waits_for_nothing_and_is_named_no_moment() -> None:
    limiter = RateLimiter(TELEGRAM, SleepersClock())
    waits = [(await limiter.permit(chat(n))).wait for n in range(50)]
    assert waits[0] == 0
    assert all(0 < wait < 0.04 for wait in waits[1:])


async def test_who_comes_back_later_is_told_moments_that_lie_apart() -> None:
    clock, later = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)

    async def ask(number: int) -> None:
        later.append((await limiter.permit(chat(number), 3.0)).wait)

    await clock.run(*(ask(number) for number in range(300)))
    told = sorted(wait for wait in later if wait > 0)
    assert 200 < len(told) < 220
    assert fullest(told) <= 30


@dataclass
class Backlog:
    """Chats with one answer each, claimed as workers do: first due first, as many turns at once as
    a process has room for, with a look a second while nothing is due."""

    clock: SleepersClock
    agent_takes: float
    call_takes: float
    ready: list[tuple[float, int]]
    claims: Counter[int] = field(default_factory=Counter)
    left: list[float] = field(default_factory=list)

    async def work(self, limiter: RateLimiter, concurrency: int) -> None:
        """One process."""
        turns = set[asyncio.Task[None]]()
        while self.ready or turns:
            due = bool(self.ready) and self.ready[0][0] <= self.clock.now
            if due and min(concurrency - len(turns), limiter.room) > 0:
                _, number = heapq.heappop(self.ready)
                limiter.turns += 1
                turns.add(turn := asyncio.create_task(self._turn(limiter, number)))
                turn.add_done_callback(turns.discard)
            else:
                # A turn that ends makes room, which is noticed at once.
                await self.clock.sleep(0.02 if due else 1.0)

    async def _turn(self, limiter: RateLimiter, number: int) -> None:
        self.claims[number] += 1
        with limiter.turn():
            if self.claims[number] == 1:
                await self.clock.sleep(self.agent_takes)
            permit = await limiter.permit(chat(number), 3.0, returned=self.claims[number] > 1)
            if permit.taken:
                await self.clock.sleep(self.call_takes)
        limiter.turns -= 1
        if permit.taken:
            self.left.append(self.clock.now)
        else:
            heapq.heappush(self.ready, (self.clock.now + permit.wait, number))


def _backlogs() -> Iterator[ParameterSet]:
    """Each number of processes with two ways to take long, each way with one or two of them; all
    under `--deep`."""
    ways = ((0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (0.0, 2.0))
    for number, processes in enumerate(((1, 100), (1, 20), (4, 100))):
        for nth, way in enumerate(ways):
            sampled = (number + nth) % 2 == 0
            yield pytest.param(*processes, *way, marks=() if sampled else pytest.mark.deep)


@pytest.mark.parametrize(("processes", "concurrency", "agent_takes", "call_takes"), [*_backlogs()])
async def test_a_backlog_of_1200_uses_the_rate_and_claims_hardly_any_run_twice(
    processes: int, concurrency: int, agent_takes: float, call_takes: float
) -> None:
    clock = SleepersClock()
    backlog = Backlog(clock, agent_takes, call_takes, [(0.0, n) for n in range(1200)])
    limiters = [RateLimiter(TELEGRAM, clock) for _ in range(processes)]
    for limiter in limiters:
        limiter.share(processes)
    await clock.run(*(backlog.work(limiter, concurrency) for limiter in limiters))
    takes = agent_takes + call_takes
    allowed = (concurrency * processes / takes) if takes else 30
    seconds = backlog.left[-1] - backlog.left[0]
    assert len(backlog.left) / seconds >= 0.95 * min(30, allowed / 1.4)
    assert fullest(backlog.left) <= 29 + processes
    assert max(backlog.claims.values()) <= 2
    assert sum(backlog.claims.values()) <= 1200 + concurrency * processes


async def test_three_chats_refused_within_a_second_hold_the_whole_account() -> None:
    clock, left = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)
    for number in range(2):
        await limiter.refused(chat(number), 20.0, LimitOf.UNTOLD)
    assert (await limiter.permit(chat(9))).taken
    await limiter.refused(chat(2), 20.0, LimitOf.UNTOLD)
    assert (await limiter.permit(chat(10), 3.0)).wait == pytest.approx(20.0)
    await clock.run(leaving(limiter, chat(11), left))
    assert left[0] >= 20.0


async def test_limits_that_are_said_to_be_of_their_chats_hold_up_nobody_else() -> None:
    limiter = RateLimiter(TELEGRAM, SleepersClock())
    for number in range(5):
        await limiter.refused(chat(number), 20.0, LimitOf.CHAT)
    assert (await limiter.permit(chat(9))).taken


async def test_a_chat_at_rest_may_get_a_burst_and_then_its_even_flow() -> None:
    limiter = RateLimiter(Pace(per_chat=1 / 6, chat_burst=3), SleepersClock())
    assert [(await limiter.permit(chat(1))).taken for _ in range(4)] == [True, True, True, False]
    assert (await limiter.permit(chat(1), 0.5)).wait > 5.0


async def test_who_stands_in_line_when_the_account_is_held_waits_for_its_end() -> None:
    clock, left = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)

    async def refused() -> None:
        await clock.sleep(0.5)
        for number in range(3):
            await limiter.refused(chat(number), 20.0, LimitOf.UNTOLD)

    await clock.run(refused(), *(leaving(limiter, chat(n), left) for n in range(60)))
    assert len(left) == 60
    assert not [at for at in left if 0.5 < at < 20.5]
    assert fullest(left) <= 30


async def test_a_limit_that_is_the_accounts_holds_it_at_once() -> None:
    limiter = RateLimiter(Pace(overall=80.0), SleepersClock())
    await limiter.refused(chat(1), 30.0, LimitOf.ACCOUNT)
    assert (await limiter.permit(chat(2), 3.0)).wait == pytest.approx(30.0)


async def test_the_maps_are_empty_when_nobody_writes() -> None:
    clock = ShiftedClock()
    limiter = RateLimiter(TELEGRAM, clock)
    for number in range(5000):
        permit = await limiter.permit(chat(number))
        clock.advance(permit.wait)
    assert len(limiter) < 1100
    clock.advance(60)
    limiter.forget_idle()
    assert len(limiter) == 0


async def test_without_redis_each_process_keeps_to_its_share() -> None:
    clock, left = SleepersClock(), list[float]()
    limiter = RateLimiter(TELEGRAM, clock)
    limiter.share(3)
    await clock.run(*(leaving(limiter, chat(n), left) for n in range(10)))
    assert left[-1] == pytest.approx(9 * 3 / 29.1, abs=0.01)


async def test_with_redis_two_processes_share_one_rate(valkey_url: str) -> None:
    clock = SystemClock()
    shared = [SharedRateLimit(valkey_url, "telegram:1", clock) for _ in range(2)]
    slow_chats = Pace(per_chat=0.005, overall=30)
    limiters = [RateLimiter(slow_chats, clock, one) for one in shared]
    left: list[float] = []
    began = clock.monotonic()
    await asyncio.gather(*(leaving(limiters[n % 2], chat(n), left) for n in range(60)))
    assert left[-1] - began >= 59 / 29.1 - 0.01
    again = await limiters[1].permit(chat(59))
    assert 0 < again.wait <= 1 / (0.005 * 0.95)
    for one in shared:
        await one.close()


async def test_with_redis_a_hold_and_the_moments_of_return_are_shared(valkey_url: str) -> None:
    clock = SystemClock()
    shared = [SharedRateLimit(valkey_url, "telegram:2", clock) for _ in range(2)]
    limiters = [RateLimiter(TELEGRAM, clock, one) for one in shared]
    held = clock.monotonic()
    await limiters[0].refused(chat(1), 300.0, LimitOf.ACCOUNT)
    told: list[tuple[float, float]] = []
    """The earliest and the latest moment that was meant: an answer may take its time."""
    for n in range(10):
        asked = clock.monotonic()
        wait = (await limiters[n % 2].permit(chat(n), 3.0)).wait
        told.append((asked + wait, clock.monotonic() + wait))
    (first, at_the_latest), (last, last_at_the_latest) = told[0], told[-1]
    assert at_the_latest >= held + 300 - 0.01
    assert first <= clock.monotonic() + 300
    assert last <= at_the_latest + 9 / 29.1 + 0.01
    assert last_at_the_latest >= first + 9 / 29.1 - 0.01
    for one in shared:
        await one.close()


async def test_a_hold_outlives_an_emptied_redis_and_a_shorter_refusal(
    valkey: Valkey, valkey_url: str
) -> None:
    clock = SystemClock()
    shared = [SharedRateLimit(valkey_url, "telegram:5", clock) for _ in range(2)]
    limiters = [RateLimiter(Pace(overall=10.0), clock, one) for one in shared]
    await limiters[0].refused(chat(1), 300.0, LimitOf.ACCOUNT)
    await limiters[0].refused(chat(2), 1.0, LimitOf.ACCOUNT)
    assert (await limiters[1].permit(chat(3))).wait > 100.0
    valkey.flush()
    await limiters[0].permit(chat(3))
    waits = [(await limiter.permit(chat(3))).wait for limiter in limiters]
    assert min(waits) > 100.0
    for one in shared:
        await one.close()


async def test_with_redis_who_is_cancelled_leaves_its_permit_to_the_next(valkey_url: str) -> None:
    clock = SystemClock()
    shared = SharedRateLimit(valkey_url, "telegram:3", clock)
    limiter = RateLimiter(TELEGRAM, clock, shared)
    waiting = [asyncio.create_task(leaving(limiter, chat(n), [])) for n in range(900)]
    await until(lambda: len(limiter) == 901)  # Each has its permit once the map knows its chat.
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (await limiter.permit(chat(99))).wait < 15.0, "all 900 would take 30 s"
    await shared.close()


async def test_without_an_answer_from_redis_the_share_holds(
    valkey: Valkey, valkey_url: str
) -> None:
    clock, redis_clock, left = SleepersClock(), ShiftedClock(), list[float]()
    shared = SharedRateLimit(valkey_url, "telegram:1", redis_clock)
    limiter = RateLimiter(TELEGRAM, clock, shared)
    limiter.share(2)
    assert (await limiter.permit(chat(1))).taken
    valkey.stop()
    assert (await limiter.permit(chat(2))).wait > 0
    await clock.run(*(leaving(limiter, chat(n), left) for n in range(3, 13)))
    assert left[-1] == pytest.approx(9 * 2 / 29.1, abs=0.1)
    valkey.ensure_running()
    redis_clock.advance(10)
    assert (await limiter.permit(chat(99))).taken
    await shared.close()


async def test_a_hot_group_does_not_hold_up_private_chats(world: World) -> None:
    process = await world.start(agent=repeats, concurrency=4, burst=Burst.EACH)
    hot = [Person(700300000 + n, forum(-1007000000901), topic=100 + n) for n in range(12)]
    text = "@relay_test_bot go"
    marks = entity("mention", text, "@relay_test_bot")
    await asyncio.gather(*(process.post_update(person.text(text, marks)) for person in hot))
    await process.post_update(Person(700300100).text("hello"))
    await world.telegram.wait_for(lambda: world.telegram.texts(700300100) == ["hello"])
    assert len(world.telegram.texts(-1007000000901)) < 12
    assert world.telegram.main.rates.excess == []


@pytest.mark.parametrize("with_redis", [True, False])
async def test_two_processes_together_stay_within_the_pace(
    world: World, valkey_url: str, with_redis: bool
) -> None:
    redis_url = valkey_url if with_redis else ""
    processes = [await world.start(agent=repeats, redis_url=redis_url) for _ in range(2)]
    for process in processes:
        await process.process.share_rate_limits()
    people = [Person(700500000 + n) for n in range(80)]
    began = world.clock.wall()
    await asyncio.gather(
        *(processes[n % 2].post_update(p.text("hi")) for n, p in enumerate(people))
    )
    await world.settled()
    assert all(world.telegram.texts(person.number) == ["hi"] for person in people)
    # None came before its moment in an even flow of 30 a second from the first: so however late
    # a busy machine lets each of them leave. Each process alone would send 29 in a second.
    came = sorted(message.at - began for message in world.telegram.all_messages())
    assert all(at >= (n - 1) / 30 for n, at in enumerate(came))


@pytest.mark.long
async def test_b103_a_backlog_of_many_chats_is_answered_in_order_within_the_pace(
    world: World,
) -> None:
    process = await world.start(agent=repeats, concurrency=20)
    people = [Person(700400000 + n) for n in range(12)]
    for number in range(25):
        for person in people:
            assert (await process.post_update(person.text(f"{number}"))).status_code == 200
            person.at += 400
    await world.settled()
    for person in people:
        said = "\n".join(world.telegram.texts(person.number)).split("\n")
        assert said == [str(n) for n in range(25)]
    assert world.telegram.main.rates.excess == []
    assert await world.rows("SELECT count(*) FROM inbound WHERE run IS NULL") == [(0,)]


async def test_a_backlog_waits_unclaimed_for_its_pace(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    people = [Person(700600000 + n) for n in range(150)]
    for person in people:
        await web.post_update(person.text("hi"))
    worker = await world.start(agent=repeats, role=Role.WORKER)
    telegram = worker.process.ctx.limiters[worker.process.ids["telegram"]]
    with telegram.turn():
        pass  # It knows from before how long its turns take.
    await world.settled()
    assert await world.rows("SELECT DISTINCT ending FROM runs") == [("answered",)]
    [(claims,)] = await world.rows("SELECT sum(attempts) FROM runs")
    # The first claim may come before the agents are known, and takes half the room.
    assert claims <= 150 + 50
    await until(lambda: telegram.turns == 0)


async def test_an_idle_account_does_not_lengthen_the_line_of_a_busy_one(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    slow, under_way = RateLimiter(Pace(overall=0.01), world.clock), list[int]()

    async def counts(turn: Turn) -> str:
        under_way.append(slow.turns)
        return await repeats(turn)

    worker = await world.start(agent=counts, role=Role.WORKER)
    with slow.turn():
        pass  # It knows from before how long its turns take.
    slow.turns = full = 10
    limiters = worker.process.ctx.limiters
    assert isinstance(limiters, dict)
    limiters[worker.process.ids["telegram"]] = slow
    assert not worker.process.rt.wakeups.keeps(READY)
    for number in range(20):
        await web.post_update(Person(700700000 + number).text("hi"))
    slow.turns -= full
    await until(lambda: len(under_way) >= 3)
    assert max(under_way) == 1
