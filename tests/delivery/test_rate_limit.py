"""The pace that Telegram asks for, kept by one process, by many, with and without Redis."""

from __future__ import annotations

import asyncio

import pytest

from bot.clock import SystemClock
from bot.delivery.rate_limit import Pacer
from bot.domain.message import Address, ChatKind
from bot.domain.ports import Pace, Recipient
from bot.domain.terms import Burst
from storage.rate_limit import SharedPace
from tests.clocks import ShiftedClock
from tests.fakes.updates import Person, entity, forum
from tests.kit.agents import repeats
from tests.servers import Valkey
from tests.world import World

TELEGRAM = Pace(per_chat=1, overall=30, per_group_minute=20)


def chat(number: int, topic: str = "") -> Recipient:
    kind = ChatKind.GROUP if number < 0 else ChatKind.PRIVATE
    return Recipient(Address(str(number), topic), kind)


def fullest_second(world: World) -> int:
    """The most messages that Telegram got within one second."""
    times = sorted(message.at for message in world.telegram.all_messages())
    return max(sum(at <= other < at + 1 for other in times) for at in times)


async def sent(pacer: Pacer, clock: ShiftedClock, to: Recipient, seconds: float) -> int:
    """How many messages leave for one chat within `seconds`."""
    ends, count = clock.monotonic() + seconds, 0
    while clock.monotonic() < ends:
        slot = await pacer.reserve(to)
        count += slot.wait == 0
        clock.advance(slot.wait)
    return count


async def test_one_chat_gets_one_message_a_second_and_a_group_twenty_a_minute() -> None:
    clock = ShiftedClock()
    pacer = Pacer(TELEGRAM, clock)
    assert 9 <= await sent(pacer, clock, chat(1), 10) <= 10
    assert 16 <= await sent(pacer, clock, chat(-1), 60) <= 20


async def test_a_hot_group_uses_up_nothing_of_the_others() -> None:
    clock = ShiftedClock()
    pacer = Pacer(TELEGRAM, clock)
    while (await pacer.reserve(chat(-1))).wait == 0:
        clock.advance(1.1)
    for _ in range(50):
        assert (await pacer.reserve(chat(-1, "7"))).wait > 0
    assert (await pacer.reserve(chat(2))).wait == 0


async def test_a_hundred_waiters_leave_one_after_the_other() -> None:
    clock = ShiftedClock()
    pacer = Pacer(TELEGRAM, clock)
    waits = [(await pacer.reserve(chat(n))).wait for n in range(100)]
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(99 / 27, abs=0.2)
    clock.advance(waits[50])
    assert (await pacer.reserve(chat(50))).wait == 0


async def test_a_place_that_was_not_used_is_given_back() -> None:
    clock = ShiftedClock()
    pacer = Pacer(TELEGRAM, clock)
    (await pacer.reserve(chat(1))).refund()
    assert (await pacer.reserve(chat(1))).wait == 0


async def test_the_maps_are_empty_when_nobody_writes() -> None:
    clock = ShiftedClock()
    pacer = Pacer(TELEGRAM, clock)
    for number in range(5000):
        slot = await pacer.reserve(chat(number))
        clock.advance(slot.wait)
    assert len(pacer) < 1100
    clock.advance(60)
    pacer.forget_idle()
    assert len(pacer) == 0


async def test_without_redis_each_process_keeps_to_its_share() -> None:
    clock = ShiftedClock()
    pacer = Pacer(TELEGRAM, clock)
    pacer.share(3)
    waits = [(await pacer.reserve(chat(n))).wait for n in range(10)]
    assert waits[-1] == pytest.approx(9 * 3 / 27, abs=0.1)


async def test_with_redis_two_processes_share_one_pace(valkey_url: str) -> None:
    clock = ShiftedClock()
    shared = [SharedPace(valkey_url, "telegram:1", clock) for _ in range(2)]
    pacers = [Pacer(TELEGRAM, clock, one) for one in shared]
    waits = [(await pacers[n % 2].reserve(chat(n))).wait for n in range(60)]
    assert waits[-1] == pytest.approx(59 / 27, abs=0.5)
    again = await pacers[1].reserve(chat(0))
    assert 0 < again.wait <= 1.1
    for one in shared:
        await one.close()


class SleepersClock(SystemClock):
    """Time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_what_was_reserved_apart_does_not_leave_together() -> None:
    clock = SleepersClock()
    pacer = Pacer(TELEGRAM, clock)
    for number in range(3):
        assert (await pacer.reserve(chat(number))).wait == 0
        clock.now += 1
    left = []
    for number in range(3):
        await pacer.leave(chat(number))
        left.append(clock.now - 3)
    assert left == pytest.approx([0, 1 / 30, 2 / 30])


async def test_without_an_answer_from_redis_the_share_holds(
    valkey: Valkey, valkey_url: str
) -> None:
    clock = ShiftedClock()
    shared = SharedPace(valkey_url, "telegram:1", clock)
    pacer = Pacer(TELEGRAM, clock, shared)
    pacer.share(2)
    assert (await pacer.reserve(chat(1))).wait == 0
    valkey.stop()
    waits = [(await pacer.reserve(chat(n))).wait for n in range(2, 12)]
    assert waits[-1] == pytest.approx(10 * 2 / 27, abs=0.2)
    valkey.ensure_running()
    clock.advance(10)
    assert (await pacer.reserve(chat(99))).wait == 0
    await shared.close()


async def test_a_hot_group_does_not_hold_up_private_chats(world: World) -> None:
    process = await world.start(agent=repeats, concurrency=4, burst=Burst.EACH)
    hot = [Person(700300000 + n, forum(-1007000000901), topic=100 + n) for n in range(12)]
    text = "@relay_test_bot go"
    marks = entity("mention", text, "@relay_test_bot")
    await asyncio.gather(*(process.post_update(person.text(text, marks)) for person in hot))
    await process.post_update(Person(700300100).text("hello"))
    await world.telegram.wait_for(lambda: world.telegram.texts(700300100) == ["hello"], 8)
    assert world.telegram.main.rates.excess == []


@pytest.mark.parametrize("with_redis", [True, False])
async def test_two_processes_together_stay_within_the_pace(
    world: World, valkey_url: str, with_redis: bool
) -> None:
    redis_url = valkey_url if with_redis else ""
    processes = [await world.start(agent=repeats, redis_url=redis_url) for _ in range(2)]
    for process in processes:
        await process.process.share_pace()
    people = [Person(700500000 + n) for n in range(80)]
    await asyncio.gather(
        *(processes[n % 2].post_update(p.text("hi")) for n, p in enumerate(people))
    )
    await world.settled()
    assert all(world.telegram.texts(person.number) == ["hi"] for person in people)
    # Each alone would send 27 in a second.
    assert fullest_second(world) <= 31


async def test_b103_a_backlog_of_many_chats_is_answered_in_order_within_the_pace(
    world: World,
) -> None:
    process = await world.start(agent=repeats, concurrency=20)
    people = [Person(700400000 + n) for n in range(12)]
    for number in range(25):
        for person in people:
            assert (await process.post_update(person.text(f"{number}"))).status_code == 200
            person.at += 400
    await world.settled(50)
    for person in people:
        said = "\n".join(world.telegram.texts(person.number)).split("\n")
        assert said == [str(n) for n in range(25)]
    assert world.telegram.main.rates.excess == []
    assert await world.rows("SELECT count(*) FROM inbound WHERE run IS NULL") == [(0,)]
