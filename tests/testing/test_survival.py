"""The test kit kills one's agent where it hurts, and shows that it survives."""

from __future__ import annotations

import pytest

from bot.api import StepInterrupted, Turn
from bot.testing import STEP_MOMENTS, Bot, Checkpoint


class Shop:
    """Charges once for a key, and ships each time that it is asked."""

    def __init__(self) -> None:
        self.charged: dict[str, int] = {}
        self.shipped: list[int] = []

    async def __call__(self, turn: Turn) -> str:
        number = await turn.step("charge", lambda: self.charge(turn), safe_to_repeat=True)
        try:
            await turn.step("ship", lambda: self.shipped.append(number))
        except StepInterrupted:
            if number not in self.shipped:
                return f"I'm not sure that no. {number} was shipped."
        return f"Your order is on its way: no. {number}"

    def charge(self, turn: Turn) -> int:
        return self.charged.setdefault(turn.idempotency_key("charge"), 17 + len(self.charged))


ON_ITS_WAY = "Your order is on its way: no. 17"


async def test_it_goes_on_after_the_step_that_was_done() -> None:
    async with Bot(Shop()) as bot:
        ada = bot.person("Ada")
        async with bot.killed_after_step("charge"):
            await ada.says("order 3 lamps")
        assert not bot.alive
        await bot.restarted()
        assert await ada.hears() == [ON_ITS_WAY]
        assert bot.calls("charge") == 1
        assert bot.steps == ["charge", "ship"]


async def test_a_step_that_was_cut_off_is_made_again_or_said_to_be_in_doubt() -> None:
    shop = Shop()
    async with Bot(shop) as bot:
        ada = bot.person("Ada")
        async with bot.killed_in_step("charge"):
            await ada.says("order 3 lamps")
        await bot.restarted()
        assert await ada.hears() == [ON_ITS_WAY]
        assert (bot.calls("charge"), len(shop.charged)) == (2, 1)
        async with bot.killed_before_step("ship"):
            await ada.says("order 4 lamps")
        await bot.restarted()
        assert await ada.hears() == ["I'm not sure that no. 18 was shipped."]
        assert shop.shipped == [17]


async def test_it_may_die_again_as_soon_as_it_goes_on() -> None:
    shop = Shop()
    async with Bot(shop) as bot:
        ada = bot.person("Ada")
        async with bot.killed_after_step("charge"):
            await ada.says("order 3 lamps")
        for _ in range(2):
            async with bot.killed_at(Checkpoint.CLAIMED):
                await bot.restarted()
            assert not bot.alive
        await bot.restarted()
        assert await ada.hears() == [ON_ITS_WAY]
        assert shop.shipped == [17]


async def test_after_a_death_in_a_send_the_person_is_asked_and_may_have_it_again() -> None:
    async with Bot(Shop()) as bot:
        ada = bot.person("Ada")
        async with bot.killed_at(Checkpoint.AFTER_SEND):
            await ada.says("order 3 lamps")
        await bot.restarted()
        answer, doubt = await ada.hears()
        assert answer == ON_ITS_WAY
        assert doubt.startswith("Part of my answer may not have reached you.")
        await ada.presses("Send it again")
        assert await ada.hears() == [ON_ITS_WAY]
        assert ada.toasts == ["Here it is again."]


async def test_a_moment_that_never_comes_fails_the_test_and_names_the_steps() -> None:
    async with Bot(Shop()) as bot:
        with pytest.raises(AssertionError, match=r"never .*'refund'; steps so far: charge, ship"):
            async with bot.killed_after_step("refund"):
                await bot.person().says("order 3 lamps")


async def test_an_agent_without_a_step_is_told_which_moments_it_never_passes() -> None:
    async def greet(turn: Turn) -> str:
        return f"Hello, {turn.text}"

    async with Bot(greet) as bot:
        with pytest.raises(AssertionError, match="steps so far: none, so leave out STEP_MOMENTS"):
            async with bot.killed_at(STEP_MOMENTS[0]):
                await bot.person().says("world")
        with pytest.raises(AssertionError, match=r"steps so far: none$"):
            async with bot.killed_at(Checkpoint.PART_RECORDED):
                await bot.person().says("world")
