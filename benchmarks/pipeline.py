"""Messages a second that one process takes from intake to settled.

No platform is in between, since platforms limit how fast one sends (Telegram: 30 a second):
the messages come from many chats and the answers go to a terminal that shows nothing.
"""

from __future__ import annotations

import asyncio
import tempfile
import time

from benchmarks.figures import show
from benchmarks.stage import new_database
from bot.agents.echo import EchoAgent
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address, ChatKind, Inbound, InboundKind, Sender
from bot.domain.terms import Burst
from bot.intake.record import Arrival
from bot.runs.shutdown import shut_down
from bot.settings import Settings
from bot.wiring import Parts, Process, running
from storage.views import runs as run_views
from tests.servers import Postgres

_AT_ONCE = 32


def message(number: int, chat: int) -> Inbound:
    """One text in one of many chats."""
    who = f"person-{chat}"
    return Inbound(
        request_id=f"bench-{number}",
        address=Address(who),
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text="hello",
        sender=Sender(id=who),
        provider_id=str(number),
    )


async def measure(name: str, postgres: Postgres | None, messages: int) -> None:
    """Send so many messages from half as many chats through one process."""
    shown = 0

    def terminal(_text: str) -> None:
        nonlocal shown
        shown += 1

    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        url = new_database(postgres) if postgres else f"sqlite:///{folder}/bench.db"
        settings = Settings(
            _env_file=None, database_url=url, burst=Burst.EACH, chat_messages_per_minute=1000
        )
        async with running(settings, parts=Parts(terminal=terminal)) as process:
            assert isinstance(process.ctx.agent, EchoAgent)
            began = time.monotonic()
            late = await take_in(process, range(messages), max(1, messages // 2))
            taken = time.monotonic() - began
            await answered(process)
            seconds = time.monotonic() - began
            await shut_down(process.ctx, process.worker, 5.0)
    if shown != messages:
        raise RuntimeError(f"{messages} messages, {shown} answers")
    show(
        f"whole pipeline, {name}",
        f"{messages / seconds:.0f} messages/s   ({messages / taken:.0f}/s taken in, "
        f"{late} refused at first)",
    )


async def take_in(process: Process, messages: range, chats: int) -> int:
    """Record these messages, spread over so many chats; how many were refused at first, as a
    503 refuses them, and delivered again."""
    numbers = iter(messages)
    late = 0

    async def take() -> None:
        nonlocal late
        for number in numbers:
            said = message(number, number % chats)
            while not await _taken(process, said):
                late += 1

    await asyncio.gather(*(take() for _ in range(_AT_ONCE)))
    return late


async def answered(process: Process) -> None:
    """Wait until nothing is pending."""
    while await process.rt.db.read(run_views.pending_in_account, process.ids["console"]):
        await asyncio.sleep(0.02)


async def _taken(process: Process, said: Inbound) -> bool:
    try:
        await process.intake.take(Arrival(process.ids["console"], "{}"), (said,))
    except DatabaseUnavailable:
        return False
    return True
