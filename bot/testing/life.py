"""One life of a bot: a whole process of Answerback in the test's event loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self

from bot.runs.shutdown import shut_down
from bot.testing import deaths
from bot.wiring import Parts, Process, Role, Settings, running


@dataclass
class Life:
    """A process, and the task that holds it together."""

    process: Process
    _leave: asyncio.Event
    _body: asyncio.Task[None]

    @classmethod
    async def begin(cls, settings: Settings, parts: Parts) -> Self:
        """Start it and wait until it works. Raises ConfigurationError."""
        up: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        leave = asyncio.Event()

        async def live() -> None:
            async with running(settings, Role.ALL, parts) as process:
                up.set_result(process)
                await leave.wait()

        body = asyncio.create_task(live(), name="the bot's process")
        try:
            await asyncio.wait((up, body), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            body.cancel()
            raise
        if not up.done():
            up.cancel()
            await body
        return cls(up.result(), leave, body)

    @property
    def dead(self) -> bool:
        return deaths.mortal(self.process).dead

    @property
    def busy(self) -> bool:
        """Tell whether a turn is under way in it."""
        worker = self.process.worker
        return not self.dead and worker is not None and worker.in_flight > 0

    def fall(self) -> None:
        """Die at this instant."""
        if not self.dead:
            deaths.fall(self.process)
            self._body.cancel()

    async def over(self) -> None:
        """Wait until its pieces have fallen."""
        await asyncio.wait((self._body,))

    async def hand_over(self) -> None:
        """Leave as SIGTERM asks."""
        grace = self.process.settings.shutdown_grace
        await shut_down(self.process.ctx, self.process.worker, grace)
        self._leave.set()
