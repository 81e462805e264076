"""Choices through Meta: buttons that come back with their data, words and numbers beside them."""

from __future__ import annotations

import pytest

from bot.domain.errors import GiveUp
from bot.domain.turn import Turn
from tests.delivery.test_whatsapp_choices import waiter
from tests.fakes.recording import Json
from tests.kit.whatsapp_cloud import ALONE, taken
from tests.world import World


def press(button: Json) -> Json:
    """The message that a tap on this button of ours makes."""
    return {"type": "button_reply", "button_reply": button["reply"]}


async def test_a_button_comes_back_with_its_data(world: World) -> None:
    await world.start(agent=waiter, **ALONE)
    await world.meta.person_writes("menu")
    [menu] = await taken(world, 1)
    await world.settled()
    shown = menu.body["interactive"]["action"]["buttons"]
    assert [button["reply"]["title"] for button in shown] == ["Red", "Deep blue"]
    await world.meta.person_writes(
        kind="interactive", content=press(shown[1]), context={"id": menu.wamid}
    )
    await world.settled()
    assert world.meta.texts()[-1] == "button: Deep blue (color:b)"


@pytest.mark.parametrize("said", ["2", " deep BLUE "])
async def test_a_number_or_the_words_are_the_choice_too(world: World, said: str) -> None:
    await world.start(agent=waiter, **ALONE)
    for text in ("menu", said):
        await world.meta.person_writes(text)
        await world.settled()
    assert world.meta.texts()[-1] == "button: Deep blue (color:b)"


async def test_an_apology_has_a_button_that_tries_again(world: World) -> None:
    asked: list[str] = []

    async def sulks(turn: Turn) -> str:
        asked.append(turn.text)
        if len(asked) == 1:
            raise GiveUp("not today")
        return "here you are"

    await world.start(agent=sulks, **ALONE)
    await world.meta.person_writes("please")
    [apology] = await taken(world, 1)
    await world.settled()
    [again] = apology.body["interactive"]["action"]["buttons"]
    await world.meta.person_writes(kind="interactive", content=press(again))
    await world.settled()
    assert asked == ["please", "please"]
    assert "here you are" in world.meta.texts()
