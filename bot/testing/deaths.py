"""The death of a process that is a part of another one: nothing that it meant to write is
written, as after `kill -9`."""

from __future__ import annotations

import asyncio
from typing import Any

from bot.wiring import Process
from storage.engine.database import Database


class MortalDatabase(Database):
    """A database whose program can die: from then on nothing reaches it."""

    dead = False

    async def write(self, move: Any, *args: Any, **kwargs: Any) -> Any:
        await self._if_alive()
        return await super().write(move, *args, **kwargs)

    async def read(self, question: Any, *args: Any, **kwargs: Any) -> Any:
        await self._if_alive()
        return await super().read(question, *args, **kwargs)

    async def ask(self, question: Any, *args: Any, **kwargs: Any) -> Any:
        await self._if_alive()
        return await super().ask(question, *args, **kwargs)

    async def renew(self, move: Any, *args: Any, **kwargs: Any) -> Any:
        await self._if_alive()
        return await super().renew(move, *args, **kwargs)

    async def _if_alive(self) -> None:
        if self.dead:
            raise asyncio.CancelledError("the process is dead")


def mortal(process: Process) -> MortalDatabase:
    """The database of a process that was begun with a mortal one."""
    db = process.rt.db
    assert isinstance(db, MortalDatabase)
    return db


def fall(process: Process) -> None:
    """Stop everything in this process at this instant, without waiting for the pieces to fall."""
    mortal(process).dead = True
    process.ctx.sends.abandon()
    if process.worker is not None:
        process.worker.abandon()
    process.tasks.cancel()
    process.lease.forget_name()
