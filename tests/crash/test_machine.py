"""The state machine: after anything in any order, once it is quiet, every promise holds.

Each example is a story of deliveries, repeats, deaths at checkpoints, zombies, clock jumps,
provider faults, stops, operators and outages; between the acts the truths are checked
whenever the story becomes quiet, and at its end.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from bot.leases.checkpoints import Checkpoint
from tests.crash import truths
from tests.crash.mayhem import ADA, BOB, CHATS, CLOUD, PHONE, Mayhem
from tests.fakes.faults import Fault
from tests.fakes.meta import faults as meta_faults
from tests.fakes.telegram import faults
from tests.fakes.twilio import faults as twilio_faults
from tests.servers import Postgres
from tests.world import open_world

chats = st.sampled_from(CHATS)
_HOW = st.sampled_from(["short", "short", "long", "fail", "never"])
_SENDING = (
    Checkpoint.REPLY_STORED,
    Checkpoint.BEFORE_SEND,
    Checkpoint.AFTER_SEND,
    Checkpoint.PART_RECORDED,
)
_TELEGRAM = st.sampled_from(
    [
        faults.hang_after_storing(),
        faults.hang_before_storing(),
        faults.drop_after_storing(),
        faults.drop_unread(),
        faults.too_many(2),
        faults.server_error(),
        faults.cut_answer(),
    ]
)
_TWILIO = st.sampled_from(
    [
        twilio_faults.hang_after_storing(),
        twilio_faults.drop_before_storing(),
        twilio_faults.drop_after_storing(),
        twilio_faults.bad_gateway(),
        twilio_faults.too_many(),
        twilio_faults.unavailable(),
    ]
)
_META = st.sampled_from(
    [
        meta_faults.hang_after_storing(),
        meta_faults.drop_before_storing(),
        meta_faults.drop_after_storing(),
        meta_faults.server_error(),
        meta_faults.server_error(stores=False),
        meta_faults.without_id(),
        meta_faults.refused(131056),
        meta_faults.refused(130429),
    ]
)


class Machine(RuleBasedStateMachine):
    """One story. `fresh` makes an empty database and returns its URL."""

    fresh: ClassVar[Callable[[], str]]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.do(self._open())

    def do(self, act: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(act)

    async def _open(self) -> None:
        world = await self.stack.enter_async_context(open_world(type(self).fresh()))
        self.mayhem = Mayhem(world)
        await self.mayhem.begin()

    @initialize(chat=chats, how=_HOW)
    def first(self, chat: str, how: str) -> None:
        self.do(self.mayhem.say(chat, how))

    @rule(chat=chats, how=_HOW, ticks=st.integers(0, 3))
    def say(self, chat: str, how: str, ticks: int) -> None:
        self.do(self.mayhem.say(chat, how))
        self.do(self.mayhem.moment(ticks))

    @rule(chat=chats)
    def repeat(self, chat: str) -> None:
        if self.mayhem.said[chat]:
            self.do(self.mayhem.deliver(self.mayhem.said[chat][-1]))

    @rule(chat=chats)
    def stop(self, chat: str) -> None:
        self.do(self.mayhem.stop_word(chat))

    @rule(chat=st.sampled_from([str(ADA), str(BOB)]))
    def edit(self, chat: str) -> None:
        self.do(self.mayhem.edit(chat))

    @rule(death=st.sampled_from(Checkpoint), chat=chats, how=_HOW)
    def die_at(self, death: Checkpoint, chat: str, how: str) -> None:
        self.do(self.mayhem.die_at(death, chat, how))

    @rule(death=st.sampled_from(_SENDING), chat=chats, how=_HOW)
    def die_sending(self, death: Checkpoint, chat: str, how: str) -> None:
        self.do(self.mayhem.die_at(death, chat, how))

    @rule()
    def kill(self) -> None:
        self.do(self.mayhem.kill())

    @rule()
    def leave(self) -> None:
        self.do(self.mayhem.leave())

    @rule()
    def begin(self) -> None:
        if len(self.mayhem.bodies) < 2:
            self.do(self.mayhem.begin())

    @rule(chat=chats, unnoticed=st.booleans())
    def zombie(self, chat: str, unnoticed: bool) -> None:
        self.do(self.mayhem.lapse(chat, unnoticed=unnoticed))

    @rule(seconds=st.sampled_from([1.0, 5.0, 40.0]))
    def time(self, seconds: float) -> None:
        self.do(self.mayhem.pass_time(seconds))

    @rule(fault=_TELEGRAM, chat=st.sampled_from([str(ADA), str(BOB)]), how=_HOW)
    def telegram_fails(self, fault: Fault, chat: str, how: str) -> None:
        self.do(self.mayhem.fail(chat, fault, how))

    @rule(fault=_TWILIO, how=_HOW)
    def twilio_fails(self, fault: Fault, how: str) -> None:
        self.do(self.mayhem.fail(PHONE, fault, how))

    @rule(fault=_META, how=_HOW)
    def meta_fails(self, fault: Fault, how: str) -> None:
        self.do(self.mayhem.fail(CLOUD, fault, how))

    @rule(act=st.sampled_from(["cancel", "requeue", "pause", "resume"]), pick=st.integers(0, 9))
    def operate(self, act: str, pick: int) -> None:
        self.do(self.mayhem.operate(act, pick))

    @rule(ticks=st.integers(1, 5), chat=chats)
    def outage(self, ticks: int, chat: str) -> None:
        """The database is away; what is written meanwhile is not acknowledged."""
        self.mayhem.away(True)
        self.do(self.mayhem.say(chat, "short"))
        self.do(self.mayhem.moment(ticks))
        self.mayhem.away(False)

    @rule()
    def quiet(self) -> None:
        self.do(self.mayhem.quiet())
        self.do(truths.hold(self.mayhem))

    def teardown(self) -> None:
        try:
            self.quiet()
        finally:
            self.do(self.stack.aclose())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


def _run(fresh: Callable[[], str], examples: int) -> None:
    bound = type("Bound", (Machine,), {"fresh": staticmethod(fresh)})
    run_state_machine_as_test(
        bound,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(3600)
@pytest.mark.long
def test_whatever_happens_what_we_promise_is_true_on_sqlite(
    sqlite_template: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    numbers = count(1)

    def fresh() -> str:
        file = tmp_path / f"{next(numbers)}.db"
        shutil.copyfile(sqlite_template, file)
        return f"sqlite:///{file}"

    _run(fresh, examples=100 if pytestconfig.getoption("--deep") else 6)


@pytest.fixture
def databases(postgres: Postgres, postgres_template: str) -> Iterator[Callable[[], str]]:
    """Makes empty databases, and drops them in the end."""
    postgres.ensure_running()
    made: list[str] = []

    def fresh() -> str:
        made.append(f"machine_{len(made) + 1}")
        return postgres.copy(postgres_template, made[-1])

    yield fresh
    for name in made:
        postgres.drop(name)


@pytest.mark.timeout(3600)
@pytest.mark.long
def test_whatever_happens_what_we_promise_is_true_on_postgresql(
    databases: Callable[[], str], pytestconfig: pytest.Config
) -> None:
    # Of eight stories two: each costs three times as much here.
    _run(databases, examples=50 if pytestconfig.getoption("--deep") else 2)
