"""Die while a chat is handed over to a person, and begin anew: the person reads it all once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from tests.crash.stages import WhatsAppStage
from tests.kit.conversation import PATIENT, endings
from tests.kit.passing import settle
from tests.limits import until
from tests.world import Running, World, dies_at

DEATHS = (
    Checkpoint.STEP_STORED,
    Checkpoint.REPLY_STORED,
    Checkpoint.PART_RECORDED,
    Checkpoint.SETTLED,
    Checkpoint.STANDALONE_BEFORE_SEND,
    Checkpoint.STANDALONE_AFTER_SEND,
)


@dataclass(frozen=True)
class PassesOn:
    """Asks for a person, maybe in a step, and says so in two parts."""

    in_step: bool

    async def __call__(self, turn: Turn) -> str:
        def asked() -> None:
            turn.hand_over("wants their money back")

        if self.in_step:
            await turn.step("ask for a person", asked)
        else:
            asked()
        return "\n\n".join(f"part {n} ".ljust(1400, ".") for n in (1, 2))


@pytest.mark.parametrize("death", DEATHS, ids=[death.name.lower() for death in DEATHS])
async def test_a_death_changes_nothing_of_a_handoff(world: World, death: Checkpoint) -> None:
    stage, victims, died = WhatsAppStage(world), list[Running](), asyncio.Event()
    agent = PassesOn(in_step=death is Checkpoint.STEP_STORED)

    def victim() -> Running:
        died.set()
        return victims[0]

    reached = dies_at(death, victim)
    victims.append(await stage.start(world, agent=agent, reached=reached, **PATIENT))
    assert await stage.say(victims[0], "first")
    await until(died.is_set)
    await victims[0].die()
    running = await stage.start(world, agent=agent, **PATIENT)
    assert await stage.say(running, "first")
    await settle(world)
    assert await stage.say(running, "second")
    said = [text.split(" .")[0].strip() for text in await stage.shown()]
    assert [text[:28] for text in said] == ["part 1", "part 2", "A person will answer you her"]
    assert await endings(world) == [("first", "answered"), ("second", "waiting")]
    assert len(await world.rows("SELECT 1 FROM events WHERE what = 'asked for a person'")) == 1
    assert await world.rows("SELECT 1 FROM chats WHERE handoff_at > 0 AND paused_until > 1e11")
