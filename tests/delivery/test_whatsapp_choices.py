"""Choices: a numbered list whose number or words come back, or buttons where they are set up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.domain.reply import Button, Reply
from bot.domain.turn import Turn
from tests.fakes.twilio import forms
from tests.kit.whatsapp import PERSON
from tests.world import World

MENU = Reply("Which one?", buttons=(Button("Red", "color:r"), Button("Deep blue", "color:b")))
CHOSEN: dict[str, Any] = {"twilio_choice_templates": {2: "HX" + "3" * 32}}


async def waiter(turn: Turn) -> Reply | str:
    """Offers the menu when asked for it, and says what else it was told."""
    message = turn.messages[-1]
    if turn.text == "menu":
        return MENU
    return f"{message.kind}: {message.text} ({message.button})"


@pytest.mark.parametrize("said", ["2", "2.", "(2)", " deep BLUE "])
async def test_a_number_or_the_words_are_the_choice(world: World, said: str) -> None:
    await world.start(agent=waiter)
    for text in ("menu", said):
        await world.twilio.inbound(text)
        await world.settled()
    assert world.twilio.texts() == [
        "Which one?\n\n1. Red\n2. Deep blue",
        "button: Deep blue (color:b)",
    ]


async def test_what_names_no_choice_is_a_message(world: World) -> None:
    await world.start(agent=waiter)
    for text in ("menu", "3"):
        await world.twilio.inbound(text)
        await world.settled()
    assert world.twilio.texts()[-1] == "text: 3 ()"


async def test_after_the_next_reply_a_number_is_a_number_again(world: World) -> None:
    await world.start(agent=waiter)
    for text in ("menu", "something else", "2"):
        await world.twilio.inbound(text)
        await world.settled()
    assert world.twilio.texts()[-1] == "text: 2 ()"


async def test_a_reply_to_an_old_menu_chooses_from_it(world: World) -> None:
    await world.start(agent=waiter)
    for text in ("menu", "something else"):
        await world.twilio.inbound(text)
        await world.settled()
    menu = world.twilio.messages()[0]
    await world.twilio.inbound("1", fields=forms.reply(menu.sid, menu.from_))
    await world.settled()
    assert world.twilio.texts()[-1] == "button: Red (color:r)"


async def test_a_menu_of_one_chat_is_none_in_another(world: World) -> None:
    await world.start(agent=waiter)
    await world.twilio.inbound("menu")
    await world.settled()
    menu = world.twilio.messages()[0]
    other = "whatsapp:+15550100016"
    for fields in ({}, forms.reply(menu.sid, menu.from_)):
        await world.twilio.inbound("1", from_=other, fields=fields)
        await world.settled()
    assert world.twilio.texts(other) == ["text: 1 ()"] * 2


async def test_with_a_content_template_the_choices_are_buttons(world: World) -> None:
    await world.start(agent=waiter, **CHOSEN)
    await world.twilio.inbound("menu")
    await world.settled()
    (menu,) = world.twilio.messages(PERSON)
    assert json.loads(menu.content_variables) == {
        "1": "Which one?",
        "2": "Red",
        "3": "color:r",
        "4": "Deep blue",
        "5": "color:b",
    }
    await world.twilio.inbound("Red", fields=forms.template_button("Red", "color:r", menu.sid))
    await world.settled()
    assert world.twilio.texts()[-1] == "button: Red (color:r)"


async def test_a_choice_by_its_number_is_no_command_whatever_it_is_called(world: World) -> None:
    menu = Reply("What now?", buttons=(Button("Go on", "go"), Button("Stop", "halt")))

    async def asks(turn: Turn) -> Reply | str:
        return menu if turn.text == "menu" else f"{turn.text} ({turn.messages[0].button})"

    await world.start(agent=asks)
    for text in ("menu", "2"):
        await world.twilio.inbound(text)
        await world.settled()
    assert world.twilio.texts()[-1] == "Stop (halt)"
    assert await world.rows("SELECT opted_out_at FROM chats") == [(None,)]
