"""Kills one's own agent, and looks at what the person hears: pytest examples/test_lamps.py

Needs pytest and pytest-asyncio.
"""

import pytest

from bot.testing import MOMENTS, Bot, Checkpoint
from examples.lamps import CHARGED, answer


@pytest.mark.asyncio
@pytest.mark.parametrize("moment", MOMENTS)
async def test_it_charges_once_wherever_it_dies(moment: Checkpoint) -> None:
    CHARGED.clear()
    async with Bot(answer) as bot:
        ada = bot.person("Ada")
        async with bot.killed_at(moment):
            await ada.says("3 lamps, please")
        await bot.restarted()
        heard = await ada.hears()
        # Killed around a send, nobody can know whether it arrived: then Ada is asked.
        assert heard[0] == "Your order is on its way: no. 17" or ada.messages[-1].buttons
        assert list(CHARGED.values()) == ["3 lamps, please"]
