"""A chat in the terminal is told who else may take what is typed there."""

from __future__ import annotations

import os

from bot.cli.talk.chat import others
from tests.world import World


async def test_a_chat_names_the_living_processes_on_its_database(world: World) -> None:
    first = await world.start(terminal=lambda _text: None)
    assert await others(first.process) == []
    second = await world.start(terminal=lambda _text: None)
    told = " ".join(await others(second.process))
    assert f"in use by another process too ({os.getpid()})" in told
    await second.die()
    assert await others(first.process) == []
