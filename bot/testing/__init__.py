"""A kit for tests of agents: one's own agent in the whole of Answerback, killed where it hurts.

async def test_my_agent_survives_a_kill() -> None:
    async with Bot(answer) as bot:
        ada = bot.person("Ada")
        async with bot.killed_after_step("charge"):
            await ada.says("order 3 lamps")
        await bot.restarted()
        assert await ada.hears() == ["Your order is on its way: no. 17"]
        assert bot.calls("charge") == 1
"""

from bot.leases.checkpoints import Checkpoint
from bot.testing.bot import MOMENTS, STEP_MOMENTS, AgentError, Bot
from bot.testing.channel import Fault, Message
from bot.testing.people import Person, Upload

__all__ = [
    "MOMENTS",
    "STEP_MOMENTS",
    "AgentError",
    "Bot",
    "Checkpoint",
    "Fault",
    "Message",
    "Person",
    "Upload",
]
